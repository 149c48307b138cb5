//! A namespace's name → whether it is going, with everything in it.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

use crate::pass::status::in_time;

/// Whether a namespace is being deleted. Where that cannot be read, it is not; nor is what is in none.
pub async fn is_ending(client: &Client, namespace: Option<&str>) -> bool {
    let Some(namespace) = namespace else { return false };
    state_of(client, namespace).await.is_ok_and(|state| state == NamespaceState::Ending)
}

/// What becomes of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceState {
    Stays,
    Ending,
    Gone,
}

pub(crate) async fn state_of(client: &Client, namespace: &str) -> Result<NamespaceState, kube::Error> {
    let api: Api<Namespace> = Api::all(client.clone());
    let found = in_time(api.get_metadata_opt(namespace)).await?;
    Ok(match found {
        None => NamespaceState::Gone,
        Some(found) if found.metadata.deletion_timestamp.is_some() => NamespaceState::Ending,
        Some(_) => NamespaceState::Stays,
    })
}
