//! Reasons that only the cloudflare job has: `PascalCase`, stable, and each with when it appears.

portolan_core::reasons! {
    /// Not ready: the credential was not accepted.
    VALIDATION_FAILED = "ValidationFailed";
    /// Ready: the zone is there.
    VERIFIED = "Verified";
    /// Not ready: this release cannot do it yet.
    UNSUPPORTED = "Unsupported";
}
