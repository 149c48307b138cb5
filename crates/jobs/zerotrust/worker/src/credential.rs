//! The Secret that a task names → the client that asks Cloudflare with it.

use portolan_cloudflare_api::{Client, Clients, Credential};
use portolan_core::Problem;
use portolan_engine::FoundSecret;
use portolan_zerotrust_model::{CloudflareTaskSpec, SecretRef, reasons};

/// The Secret with a task's API token.
pub(crate) fn reference(spec: &CloudflareTaskSpec) -> Result<&SecretRef, Problem> {
    spec.credential_secret_ref
        .as_ref()
        .ok_or_else(|| Problem::invalid(reasons::CREDENTIAL_NOT_FOUND, "the task names no Secret with an API token"))
}

/// The client of a credential, out of what was found of its Secret.
pub(crate) fn client(reference: &SecretRef, found: &FoundSecret, clients: &Clients) -> Result<Client, Problem> {
    portolan_core::waypoint!();
    let place = reference.object();
    let values = found.values.as_ref().ok_or_else(|| {
        Problem::waiting(
            reasons::CREDENTIAL_NOT_FOUND,
            format!("Secret {place} not found; create it, or correct the tenant's credentialRef"),
        )
    })?;
    let token = values.get(reference.key()).cloned().ok_or_else(|| {
        Problem::waiting(
            reasons::CREDENTIAL_KEY_MISSING,
            format!("Secret {place} has no text under {}; put the API token there", reference.key()),
        )
    })?;
    Ok(clients.client_of(&reference.to_string(), &Credential::Token(token)))
}
