//! One process leads a job at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portolan_engine::{
    CancellationToken, Candidacy, Context, DocumentLock, Election, Job, Leadership, Manager, Task, WriteMode,
};
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::gadget::gadget;
use crate::world::World;

const LEASE: &str = "gadgets.example.com";

fn standing(world: &World, identity: &str) -> Candidacy {
    let namespace = world.context.operator_namespace.clone();
    Candidacy { namespace, lease: LEASE.to_owned(), identity: identity.to_owned() }
}

fn candidate(world: &World, identity: &str) -> Manager {
    Manager::start(&world.context, [world.job().elected(standing(world, identity))])
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

async fn holder(world: &World) -> String {
    let lease = Api::<Lease>::default_namespaced(world.client.clone()).get(LEASE).await.unwrap();
    lease.spec.unwrap().holder_identity.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_stands_by() {
    let world = World::empty().await;
    let first = candidate(&world, "first");
    seconds(5).await;

    let second = candidate(&world, "second");
    seconds(60).await;

    assert_eq!(first.leading(), ["gadgets"]);
    assert!(second.leading().is_empty());
    assert!(second.probes().is_ready(), "standing by is being ready");
    world.create(gadget("a", "1")).await;
    seconds(1).await;
    assert_eq!(world.remote.take_writes(), ["create a"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_hands_over_at_once() {
    let world = World::empty().await;
    let first = candidate(&world, "first");
    seconds(5).await;
    let second = candidate(&world, "second");
    seconds(30).await;

    first.shutdown().await;
    tokio::time::sleep(Duration::from_millis(10)).await;

    assert_eq!(second.leading(), ["gadgets"]);
    assert_eq!(holder(&world).await, "second");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_before_its_renewal_is_answered_hands_over_at_once() {
    let world = World::empty().await;
    let first = candidate(&world, "first");
    seconds(5).await;
    let second = candidate(&world, "second");
    seconds(30).await;
    // The renewal arrived; of its answer, and so of the lease's new version, the leader knows nothing.
    let renewed = json!({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}});
    let leases: Api<Lease> = Api::default_namespaced(world.client.clone());
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(renewed)).await.unwrap();

    first.shutdown().await;
    tokio::time::sleep(Duration::from_millis(10)).await;

    assert_eq!(second.leading(), ["gadgets"]);
    assert_eq!(holder(&world).await, "second");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_takes_nothing_from_who_leads_by_now() {
    let world = World::empty().await;
    let first = candidate(&world, "first");
    seconds(5).await;
    let theirs = json!({"spec": {"holderIdentity": "them", "leaseDurationSeconds": 3600}});
    let leases: Api<Lease> = Api::default_namespaced(world.client.clone());
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(theirs)).await.unwrap();

    first.shutdown().await;

    assert_eq!(holder(&world).await, "them");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_killed_is_followed_when_its_lease_expires() {
    let world = World::empty().await;
    let first = candidate(&world, "first");
    seconds(5).await;
    let second = candidate(&world, "second");
    seconds(30).await;

    drop(first);
    seconds(12).await;
    assert!(second.leading().is_empty(), "the lease may still be renewed");
    seconds(4).await;

    assert_eq!(second.leading(), ["gadgets"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_its_job_alone() {
    let world = World::empty().await;
    let idle = Job::new("other", |shutdown: &CancellationToken| {
        let shutdown = shutdown.clone();
        vec![Task::new("idle", || 0, async move { shutdown.cancelled().await })]
    });
    let manager = Manager::start(&world.context, [world.job().elected(standing(&world, "us")), idle]);
    seconds(5).await;
    assert_eq!(manager.leading(), ["gadgets", "other"]);

    let theirs = json!({"spec": {"holderIdentity": "them", "leaseDurationSeconds": 3600}});
    let leases: Api<Lease> = Api::default_namespaced(world.client.clone());
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(theirs)).await.unwrap();
    seconds(5).await;
    assert_eq!(manager.leading(), ["other"]);
    world.create(gadget("a", "1")).await;
    seconds(60).await;
    assert_eq!(world.remote.take_writes(), Vec::<String>::new());

    let free = json!({"spec": {"holderIdentity": ""}});
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    seconds(5).await;
    assert_eq!(manager.leading(), ["gadgets", "other"]);
    assert_eq!(world.remote.take_writes(), ["create a"]);
}

#[tokio::test(start_paused = true)]
async fn a_document_is_locked_by_one_at_a_time() {
    let world = World::empty().await;
    let (first, second) = (DocumentLock::new("first"), DocumentLock::new("second"));
    let patience = Duration::from_secs(5);
    let held = first.acquire(&world.context, "tunnel/abc", patience).await.unwrap();

    let refused = second.acquire(&world.context, "tunnel/abc", patience).await;
    assert!(refused.is_err_and(|problem| problem.message.contains("tunnel/abc")));
    second.acquire(&world.context, "tunnel/other", patience).await.unwrap().release().await;
    held.release().await;
    let start = Instant::now();
    let held = second.acquire(&world.context, "tunnel/abc", patience).await.unwrap();

    assert!(start.elapsed() < Duration::from_secs(1));
    drop(held);
    let start = Instant::now();
    first.acquire(&world.context, "tunnel/abc", Duration::from_secs(60)).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 15, "a lock that was not released expires");
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_task_panics_starts_again_and_the_others_do_not_notice() {
    let world = World::empty().await;
    let starts = Arc::new(AtomicUsize::new(0));
    let count = starts.clone();
    let fragile = Job::new("fragile", move |shutdown: &CancellationToken| {
        let (first, shutdown) = (count.fetch_add(1, Ordering::Relaxed) == 0, shutdown.clone());
        vec![Task::new("fragile", || 0, async move {
            assert!(!first, "planned");
            shutdown.cancelled().await;
        })]
    });

    let manager = Manager::start(&world.context, [world.job(), fragile]);
    seconds(3).await;

    assert_eq!(starts.load(Ordering::Relaxed), 2);
    assert_eq!(manager.leading(), ["fragile", "gadgets"]);
    world.create(gadget("a", "1")).await;
    assert_eq!(world.remote.take_writes(), ["create a"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_takes_no_lease() {
    let world = World::with(|context| context.mode = WriteMode::DryRun).await;
    let before = world.version();

    let manager = candidate(&world, "dry");
    seconds(60).await;

    assert_eq!(manager.leading(), ["gadgets"]);
    assert_eq!(world.version(), before);
}

#[tokio::test(start_paused = true)]
async fn jobs_of_one_process_have_their_leases_in_namespaces_of_their_own() {
    let world = World::empty().await;
    let elsewhere = Candidacy { namespace: "kube-system".to_owned(), ..standing(&world, "us") };

    let manager = Manager::start(&world.context, [world.job().elected(elsewhere)]);
    seconds(5).await;

    assert_eq!(manager.leading(), ["gadgets"]);
    let lease = Api::<Lease>::namespaced(world.client.clone(), "kube-system").get(LEASE).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("us"));
    let here = Api::<Lease>::default_namespaced(world.client.clone()).get_opt(LEASE).await.unwrap();
    assert!(here.is_none(), "nothing is asked of the other namespace");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_lacks_something_waits_without_being_ready_or_leading() {
    let world = World::empty().await;
    let there = Arc::new(AtomicUsize::new(0));
    let seen = there.clone();
    let job = world.job().elected(standing(&world, "us")).needing(move || {
        let there = seen.load(Ordering::Relaxed) > 0;
        async move { if there { Ok(()) } else { Err("there are no gadgets".to_owned()) } }
    });

    let manager = Manager::start(&world.context, [job]);
    seconds(60).await;
    assert!(manager.leading().is_empty() && !manager.probes().is_ready());
    assert_eq!(manager.waiting(), [("gadgets", "there are no gadgets".to_owned())]);
    let leases = Api::<Lease>::default_namespaced(world.client.clone());
    assert!(leases.get_opt(LEASE).await.unwrap().is_none(), "another process may have what it takes");

    there.store(1, Ordering::Relaxed);
    seconds(6).await;
    assert!(manager.probes().is_ready());
    assert_eq!(manager.leading(), ["gadgets"]);
    manager.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waits_or_stands_by_stops_at_once() {
    let world = World::empty().await;
    let _leader = candidate(&world, "first");
    seconds(5).await;
    let standby = candidate(&world, "second");
    let lacking = world.job().needing(|| async { Err("everything".to_owned()) });
    let waiting = Manager::start(&world.context, [lacking]);
    seconds(30).await;
    let begun = Instant::now();

    standby.shutdown().await;
    waiting.shutdown().await;

    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    assert_eq!(holder(&world).await, "first");
}

/// A process's own way to the cluster, whose writes of leases are answered so late.
fn slowly(world: &World, late: &Arc<Mutex<Duration>>) -> Context {
    let (server, late) = (world.server.service(), Arc::clone(late));
    let line = tower::service_fn(move |request: http::Request<_>| {
        let (server, pause) = (server.clone(), *late.lock().unwrap());
        async move {
            let slow = request.method() != http::Method::GET && request.uri().path().contains("/leases");
            let answer = server.oneshot(request).await;
            if slow {
                tokio::time::sleep(pause).await;
            }
            answer
        }
    });
    Context { client: Client::new(line, "default"), ..(*world.context).clone() }
}

#[tokio::test(start_paused = true)]
async fn finding_18_a_term_is_measured_from_before_its_request_was_sent() {
    let world = World::empty().await;
    let late = Arc::new(Mutex::new(Duration::from_secs(6)));
    let election = Election::new(&slowly(&world, &late), LEASE, "slow");
    let begun = Instant::now();

    let mut term = election.acquire().await;
    assert!(begun.elapsed() >= Duration::from_secs(6), "the lease was there at once, and its answer late");
    let leadership = term.leadership();
    assert!(leadership.is_held());
    term.hold().await;

    // Others follow fifteen seconds after they saw it.
    assert!(begun.elapsed() < Duration::from_millis(10_100), "{:?}", begun.elapsed());
    assert!(!leadership.is_held());
}

#[tokio::test(start_paused = true)]
async fn finding_18_a_candidate_whose_request_is_not_answered_tries_again() {
    let world = World::empty().await;
    let late = Arc::new(Mutex::new(Duration::from_secs(1_000_000)));
    let election = Election::new(&slowly(&world, &late), LEASE, "patient");
    let acquiring = tokio::spawn(async move { election.acquire().await });
    seconds(5).await;

    *late.lock().unwrap() = Duration::ZERO;
    seconds(20).await;

    assert!(acquiring.is_finished());
    assert_eq!(holder(&world).await, "patient");
}

#[tokio::test(start_paused = true)]
async fn finding_17_a_leader_that_cannot_renew_writes_nothing_more_whatever_still_runs() {
    let world = World::empty().await;
    let late = Arc::new(Mutex::new(Duration::ZERO));
    let context = slowly(&world, &late);
    let leadership = Leadership::default();
    let maps: Api<ConfigMap> = Api::default_namespaced(leadership.guard(&context.client));
    let map = |name: &str| ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    assert!(maps.create(&PostParams::default(), &map("before")).await.is_err(), "it does not lead yet");
    let idle = Job::new("idle", |_: &CancellationToken| vec![Task::new("idle", || 0, std::future::pending())]);
    let job = idle.elected(standing(&world, "first")).granting(&leadership);
    let _manager = Manager::start(&Arc::new(context), [job]);
    seconds(5).await;
    assert!(maps.create(&PostParams::default(), &map("leading")).await.is_ok());
    let gate = leadership.gate();
    assert!(gate.is_open());

    *late.lock().unwrap() = Duration::from_secs(1_000_000);
    seconds(11).await;

    assert!(!gate.is_open());
    assert!(maps.create(&PostParams::default(), &map("after")).await.is_err());
    let seen: Vec<String> = maps
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|map| map.metadata.name)
        .collect();
    assert_eq!(seen, ["leading"], "reading goes on");
}

#[tokio::test(start_paused = true)]
async fn a_job_without_an_election_may_always_write() {
    let world = World::empty().await;
    let leadership = Leadership::default();

    let _manager = Manager::start(&world.context, [world.job().granting(&leadership)]);
    seconds(1).await;

    assert!(leadership.is_held());
}
