//! Which Secrets must stay readable: those that something at Cloudflare can only be removed with.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kube::api::ObjectMeta;
use portolan_core::{ObjectKey, Problem, reasons};
use portolan_engine::{CREDENTIAL_FINALIZERS, CancellationToken, SecretNeed, Task};

use crate::job::JobContext;
use crate::projection;

/// What the finalizer begins with that keeps the Secrets of this job.
pub(crate) const FINALIZER: &str = "portolan.dev/credential-cloudflare";
/// How often it is looked whether everything that is recorded is known.
const LOOK: Duration = Duration::from_millis(100);

/// By what credential something was made, as far as it says which Secret that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MadeWith {
    /// By a `CloudflareCredentials`, by the digest of its name.
    Credentials(u64),
    /// By a Secret that the object named itself.
    Secret(ObjectKey),
}

impl JobContext {
    /// Makes sure that a Secret cannot vanish before what is made with it.
    pub(crate) async fn hold(&self, secret: &ObjectKey) -> Result<(), Problem> {
        if self.guard.hold(secret).await? {
            return Ok(());
        }
        let message = format!("Secret {secret} is being deleted; nothing new is made with it");
        Err(Problem::waiting(reasons::DEPENDENCY_ERROR, message))
    }

    /// A watch brought a Secret. A guard's finalizer on it, or off it, is no reason to run what uses it.
    pub(crate) fn secret_seen(&self, meta: &ObjectMeta) {
        self.guard.seen(meta);
        let key = portolan_engine::key_of(meta);
        let guards = meta.finalizers.iter().flatten().filter(|name| name.starts_with(CREDENTIAL_FINALIZERS));
        let guards: Vec<String> = guards.cloned().collect();
        let before = {
            let mut guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
            let known =
                if guards.is_empty() { guarded.remove(&key) } else { guarded.insert(key.clone(), guards.clone()) };
            known.unwrap_or_default()
        };
        if before != guards {
            return self.secrets.forget(&key);
        }
        self.secret_changed(&key);
    }

    /// A watch says that a Secret is gone.
    pub(crate) fn secret_gone(&self, key: &ObjectKey) {
        self.guard.gone(key);
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.secret_changed(key);
    }

    /// Keeps the finalizers of Secrets true.
    pub(crate) fn secret_keeper(self: &Arc<Self>, shutdown: CancellationToken) -> Task {
        let (listed, shared) = (Arc::clone(self), Arc::clone(self));
        let ready = async move {
            listed.caches_ready().await;
            while !listed.triggers.are_listed() {
                tokio::time::sleep(LOOK).await;
            }
        };
        self.guard.keeper(shutdown, ready, move || shared.needed_secrets())
    }

    fn needed_secrets(&self) -> BTreeMap<ObjectKey, SecretNeed> {
        let mut needed: BTreeMap<ObjectKey, SecretNeed> = BTreeMap::new();
        let mut credentials: HashMap<u64, SecretNeed> = HashMap::new();
        for (made_with, need) in self.triggers.made_with(&self.operator_namespace) {
            match made_with {
                MadeWith::Credentials(digest) => raise(credentials.entry(digest).or_insert(need), need),
                MadeWith::Secret(key) => raise(needed.entry(key).or_insert(need), need),
            }
        }
        for one in self.credentials.iter() {
            let name = one.metadata.name.as_deref().unwrap_or_default();
            if let Some(need) = credentials.get(&projection::digest(&projection::credentials(name))) {
                let reference = &one.spec.secret_ref;
                let namespace = reference.namespace_or(&self.operator_namespace);
                let key = ObjectKey::namespaced(namespace, &reference.name);
                raise(needed.entry(key).or_insert(*need), *need);
            }
        }
        needed
    }
}

fn raise(known: &mut SecretNeed, need: SecretNeed) {
    *known = need.max(*known);
}
