//! Secrets that objects name: read when needed, kept until a watch says that one changed, or for a while.

pub(crate) mod guard;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use portolan_core::{ObjectKey, Problem, reasons};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

use crate::pass::status::in_time;

/// One Secret's values, where they are text.
pub type SecretValues = Arc<BTreeMap<String, SecretString>>;

/// Which content a Secret had: nobody can tell two contents of one version apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretVersion(Option<(String, String)>);

/// A Secret as it was found, or that there is none.
#[derive(Clone)]
pub struct FoundSecret {
    /// Its values, if it exists.
    pub values: Option<SecretValues>,
    /// Which content that is.
    pub version: SecretVersion,
}

/// Reads Secrets by need. Clones share what is kept.
#[derive(Clone)]
pub struct Secrets {
    client: Client,
    /// How long a Secret is kept; none keeps it until it is forgotten.
    longest: Option<Duration>,
    kept: Arc<Mutex<SecretMemory>>,
}

#[derive(Default)]
struct SecretMemory {
    secrets: HashMap<ObjectKey, KeptSecret>,
    /// Who wants to read a Secret waits for who reads it already.
    lines: HashMap<ObjectKey, Arc<tokio::sync::Mutex<()>>>,
    /// Counts what was forgotten: what was read before that may be old.
    forgotten: u64,
}

struct KeptSecret {
    found: FoundSecret,
    read: Instant,
}

impl Secrets {
    /// Nothing is kept yet; what is read is kept until it is forgotten, for which somebody has to watch.
    pub fn new(client: Client) -> Self {
        Self { client, longest: None, kept: Arc::default() }
    }

    /// Nothing is kept yet; what is read is kept for a while. Nobody has to watch, and nobody needs to be allowed to.
    pub fn kept_for(client: Client, longest: Duration) -> Self {
        Self { longest: Some(longest), ..Self::new(client) }
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
        Ok(self.found(&ObjectKey::namespaced(namespace, name)).await?.values)
    }

    /// What there is of a Secret, and which content of it.
    pub async fn found(&self, key: &ObjectKey) -> Result<FoundSecret, Problem> {
        portolan_core::waypoint!();
        if let Some(found) = self.known(key) {
            return Ok(found);
        }
        let line = Arc::clone(self.kept().lines.entry(key.clone()).or_default());
        let _turn = line.lock().await;
        if let Some(found) = self.known(key) {
            return Ok(found);
        }
        self.tidy();
        let forgotten = self.kept().forgotten;
        let secret = in_time(self.api(key).get_opt(&key.name)).await.map_err(|error| unreadable(key, &error))?;
        let version = SecretVersion::of(secret.as_ref().map(|secret| &secret.metadata));
        let found = FoundSecret { values: secret.map(|secret| Arc::new(texts(secret))), version };
        let mut kept = self.kept();
        // One that is missing may come any moment.
        if kept.forgotten == forgotten && found.values.is_some() {
            kept.secrets.insert(key.clone(), KeptSecret { found: found.clone(), read: Instant::now() });
        }
        Ok(found)
    }

    /// Looks which content a Secret has now, without reading it. One that is kept and has another is forgotten.
    pub async fn look(&self, key: &ObjectKey) -> Result<SecretVersion, Problem> {
        let found = in_time(self.api(key).get_metadata_opt(&key.name)).await;
        let found = found.map_err(|error| unreadable(key, &error))?;
        let version = SecretVersion::of(found.as_ref().map(|secret| &secret.metadata));
        if self.known(key).is_some_and(|kept| kept.version != version) {
            self.forget(key);
        }
        Ok(version)
    }

    /// Forgets a Secret that changed or went.
    pub fn forget(&self, key: &ObjectKey) {
        let mut kept = self.kept();
        kept.secrets.remove(key);
        kept.forgotten += 1;
    }

    /// Lets go of what is too old to be used, and of lines in which nobody waits.
    fn tidy(&self) {
        let mut kept = self.kept();
        kept.secrets.retain(|_, secret| self.is_fresh(secret));
        kept.lines.retain(|_, line| Arc::strong_count(line) > 1);
    }

    fn is_fresh(&self, secret: &KeptSecret) -> bool {
        self.longest.is_none_or(|longest| secret.read.elapsed() < longest)
    }

    fn known(&self, key: &ObjectKey) -> Option<FoundSecret> {
        let kept = self.kept();
        let secret = kept.secrets.get(key)?;
        self.is_fresh(secret).then(|| secret.found.clone())
    }

    fn api(&self, key: &ObjectKey) -> Api<Secret> {
        Api::namespaced(self.client.clone(), key.namespace.as_deref().unwrap_or_default())
    }

    fn kept(&self) -> MutexGuard<'_, SecretMemory> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecretVersion {
    fn of(metadata: Option<&ObjectMeta>) -> Self {
        let version = |metadata: &ObjectMeta| {
            (metadata.uid.clone().unwrap_or_default(), metadata.resource_version.clone().unwrap_or_default())
        };
        Self(metadata.map(version))
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
