//! The Secret that a task names → the client that asks Cloudflare with it.

use portolan_cloudflare_api::{Client, Clients, Credential};
use portolan_core::Problem;
use portolan_engine::Secrets;
use portolan_zerotrust_model::{CloudflareTaskSpec, reasons};

/// The client of a task's credential.
pub(crate) async fn client(spec: &CloudflareTaskSpec, secrets: &Secrets, clients: &Clients) -> Result<Client, Problem> {
    let reference = spec
        .credential_secret_ref
        .as_ref()
        .ok_or_else(|| Problem::invalid(reasons::CREDENTIAL_NOT_FOUND, "the task names no Secret with an API token"))?;
    let place = reference.object();
    let values = secrets.find(&reference.namespace, &reference.name).await?.ok_or_else(|| {
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
    Ok(clients.client(&Credential::Token(token)))
}
