//! Credential Secrets that may not vanish while something needs them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use portolan_core::ObjectKey;
use portolan_engine::{CancellationToken, SecretGuard, SecretNeed};
use serde_json::json;

use crate::world::World;

const FINALIZER: &str = "portolan.dev/credential-test";
const SOON: Duration = Duration::from_secs(2);

/// A guard at work, who needs what, and the Secret `shop/token`.
struct Guarded {
    world: World,
    guard: SecretGuard,
    needed: Arc<Mutex<BTreeMap<ObjectKey, SecretNeed>>>,
    stop: CancellationToken,
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("shop", "token")
}

impl Guarded {
    async fn start() -> Self {
        let world = World::empty().await;
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
        Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let guard = SecretGuard::new(&world.context, FINALIZER, true);
        let guarded = Self { world, guard, needed: Arc::default(), stop: CancellationToken::new() };
        guarded.make().await;
        guarded.run();
        guarded
    }

    fn run(&self) {
        let needed = Arc::clone(&self.needed);
        let keeper = self.guard.keeper(self.stop.clone(), async {}, move || needed.lock().unwrap().clone());
        tokio::spawn(keeper.run());
    }

    fn api(&self) -> Api<Secret> {
        Api::namespaced(self.world.client.clone(), "shop")
    }

    async fn make(&self) {
        let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "token"}})).unwrap();
        self.api().create(&PostParams::default(), &secret).await.unwrap();
    }

    async fn need(&self, need: Option<SecretNeed>) {
        *self.needed.lock().unwrap() = need.map(|need| (key(), need)).into_iter().collect();
        self.guard.look_again();
        self.pass(SOON).await;
    }

    async fn delete(&self) {
        self.api().delete("token", &DeleteParams::default()).await.unwrap();
        self.pass(SOON).await;
    }

    /// Lets time pass, and what the watch would bring arrive.
    async fn pass(&self, time: Duration) {
        for _ in 0..2 {
            match self.api().get_metadata_opt("token").await.unwrap() {
                Some(found) => self.guard.seen(&found.metadata),
                None => self.guard.gone(&key()),
            }
            tokio::time::sleep(time / 2).await;
        }
    }

    /// The Secret's finalizers without the installation's part; none where it is gone.
    async fn finalizers(&self) -> Option<Vec<String>> {
        let secret = self.api().get_opt("token").await.unwrap()?;
        let job = |name: &String| name.rsplit_once('-').map(|(job, _)| job.to_owned()).unwrap_or_default();
        Some(secret.finalizers().iter().map(job).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn finding_5_a_secret_stays_readable_until_nothing_that_goes_needs_it() {
    let guarded = Guarded::start().await;
    assert!(guarded.guard.hold(&key()).await.unwrap());
    guarded.need(Some(SecretNeed::Staying)).await;
    assert_eq!(guarded.finalizers().await.unwrap(), [FINALIZER]);

    guarded.need(Some(SecretNeed::Leaving)).await;
    guarded.delete().await;
    guarded.pass(Duration::from_secs(3600)).await;
    assert!(guarded.finalizers().await.is_some(), "what goes is still to be taken down with it");
    assert!(!guarded.guard.hold(&key()).await.unwrap(), "nothing new is made with it");

    guarded.need(None).await;
    assert_eq!(guarded.finalizers().await, None);
}

#[tokio::test(start_paused = true)]
async fn finding_5_a_secret_that_is_replaced_goes_before_long_and_its_successor_is_held() {
    let guarded = Guarded::start().await;
    guarded.need(Some(SecretNeed::Staying)).await;

    guarded.delete().await;
    assert!(guarded.finalizers().await.is_some(), "its users may follow");
    guarded.pass(Duration::from_secs(12)).await;
    assert_eq!(guarded.finalizers().await, None, "they stay: somebody replaces it");

    guarded.make().await;
    guarded.pass(SOON).await;
    assert_eq!(guarded.finalizers().await.unwrap(), [FINALIZER]);
}

#[tokio::test(start_paused = true)]
async fn finding_5_a_secret_of_a_namespace_that_ends_waits_for_everything_published_with_it() {
    let guarded = Guarded::start().await;
    guarded.need(Some(SecretNeed::Staying)).await;

    let namespaces: Api<Namespace> = Api::all(guarded.world.client.clone());
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    guarded.pass(Duration::from_secs(600)).await;
    assert!(guarded.finalizers().await.is_some());

    guarded.need(None).await;
    guarded.pass(Duration::from_secs(60)).await;
    assert_eq!(guarded.finalizers().await, None);
    assert!(namespaces.get_opt("shop").await.unwrap().is_none(), "the namespace ends");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_nothing_needs_loses_the_finalizer_after_a_crash_too() {
    let guarded = Guarded::start().await;
    guarded.need(Some(SecretNeed::Staying)).await;
    guarded.stop.cancel();

    let anew = Guarded {
        guard: SecretGuard::new(&guarded.world.context, FINALIZER, true),
        needed: Arc::default(),
        stop: CancellationToken::new(),
        world: guarded.world,
    };
    anew.run();
    anew.pass(SOON).await;

    assert_eq!(anew.finalizers().await.unwrap(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_asked_for_is_held_before_anything_is_recorded() {
    let guarded = Guarded::start().await;

    assert!(guarded.guard.hold(&key()).await.unwrap());
    guarded.pass(Duration::from_secs(20)).await;
    assert_eq!(guarded.finalizers().await.unwrap(), [FINALIZER]);

    guarded.pass(Duration::from_secs(60)).await;
    assert_eq!(guarded.finalizers().await.unwrap(), [""; 0], "nothing came of it");
    assert!(!guarded.guard.hold(&ObjectKey::namespaced("shop", "missing")).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn two_jobs_guard_one_secret_each_with_a_finalizer_of_its_own() {
    let guarded = Guarded::start().await;
    guarded.need(Some(SecretNeed::Staying)).await;
    let other = SecretGuard::new(&guarded.world.context, "portolan.dev/credential-other", true);
    assert!(other.hold(&key()).await.unwrap());

    guarded.need(None).await;

    assert_eq!(guarded.finalizers().await.unwrap(), ["portolan.dev/credential-other"]);
}

#[tokio::test(start_paused = true)]
async fn two_installations_of_one_cluster_leave_each_others_finalizers_alone() {
    let guarded = Guarded::start().await;
    let mut context = (*guarded.world.context).clone();
    "elsewhere".clone_into(&mut context.operator_namespace);
    let other = SecretGuard::new(&context, FINALIZER, true);
    assert!(other.hold(&key()).await.unwrap());
    guarded.need(Some(SecretNeed::Staying)).await;
    assert_eq!(guarded.finalizers().await.unwrap().len(), 2);

    guarded.need(None).await;

    assert_eq!(guarded.finalizers().await.unwrap().len(), 1, "the other installation's stays");
}
