//! Reasons of conditions, events and problems: `PascalCase`, stable, and each with when it appears.

/// One reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The word itself, as objects and events show it.
    pub word: &'static str,
    /// When it appears.
    pub when: &'static str,
}

/// Declares reasons as constants and lists them in `ALL`, so that none is forgotten where all must be known.
#[macro_export]
macro_rules! reasons {
    ($($(#[doc = $when:literal])+ $name:ident = $word:expr;)+) => {
        $($(#[doc = $when])+ pub const $name: &str = $word;)+

        /// Every reason of this list.
        pub const ALL: &[$crate::reasons::Reason] =
            &[$($crate::reasons::Reason { word: $name, when: concat!($($when),+) }),+];
    };
}

reasons! {
    /// Ready: the remote object equals the desired one.
    SYNCED = "Synced";
    /// Ready: all that belongs to the object was brought in line (tunnels, connectors, class configurations).
    RECONCILED = "Reconciled";
    /// Ready: the credentials were accepted by the API.
    VALIDATED = "Validated";
    /// Ready: an existing remote object is now ours.
    ADOPTED = "Adopted";

    /// Not ready: something failed that has no reason of its own.
    ERROR = "Error";
    /// Not ready: as [`ERROR`], for the kinds that always said it this way.
    RECONCILE_ERROR = "ReconcileError";
    /// Not ready: the API refused a request, or could not be reached.
    API_ERROR = "APIError";
    /// Not ready: the remote object belongs to somebody else, or two objects claim the same one.
    CONFLICT_ERROR = "ConflictError";
    /// Not ready: something referred to does not exist or is not ready.
    DEPENDENCY_ERROR = "DependencyError";
    /// Not ready: the object's own content has to be changed.
    INVALID_CONFIG = "InvalidConfig";
    /// Not ready: more than one object of the kind says that it is the default.
    DUPLICATE_DEFAULT = "DuplicateDefault";
    /// Not ready: the account's or plan's limit leaves no room.
    QUOTA_EXCEEDED = "QuotaExceeded";
    /// Nothing failed: the account or zone has nine tenths of what it may have, as far as known.
    QUOTA_NEARLY_REACHED = "QuotaNearlyReached";
    /// Not ready: the API budget is spent; tried again when it allows.
    RATE_LIMITED = "RateLimited";
    /// Not ready: the API refuses the credentials, or they lack a permission.
    CREDENTIALS_DENIED = "CredentialsDenied";
    /// Not ready: the account has no Zero Trust organisation, and so no Access.
    ZERO_TRUST_NOT_ENABLED = "ZeroTrustNotEnabled";
    /// Not ready: work has started, or the remote side has not finished its own.
    PENDING = "Pending";
    /// Not ready: the object is being deleted and its remote object is not gone yet.
    DELETING = "Deleting";
    /// Not ready: the API has no zone, account or other object of that name.
    NOT_FOUND = "NotFound";
    /// The object that a record was taken from is gone.
    SOURCE_DELETED = "SourceDeleted";

    /// Stalled: more deletions in one scope than the budget allows; an annotation releases them.
    DELETION_BUDGET_EXCEEDED = "DeletionBudgetExceeded";
    /// Nothing is done because an annotation says so.
    PAUSED = "Paused";

    /// Event: a remote object was made.
    CREATED = "Created";
    /// Event: a remote object was changed.
    UPDATED = "Updated";
    /// Event: a remote object was deleted.
    DELETED = "Deleted";
    /// Event: a remote object was left in place and is no longer ours.
    RELEASED = "Released";
    /// Event: deleting the remote object failed; the finalizer stays.
    DELETE_FAILED = "DeleteFailed";
    /// Event: the remote object carries another owner's mark and was not touched.
    ADOPTION_CONFLICT = "AdoptionConflict";
    /// Event: the finalizer was removed by force; the remote object named in the message may still exist.
    FORCED_CLEANUP = "ForcedCleanup";
}
