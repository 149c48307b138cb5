//! The Secret with a service token's credentials, in the route's namespace.
//!
//! It holds them under both names that older operators used, belongs to the route, and carries a digest of what it
//! holds: a Secret that was edited is worth as little as one that is gone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use portolan_core::{ObjectKey, Problem};
use portolan_zerotrust_model::{HttpRoute, annotations, names, reasons};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What tells our Secrets from others.
pub(crate) const SELECTOR: &str = "app.kubernetes.io/component=service-token";
const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "service-token");
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "cfzt-operator");
/// Keys of the client id.
const ID_KEYS: [&str; 2] = ["client_id", "CF_ACCESS_CLIENT_ID"];
/// Keys of the client secret.
const SECRET_KEYS: [&str; 2] = ["client_secret", "CF_ACCESS_CLIENT_SECRET"];

/// The credentials of a token.
pub(crate) struct TokenCredentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
}

impl TokenCredentials {
    /// Reads what a worker handed over, or what a Secret of ours holds.
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        let text = |keys: [&str; 2]| {
            let data = secret.data.as_ref()?;
            let value = keys.iter().find_map(|key| data.get(*key))?;
            String::from_utf8(value.0.clone()).ok().filter(|text| !text.is_empty())
        };
        Some(Self { client_id: text(ID_KEYS)?, client_secret: SecretString::from(text(SECRET_KEYS)?) })
    }

    fn digest(&self) -> String {
        let text = format!("{}\n{}", self.client_id, self.client_secret.expose_secret());
        Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
            hex
        })
    }
}

/// What a Secret of the wanted name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundSecret {
    /// There is none.
    Missing,
    /// It is ours and as it was written.
    Whole,
    /// It is ours, but not as it was written.
    Edited,
    /// It is somebody else's.
    Foreign,
}

/// Looks at a Secret. One whose name is recorded is ours whatever it carries: an older operator made it.
pub(crate) fn judge(secret: Option<&Secret>, recorded: bool, client_id: Option<&str>) -> FoundSecret {
    portolan_core::waypoint!();
    let Some(secret) = secret else { return FoundSecret::Missing };
    let ours = secret.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1) || recorded;
    if !ours {
        return FoundSecret::Foreign;
    }
    let Some(credentials) = TokenCredentials::read(secret) else { return FoundSecret::Edited };
    let digest = secret.annotations().get(&annotations::name("digest"));
    let same = digest.is_none_or(|digest| *digest == credentials.digest());
    let expected = client_id.is_none_or(|id| id == credentials.client_id);
    if same && expected && is_paired(secret, digest.is_some()) { FoundSecret::Whole } else { FoundSecret::Edited }
}

/// Ours hold everything twice; those of older operators once.
fn is_paired(secret: &Secret, ours: bool) -> bool {
    let data = secret.data.as_ref();
    let same = |keys: [&str; 2]| data.is_some_and(|data| data.get(keys[0]) == data.get(keys[1]));
    !ours || (same(ID_KEYS) && same(SECRET_KEYS))
}

/// A Secret of somebody else is in the way.
pub(crate) fn conflict(name: &str) -> Problem {
    let message = format!(
        "Secret {name} exists and is not ours: delete or rename it, so that the token's credentials can be stored under \
         that name"
    );
    Problem::waiting(reasons::SECRET_CONFLICT, message)
}

/// A Secret as it is applied.
pub(crate) fn manifest(secret: &Secret) -> Value {
    let mut manifest = json!(secret);
    manifest["apiVersion"] = json!("v1");
    manifest["kind"] = json!("Secret");
    manifest
}

/// The Secret of a route.
pub(crate) fn secret(route: &HttpRoute, name: &str, credentials: &TokenCredentials) -> Secret {
    let key = ObjectKey::namespaced(route.namespace().unwrap_or_default(), route.name_any());
    let text = |text: &str| ByteString(text.as_bytes().to_vec());
    let mut data = BTreeMap::new();
    for key in ID_KEYS {
        data.insert(key.to_owned(), text(&credentials.client_id));
    }
    for key in SECRET_KEYS {
        data.insert(key.to_owned(), text(credentials.client_secret.expose_secret()));
    }
    let labels = [COMPONENT, MANAGED_BY].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let labels = labels.into_iter().chain([(annotations::name("httproute-name"), names::label(&key.name))]);
    let notes =
        [(annotations::name("digest"), credentials.digest()), (annotations::name("httproute-name"), key.name.clone())];
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: key.namespace,
            labels: Some(labels.collect()),
            annotations: Some(notes.into()),
            owner_references: Some(vec![owner(route)]),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

fn owner(route: &HttpRoute) -> OwnerReference {
    OwnerReference {
        api_version: HttpRoute::api_version(&()).into_owned(),
        kind: HttpRoute::kind(&()).into_owned(),
        name: route.name_any(),
        uid: route.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// The route that a Secret of ours belongs to.
pub(crate) fn route_of(secret: &ObjectMeta) -> Option<ObjectKey> {
    let name = secret.annotations.as_ref()?.get(&annotations::name("httproute-name"))?;
    Some(ObjectKey::namespaced(secret.namespace.clone()?, name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> HttpRoute {
        let metadata = ObjectMeta {
            name: Some("api".to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some("u1".to_owned()),
            ..ObjectMeta::default()
        };
        HttpRoute { metadata, ..HttpRoute::default() }
    }

    fn made() -> Secret {
        let credentials = TokenCredentials { client_id: "id.access".to_owned(), client_secret: "s3cret".into() };
        secret(&route(), "api-cfzt-service-token", &credentials)
    }

    #[test]
    fn scenario_03_the_secret_holds_both_pairs_and_belongs_to_the_route() {
        let made = made();

        let keys: Vec<_> = made.data.as_ref().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["CF_ACCESS_CLIENT_ID", "CF_ACCESS_CLIENT_SECRET", "client_id", "client_secret"]);
        assert_eq!(made.owner_references()[0].uid, "u1");
        assert_eq!(route_of(&made.metadata), Some(ObjectKey::namespaced("shop", "api")));
        assert_eq!(judge(Some(&made), false, Some("id.access")), FoundSecret::Whole);
    }

    #[test]
    fn an_edited_secret_or_one_of_another_token_is_not_whole() {
        let mut edited = made();
        edited.data.as_mut().unwrap().insert("client_secret".to_owned(), ByteString(b"guess".to_vec()));

        assert_eq!(judge(Some(&edited), false, Some("id.access")), FoundSecret::Edited);
        assert_eq!(judge(Some(&made()), false, Some("another")), FoundSecret::Edited);
        edited.data = None;
        assert_eq!(judge(Some(&edited), false, None), FoundSecret::Edited);
    }

    #[test]
    fn a_secret_without_our_label_is_somebody_elses_unless_it_is_recorded() {
        let mut older = made();
        older.metadata.labels = None;
        older.metadata.annotations = None;
        older.data.as_mut().unwrap().retain(|key, _| key.starts_with("CF_"));

        assert_eq!(judge(Some(&older), false, None), FoundSecret::Foreign);
        assert_eq!(judge(Some(&older), true, None), FoundSecret::Whole);
        assert_eq!(judge(None, true, None), FoundSecret::Missing);
    }

    #[test]
    fn the_digest_says_nothing_of_the_secret() {
        assert!(!made().annotations().values().any(|value| value.contains("s3cret")));
    }
}
