//! Reasons that only the cloudflare job has: `PascalCase`, stable, and each with when it appears.

portolan_core::reasons! {
    /// Not ready: the credential was not accepted.
    VALIDATION_FAILED = "ValidationFailed";
    /// Ready: the zone is there.
    VERIFIED = "Verified";
    /// Not ready: the credentials or the domain do not serve this namespace or name, or a source of another namespace
    /// is not granted.
    NOT_ALLOWED = "NotAllowed";
    /// Not ready: the virtual network is the account's default one, which cannot be deleted.
    DEFAULT_NETWORK = "DefaultNetwork";
    /// The zone or account that an object's remote part was in is gone, so that nothing is left to remove.
    SCOPE_GONE = "ScopeGone";
    /// Not ready: this release cannot do it yet.
    UNSUPPORTED = "Unsupported";
}
