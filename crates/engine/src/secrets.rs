//! Secrets that objects name: read when needed, kept until a watch says that one changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use portolan_core::{ObjectKey, Problem, reasons};
use secrecy::{ExposeSecret as _, SecretString};

use crate::status::in_time;

/// One Secret's values, where they are text.
pub type SecretValues = Arc<BTreeMap<String, SecretString>>;

/// Reads Secrets by need. Clones share what is kept.
#[derive(Clone)]
pub struct Secrets {
    client: Client,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    values: HashMap<ObjectKey, SecretValues>,
    /// Counts what was forgotten: what was read before that may be old.
    forgotten: u64,
}

impl Secrets {
    /// Nothing is kept yet.
    pub fn new(client: Client) -> Self {
        Self { client, kept: Arc::default() }
    }

    /// The Secret's values; waits (as a problem) where it does not exist.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<SecretValues, Problem> {
        self.find(namespace, name).await?.ok_or_else(|| {
            Problem::waiting(
                reasons::DEPENDENCY_ERROR,
                format!("Secret {namespace}/{name} does not exist; create it, or correct the reference to it"),
            )
        })
    }

    /// The Secret's values, if it exists.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<SecretValues>, Problem> {
        let key = ObjectKey { namespace: Some(namespace.to_owned()), name: name.to_owned() };
        let forgotten = {
            let kept = self.kept();
            if let Some(values) = kept.values.get(&key) {
                return Ok(Some(Arc::clone(values)));
            }
            kept.forgotten
        };
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let found = in_time(api.get_opt(name)).await.map_err(|error| unreadable(&key, &error))?;
        let Some(secret) = found else { return Ok(None) };
        let values: SecretValues = Arc::new(texts(secret));
        let mut kept = self.kept();
        if kept.forgotten == forgotten {
            kept.values.insert(key, Arc::clone(&values));
        }
        Ok(Some(values))
    }

    /// Forgets a Secret that changed or went.
    pub fn forget(&self, key: &ObjectKey) {
        let mut kept = self.kept();
        kept.values.remove(key);
        kept.forgotten += 1;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn texts(secret: Secret) -> BTreeMap<String, SecretString> {
    let data = secret.data.unwrap_or_default();
    data.into_iter()
        .filter_map(|(key, value)| Some((key, SecretString::from(String::from_utf8(value.0).ok()?.trim().to_owned()))))
        .filter(|(_, value)| !value.expose_secret().is_empty())
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

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn values_are_texts_without_the_blanks_around_them_and_others_are_left_out() {
        let data = [("token", b" t1\n".to_vec()), ("empty", b" ".to_vec()), ("binary", vec![0xff])];
        let data = data.map(|(key, value)| (key.to_owned(), ByteString(value)));

        let values = texts(Secret { data: Some(data.into()), ..Secret::default() });

        assert_eq!(values.keys().collect::<Vec<_>>(), ["token"]);
        assert_eq!(values["token"].expose_secret(), "t1");
    }
}
