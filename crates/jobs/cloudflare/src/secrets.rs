//! Secrets that credentials name: read when needed, kept until a watch says that one changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use portolan_core::{ObjectKey, Problem, reasons};
use secrecy::SecretString;

/// One Secret's values, where they are text.
pub(crate) type Values = Arc<BTreeMap<String, SecretString>>;

/// Reads Secrets by need.
#[derive(Clone)]
pub(crate) struct Secrets {
    client: Client,
    kept: Arc<Mutex<HashMap<ObjectKey, Values>>>,
}

impl Secrets {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kept: Arc::default() }
    }

    /// The Secret's values; waits (as a problem) where it does not exist.
    pub(crate) async fn read(&self, namespace: &str, name: &str) -> Result<Values, Problem> {
        let key = ObjectKey { namespace: Some(namespace.to_owned()), name: name.to_owned() };
        if let Some(values) = self.kept().get(&key) {
            return Ok(Arc::clone(values));
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(name).await.map_err(|error| unreadable(&key, &error))?;
        let Some(secret) = found else {
            return Err(Problem::waiting(
                reasons::DEPENDENCY_ERROR,
                format!("Secret {key} does not exist; create it, or correct the reference to it"),
            ));
        };
        let values: Values = Arc::new(texts(secret));
        self.kept().insert(key, Arc::clone(&values));
        Ok(values)
    }

    /// Forgets a Secret that changed or went.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.kept().remove(key);
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Values>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn texts(secret: Secret) -> BTreeMap<String, SecretString> {
    let data = secret.data.unwrap_or_default();
    data.into_iter()
        .filter_map(|(key, value)| Some((key, SecretString::from(String::from_utf8(value.0).ok()?.trim().to_owned()))))
        .filter(|(_, value)| !secrecy::ExposeSecret::expose_secret(value).is_empty())
        .collect()
}

fn unreadable(key: &ObjectKey, error: &kube::Error) -> Problem {
    match error {
        kube::Error::Api(status) if status.code == 403 => Problem::denied(
            reasons::DEPENDENCY_ERROR,
            format!("Secret {key} may not be read: {}; give the operator's role `get` on it", status.message),
        ),
        other => Problem::transient(reasons::DEPENDENCY_ERROR, format!("reading Secret {key}: {other}")),
    }
}
