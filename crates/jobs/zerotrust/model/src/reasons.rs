//! Reasons that only the zerotrust job has: `PascalCase`, stable, and each with when it appears.

/// No tenant of that name, or none that takes routes of the namespace.
pub const TENANT_NOT_FOUND: &str = "TenantNotFound";
/// The namespace has several tenants and the route names none.
pub const TENANT_AMBIGUOUS: &str = "TenantAmbiguous";
/// The template that the route names does not exist; nothing is published with less than was asked for.
pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
/// The hostname is missing or is none.
pub const INVALID_HOSTNAME: &str = "InvalidHostname";
/// An annotation holds a value that cannot be read.
pub const INVALID_ANNOTATION: &str = "InvalidAnnotation";
/// An annotation under our prefix has a name that nothing reads.
pub const UNKNOWN_ANNOTATION: &str = "UnknownAnnotation";
/// Nobody says where requests go, and the route's first backend does not tell.
pub const ORIGIN_UNRESOLVED: &str = "OriginUnresolved";
/// The Service has no address yet.
pub const NO_LOAD_BALANCER_IP: &str = "NoLoadBalancerIP";
/// The address of a name without a tunnel is missing or cannot be used.
pub const INVALID_TARGET_IP: &str = "InvalidTargetIP";
/// Access was asked for where requests would not pass through it.
pub const PROTECTION_IMPOSSIBLE: &str = "ProtectionImpossible";
/// Access or a service token was asked for a private name without a tunnel, where neither has an effect.
pub const PROTECTION_IGNORED: &str = "ProtectionIgnored";
/// Another route has the hostname.
pub const HOSTNAME_CONFLICT: &str = "HostnameConflict";
/// No zone of the account holds the name.
pub const ZONE_NOT_FOUND: &str = "ZoneNotFound";
/// The name lies in another zone than the tenant's.
pub const ZONE_MISMATCH: &str = "ZoneMismatch";
/// The rule stands, but no DNS record: no zone of the account holds the name.
pub const DNS_SKIPPED: &str = "DNSSkipped";
/// Access is on and lets nobody pass.
pub const NO_ACCESS_POLICY: &str = "NoAccessPolicy";
/// Who may pass is said, but Access is not on.
pub const ACCESS_NOT_ENABLED: &str = "AccessNotEnabled";
/// The Secret for the token's credentials exists and is somebody else's.
pub const SECRET_CONFLICT: &str = "SecretConflict";
/// The Secret with the API token does not exist.
pub const CREDENTIAL_NOT_FOUND: &str = "CredentialNotFound";
/// The Secret with the API token lacks the key.
pub const CREDENTIAL_KEY_MISSING: &str = "CredentialKeyMissing";
/// Cloudflare refuses the API token.
pub const CREDENTIAL_INVALID: &str = "CredentialInvalid";
/// Cloudflare refused a request, or could not be reached.
pub const CLOUDFLARE_API_ERROR: &str = "CloudflareAPIError";
/// The API budget is spent; tried again when it allows.
pub const RATE_LIMITED: &str = portolan_core::reasons::RATE_LIMITED;
/// Some of the tenant's routes failed.
pub const PARTIAL_FAILURE: &str = "PartialFailure";
/// All of the tenant's routes stand as asked.
pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
/// Event: a task was made for the route.
pub const QUEUED: &str = "Queued";
/// Event: the route stands as asked.
pub const RECONCILED: &str = portolan_core::reasons::RECONCILED;
/// Event: what stood for the route is gone.
pub const DELETED: &str = portolan_core::reasons::DELETED;
/// Template: what it says can be used.
pub const VALID: &str = "Valid";
/// Template: something that it says cannot be used.
pub const INVALID_SPEC: &str = "InvalidSpec";
