//! Credential Secrets that stay readable while something can only be taken down with them.
//!
//! A Secret without a finalizer is the first to go when its namespace is deleted, and what was published with it could
//! never be taken down. So whoever publishes [holds](SecretGuard::hold) the Secret first, and a keeper takes the
//! finalizer off when nothing recorded needs the Secret any more. One that is deleted while those who need it stay is
//! let go after a moment: somebody replaces it. Each job has a finalizer of its own, so that none counts for the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use portolan_core::{ObjectKey, Problem, digest_hex};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, FIELD_MANAGER, WriteMode};
use crate::dispatch::fingerprint::key_of;
use crate::jobs::task::Task;
use crate::namespaces::{NamespaceState, state_of};
use crate::pass::finalizer::Finalizers;
use crate::pass::kubernetes_problem;
use crate::pass::status::in_time;

/// What the finalizers of all jobs begin with.
pub const CREDENTIAL_FINALIZERS: &str = "portolan.dev/credential-";
/// A deleted Secret whose users stay is let go after this: who deletes everything does not begin with the users.
const LINGER: Duration = Duration::from_secs(10);
/// So long a Secret that was asked for stays held, though nothing is recorded yet.
const PINNED: Duration = Duration::from_secs(60);
/// What was refused is tried again after this; a deleted Secret that is kept is looked at as often.
const AGAIN: Duration = Duration::from_secs(30);
/// Changes that come together are looked at together.
const GATHERING: Duration = Duration::from_millis(500);
/// How often a Secret is tried that others write at the same time.
const ATTEMPTS: usize = 5;

/// Who needs a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretNeed {
    /// Only what is itself going: it has to be taken down with the Secret, however long that takes.
    Leaving,
    /// Something that stays.
    Staying,
}

/// Puts one job's finalizer on Secrets, and takes it off. Clones share what is known.
#[derive(Clone)]
pub struct SecretGuard {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    finalizer: &'static str,
    /// Whether finalizers are put on at all.
    enabled: bool,
    known: Mutex<KnownSecrets>,
    news: Notify,
    /// Whether there is something that the keeper has not looked at.
    stirred: AtomicBool,
}

#[derive(Default)]
struct KnownSecrets {
    /// Secrets that carry the finalizer.
    held: BTreeMap<ObjectKey, Sight>,
    /// Secrets that were asked for a moment ago.
    pinned: BTreeMap<ObjectKey, Instant>,
    /// Secrets that something needs, as of the keeper's last look.
    needed: BTreeSet<ObjectKey>,
}

/// A Secret that carries the finalizer.
#[derive(Clone, Debug)]
struct Sight {
    meta: ObjectMeta,
    /// Since when it is known to be deleted.
    leaving: Option<Instant>,
}

/// What is to become of a Secret that carries the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Kept, and worth a look then.
    KeptUntil(Instant),
    LetGo,
}

/// What is to become of a Secret that is needed so, was deleted then, and was asked for then. Pure.
fn fate(need: Option<SecretNeed>, leaving: Option<Instant>, namespace_ends: bool, pinned: Option<Instant>) -> Fate {
    match (need, leaving) {
        (None, None) => pinned.map_or(Fate::LetGo, |since| Fate::KeptUntil(since + PINNED)),
        (None, Some(_)) => Fate::LetGo,
        (Some(SecretNeed::Staying), Some(since)) if !namespace_ends => Fate::KeptUntil(since + LINGER),
        (Some(_), _) => Fate::Kept,
    }
}

impl SecretGuard {
    /// A guard with a job's own finalizer, which begins with `finalizer`: each installation in a cluster has another. One
    /// that is not enabled holds nothing, and its keeper lets everything go.
    pub fn new(context: &Context, finalizer: &'static str, enabled: bool) -> Self {
        let inner = Inner {
            client: context.client.clone(),
            // One for each start of a job.
            finalizer: format!("{finalizer}-{}", digest_hex([context.operator_namespace.as_str()], 8)).leak(),
            enabled: enabled && context.mode == WriteMode::Live,
            known: Mutex::default(),
            news: Notify::new(),
            stirred: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A watch of Secrets brought one.
    pub fn seen(&self, meta: &ObjectMeta) {
        let key = key_of(meta);
        let mut known = self.known();
        let held = carries(meta, self.inner.finalizer);
        let concerns = held || known.held.contains_key(&key) || known.needed.contains(&key);
        if held {
            known.see(key, meta);
        } else {
            known.held.remove(&key);
        }
        drop(known);
        if concerns {
            self.look_again();
        }
    }

    /// A watch of Secrets says that one is gone.
    pub fn gone(&self, key: &ObjectKey) {
        self.known().held.remove(key);
    }

    /// What is recorded changed: the keeper looks who needs what now.
    pub fn look_again(&self) {
        self.inner.stirred.store(true, Ordering::Relaxed);
        self.inner.news.notify_one();
    }

    /// Makes sure that a Secret cannot vanish, before something is made with it. False where there is none, or it is
    /// going already: then nothing new should be made with it.
    pub async fn hold(&self, key: &ObjectKey) -> Result<bool, Problem> {
        if !self.inner.enabled {
            return Ok(true);
        }
        {
            let mut known = self.known();
            known.pinned.insert(key.clone(), Instant::now());
            if let Some(sight) = known.held.get(key) {
                return Ok(sight.leaving.is_none());
            }
        }
        self.put_on(key).await
    }

    /// Takes the finalizer off a Secret that is being deleted, whoever needs it.
    pub async fn abandon(&self, key: &ObjectKey) -> Result<(), Problem> {
        let sight = self.known().held.get(key).cloned();
        match sight.filter(|sight| sight.leaving.is_some()) {
            Some(sight) => self.take_off(key, &sight.meta).await,
            None => Ok(()),
        }
    }

    /// The task that keeps the finalizers true: `ready` ends when what is recorded is known, and `needed` tells who
    /// needs what by then.
    pub fn keeper(
        &self,
        shutdown: CancellationToken,
        ready: impl Future<Output = ()> + Send + 'static,
        needed: impl Fn() -> BTreeMap<ObjectKey, SecretNeed> + Send + Sync + 'static,
    ) -> Task {
        let (guard, busy) = (self.clone(), Arc::clone(&self.inner));
        let run = async move {
            let keep = async {
                ready.await;
                guard.keep(needed).await;
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = keep => {}
            }
        };
        Task::new("credential Secrets", move || usize::from(busy.stirred.load(Ordering::Relaxed)), run)
    }

    async fn keep(&self, needed: impl Fn() -> BTreeMap<ObjectKey, SecretNeed>) {
        loop {
            self.inner.stirred.store(false, Ordering::Relaxed);
            let needed = if self.inner.enabled { needed() } else { BTreeMap::new() };
            let next = self.round(&needed).await;
            let rest = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.inner.news.notified() => tokio::time::sleep(GATHERING).await,
                () = rest => {}
            }
        }
    }

    /// Makes the finalizers what they should be; tells when to look again though nothing happens.
    async fn round(&self, needed: &BTreeMap<ObjectKey, SecretNeed>) -> Option<Instant> {
        let mut next: Vec<Instant> = Vec::new();
        let (held, pinned) = {
            let mut known = self.known();
            known.needed = needed.keys().cloned().collect();
            known.pinned.retain(|_, since| since.elapsed() < PINNED);
            (known.held.clone(), known.pinned.clone())
        };
        for key in needed.keys().filter(|key| !held.contains_key(*key)) {
            if let Err(problem) = self.put_on(key).await {
                tracing::warn!(secret = %key, error = %problem, "A credential could not be kept from vanishing");
                next.push(Instant::now() + AGAIN);
            }
        }
        for (key, sight) in held {
            let need = needed.get(&key).copied();
            let ends = match (need, sight.leaving) {
                (Some(SecretNeed::Staying), Some(_)) => self.namespace_ends(&key).await,
                _ => Ok(false),
            };
            next.extend(match ends {
                Ok(ends) => self.settle(&key, &sight, fate(need, sight.leaving, ends, pinned.get(&key).copied())).await,
                Err(problem) => {
                    tracing::warn!(secret = %key, error = %problem, "Whether a namespace is going is not known");
                    Some(Instant::now() + AGAIN)
                }
            });
        }
        next.into_iter().min()
    }

    /// Does what is to become of a Secret; tells when it is worth another look.
    async fn settle(&self, key: &ObjectKey, sight: &Sight, fate: Fate) -> Option<Instant> {
        match fate {
            Fate::Kept => sight.leaving.map(|_| Instant::now() + AGAIN),
            Fate::KeptUntil(then) if then > Instant::now() => Some(then),
            Fate::KeptUntil(_) | Fate::LetGo => match self.take_off(key, &sight.meta).await {
                Ok(()) => None,
                Err(problem) => {
                    tracing::warn!(secret = %key, error = %problem, "A credential could not be let go");
                    Some(Instant::now() + AGAIN)
                }
            },
        }
    }

    /// Whether a Secret's namespace is being deleted.
    async fn namespace_ends(&self, key: &ObjectKey) -> Result<bool, Problem> {
        let name = key.namespace.as_deref().unwrap_or_default();
        let state = state_of(&self.inner.client, name).await;
        let state = state.map_err(|error| kubernetes_problem(format_args!("reading Namespace {name}"), &error))?;
        Ok(state != NamespaceState::Stays)
    }

    async fn put_on(&self, key: &ObjectKey) -> Result<bool, Problem> {
        for _ in 0..ATTEMPTS {
            let found = in_time(self.api(key).get_metadata_opt(&key.name)).await;
            let found = found.map_err(|error| kubernetes_problem(format_args!("reading Secret {key}"), &error))?;
            let Some(found) = found else { return Ok(false) };
            let (meta, leaving) = (found.metadata, |meta: &ObjectMeta| meta.deletion_timestamp.is_some());
            if carries(&meta, self.inner.finalizer) {
                self.known().see(key.clone(), &meta);
                return Ok(!leaving(&meta));
            }
            let Some(patch) = self.finalizers().adding(&meta).filter(|_| !leaving(&meta)) else { return Ok(false) };
            if let Some(written) = self.patch(key, patch).await? {
                self.known().see(key.clone(), &written);
                return Ok(!leaving(&written));
            }
        }
        Err(written_all_the_time(key))
    }

    async fn take_off(&self, key: &ObjectKey, seen: &ObjectMeta) -> Result<(), Problem> {
        let mut meta = seen.clone();
        for _ in 0..ATTEMPTS {
            if self.patch(key, self.finalizers().removing(&meta)).await?.is_some() {
                self.known().held.remove(key);
                return Ok(());
            }
            let found = in_time(self.api(key).get_metadata_opt(&key.name)).await;
            let found = found.map_err(|error| kubernetes_problem(format_args!("reading Secret {key}"), &error))?;
            let Some(found) = found.filter(|found| carries(&found.metadata, self.inner.finalizer)) else {
                self.known().held.remove(key);
                return Ok(());
            };
            meta = found.metadata;
        }
        Err(written_all_the_time(key))
    }

    /// Patches a Secret's finalizers; none where it is not as it was seen, or gone.
    async fn patch(&self, key: &ObjectKey, patch: json_patch::Patch) -> Result<Option<ObjectMeta>, Problem> {
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::<()>::Json(patch);
        match in_time(self.api(key).patch_metadata(&key.name, &parameters, &patch)).await {
            Ok(written) => Ok(Some(written.metadata)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(None),
            Err(error) => Err(kubernetes_problem(format_args!("writing the finalizers of Secret {key}"), &error)),
        }
    }

    fn finalizers(&self) -> Finalizers {
        Finalizers { ours: Some(self.inner.finalizer), older: &[], annotations: &[], replaces: false }
    }

    fn api(&self, key: &ObjectKey) -> Api<Secret> {
        Api::namespaced(self.inner.client.clone(), key.namespace.as_deref().unwrap_or_default())
    }

    fn known(&self) -> MutexGuard<'_, KnownSecrets> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSecrets {
    fn see(&mut self, key: ObjectKey, meta: &ObjectMeta) {
        let before = self.held.get(&key).and_then(|sight| sight.leaving.filter(|_| sight.meta.uid == meta.uid));
        let leaving = meta.deletion_timestamp.as_ref().map(|_| before.unwrap_or_else(Instant::now));
        let meta = ObjectMeta { uid: meta.uid.clone(), finalizers: meta.finalizers.clone(), ..ObjectMeta::default() };
        self.held.insert(key, Sight { meta, leaving });
    }
}

fn carries(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == finalizer)
}

fn written_all_the_time(key: &ObjectKey) -> Problem {
    let message = format!("Secret {key} is written by others all the time; its finalizers could not be");
    Problem::transient(portolan_core::reasons::API_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_secret_stays_as_long_as_it_is_needed_and_its_users_go_with_it() {
        let now = Instant::now();
        let lingers = Fate::KeptUntil(now + LINGER);

        for (need, leaving, ends, fated) in [
            (None, None, false, Fate::LetGo),
            (None, Some(now), true, Fate::LetGo),
            (Some(SecretNeed::Staying), None, false, Fate::Kept),
            (Some(SecretNeed::Leaving), None, false, Fate::Kept),
            (Some(SecretNeed::Staying), Some(now), false, lingers),
            (Some(SecretNeed::Staying), Some(now), true, Fate::Kept),
            (Some(SecretNeed::Leaving), Some(now), false, Fate::Kept),
            (Some(SecretNeed::Leaving), Some(now), true, Fate::Kept),
        ] {
            assert_eq!(fate(need, leaving, ends, None), fated, "{need:?} {leaving:?} {ends}");
        }
        assert_eq!(
            fate(None, None, false, Some(now)),
            Fate::KeptUntil(now + PINNED),
            "something is about to be recorded"
        );
    }
}
