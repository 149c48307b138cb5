//! Whether a process lives and is ready, as its probes say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use kube::api::PostParams;
use portolan_engine::{CancellationToken, Context, Controller, Job, Manager, Task};
use tower::ServiceExt as _;

use crate::gadget::{Gadgets, gadget};
use crate::world::World;

/// Turns requests into ones that are refused while the switch is on.
fn refuse<B>(away: Arc<AtomicBool>) -> impl FnMut(http::Request<B>) -> http::Request<B> + Clone {
    move |mut request| {
        if away.load(Ordering::Relaxed) {
            *request.method_mut() = http::Method::TRACE;
        }
        request
    }
}

/// A job of gadgets whose API server can go away, and what it runs in.
fn job(world: &World, away: &Arc<AtomicBool>, gate: &CancellationToken) -> (Arc<Context>, Job) {
    let client = Client::new(world.server.service().map_request(refuse(away.clone())), "default");
    let gadgets = Arc::new(Gadgets { client: client.clone(), remote: world.remote.clone() });
    let context = Arc::new(Context { client, ..(*world.context).clone() });
    let (used, gate) = (context.clone(), gate.clone());
    let job = Job::new("gadgets", move |shutdown: &CancellationToken| {
        let gate = gate.clone();
        let controller = Controller::new(used.clone(), gadgets.clone()).after(async move { gate.cancelled().await });
        vec![controller.into_task(shutdown.clone())]
    });
    (context, job)
}

fn open() -> CancellationToken {
    let gate = CancellationToken::new();
    gate.cancel();
    gate
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_is_ready_when_its_first_lists_are_complete_and_stays_so_when_the_server_goes() {
    let world = World::empty().await;
    let away = Arc::new(AtomicBool::new(true));
    let (context, job) = job(&world, &away, &open());
    let manager = Manager::start(&context, [job]);
    let probes = manager.probes();
    seconds(120).await;

    assert!(probes.live().is_well(), "a new process would find the same: {}", probes.live().lines());
    let unready = probes.ready().lines();
    assert_eq!(unready, "[-]gadgets/Gadget failed: its first list is not complete\nreadyz check failed\n");

    away.store(false, Ordering::Relaxed);
    seconds(60).await;
    assert_eq!(probes.ready().lines(), "[+]gadgets/Gadget ok\nreadyz check passed\n");

    away.store(true, Ordering::Relaxed);
    seconds(600).await;
    assert!(probes.live().is_well() && probes.is_ready(), "{}", probes.ready().lines());
    assert!(context.metrics.render().contains(r#"portolan_watch_errors_total{resource="gadgets"}"#));

    manager.shutdown().await;
    assert!(!probes.is_ready());
    assert!(probes.live().is_well(), "it was asked to end");
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_not_ready_before_what_it_needs_is_there() {
    let world = World::empty().await;
    let gate = CancellationToken::new();
    let (context, job) = job(&world, &Arc::default(), &gate);
    let manager = Manager::start(&context, [job]);
    seconds(60).await;

    let unready = manager.probes().ready().lines();
    assert!(unready.starts_with("[-]gadgets/Gadget failed: the first lists of what it needs"), "{unready}");
    gate.cancel();
    seconds(1).await;

    assert!(manager.probes().is_ready());
    world.api().create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    seconds(1).await;
    assert_eq!(world.remote.take_writes(), ["create a"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_died_is_told_and_one_that_is_started_again_is_counted() {
    let world = World::empty().await;
    let dying = Job::new("dying", |_: &CancellationToken| -> Vec<Task> { panic!("planned") });
    let breaking = Job::new("breaking", |_: &CancellationToken| {
        vec![Task::new("fragile", || 0, async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            panic!("planned");
        })]
    });

    let manager = Manager::start(&world.context, [world.job(), breaking, dying]);
    seconds(25).await;

    let live = manager.probes().live();
    assert!(!live.is_well());
    assert_eq!(
        live.lines(),
        "[+]runtime ok\n[+]gadgets ok\n[+]breaking ok\n[-]dying failed: it died\nlivez check failed\n"
    );
    let text = world.context.metrics.render();
    assert!(text.contains(r#"portolan_job_restarts_total{controller="breaking"} 2"#), "{text}");
}
