//! Reasons of conditions, events and problems: `PascalCase`, stable, and each with when it appears.

/// Ready: the remote object equals the desired one.
pub const SYNCED: &str = "Synced";
/// Ready: all that belongs to the object was brought in line (tunnels, connectors, class configurations).
pub const RECONCILED: &str = "Reconciled";
/// Ready: the credentials were accepted by the API.
pub const VALIDATED: &str = "Validated";
/// Ready: the zone, domain or certificate is active.
pub const ACTIVE: &str = "Active";
/// Ready: an existing remote object is now ours.
pub const ADOPTED: &str = "Adopted";

/// Not ready: something failed that has no reason of its own.
pub const ERROR: &str = "Error";
/// Not ready: as [`ERROR`], for the kinds that always said it this way.
pub const RECONCILE_ERROR: &str = "ReconcileError";
/// Not ready: the API refused a request, or could not be reached.
pub const API_ERROR: &str = "APIError";
/// Not ready: the remote object belongs to somebody else, or two objects claim the same one.
pub const CONFLICT_ERROR: &str = "ConflictError";
/// Not ready: something referred to does not exist or is not ready.
pub const DEPENDENCY_ERROR: &str = "DependencyError";
/// Not ready: the object's own content has to be changed.
pub const INVALID_CONFIG: &str = "InvalidConfig";
/// Not ready: more than one object of the kind says that it is the default.
pub const DUPLICATE_DEFAULT: &str = "DuplicateDefault";
/// Not ready: the account's or plan's limit leaves no room.
pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// Not ready: the API budget is spent; tried again when it allows.
pub const RATE_LIMITED: &str = "RateLimited";
/// Not ready: no credentials object, Secret or Secret key where the object says.
pub const CREDENTIALS_MISSING: &str = "CredentialsMissing";
/// Not ready: the credentials are there and cannot be used as they are written.
pub const CREDENTIALS_INVALID: &str = "CredentialsInvalid";
/// Not ready: the API refuses the credentials, or they lack a permission.
pub const CREDENTIALS_DENIED: &str = "CredentialsDenied";
/// Not ready: work has started, or the remote side has not finished its own.
pub const PENDING: &str = "Pending";
/// Not ready: the remote object is being made.
pub const CREATING: &str = "Creating";
/// Not ready: the object is being deleted and its remote object is not gone yet.
pub const DELETING: &str = "Deleting";
/// Not ready: the zone is known at the API, but not active there.
pub const ZONE_PENDING: &str = "ZonePending";
/// Not ready: the API has no zone, account or other object of that name.
pub const NOT_FOUND: &str = "NotFound";
/// The object that a record was taken from is gone.
pub const SOURCE_DELETED: &str = "SourceDeleted";

/// Stalled: more deletions in one scope than the budget allows; an annotation releases them.
pub const DELETION_BUDGET_EXCEEDED: &str = "DeletionBudgetExceeded";
/// Nothing is done because an annotation says so.
pub const PAUSED: &str = "Paused";
/// Nothing is written because the process runs with `--dry-run`.
pub const DRY_RUN: &str = "DryRun";
/// Reconciling: changes are being made.
pub const PROGRESSING: &str = "Progressing";

/// Event: a remote object was made.
pub const CREATED: &str = "Created";
/// Event: a remote object was changed.
pub const UPDATED: &str = "Updated";
/// Event: a remote object was made anew, because a field that cannot be changed had to.
pub const REPLACED: &str = "Replaced";
/// Event: a remote object was deleted.
pub const DELETED: &str = "Deleted";
/// Event: a remote object was left in place and is no longer ours.
pub const RELEASED: &str = "Released";
/// Event: a remote object vanished and was made again.
pub const RECREATED: &str = "Recreated";
/// Event: the finalizer was added.
pub const FINALIZER_SET: &str = "FinalizerSet";
/// Event: the finalizer was removed.
pub const FINALIZER_REMOVED: &str = "FinalizerRemoved";
/// Event: making the remote object failed.
pub const CREATE_FAILED: &str = "CreateFailed";
/// Event: changing the remote object failed.
pub const UPDATE_FAILED: &str = "UpdateFailed";
/// Event: deleting the remote object failed; the finalizer stays.
pub const DELETE_FAILED: &str = "DeleteFailed";
/// Event: bringing the remote object in line failed.
pub const SYNC_FAILED: &str = "SyncFailed";
/// Event: a step outside the remote API failed.
pub const RECONCILE_FAILED: &str = "ReconcileFailed";
/// Event: the remote object carries another owner's mark and was not touched.
pub const ADOPTION_CONFLICT: &str = "AdoptionConflict";
/// Event: the finalizer was removed by force; the remote object named in the message may still exist.
pub const FORCED_CLEANUP: &str = "ForcedCleanup";
/// Event: a Secret could not be read or written.
pub const SECRET_FAILED: &str = "SecretFailed";
/// Event: the kind, field or annotation will go away.
pub const DEPRECATED: &str = "Deprecated";
