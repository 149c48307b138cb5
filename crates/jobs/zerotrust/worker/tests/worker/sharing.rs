//! Several workers: a task is carried out once, and a dead worker's task is taken over.

use std::time::Duration;

use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use portolan_cloudflare_sim::{Effect, Fault};
use portolan_zerotrust_model::Phase;
use portolan_zerotrust_worker::Settings;

use serde_json::json;

use crate::tokens::{handed, opens};
use crate::world::{World, deletion, protected, task, with_token};

fn worker(name: &str) -> Settings {
    Settings::new(name, "1")
}

#[tokio::test(start_paused = true)]
async fn scenario_44_two_workers_carry_every_task_out_once() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_millis(50));
    world.run(worker("w1"));
    world.run(worker("w2"));
    world.settle().await;

    for number in 0..20 {
        world.create(&protected(task(&format!("web-{number}")))).await;
    }
    world.settle().await;

    for number in 0..20 {
        let status = world.status(&format!("cfzt-shop-web-{number}")).await;
        assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(1)), "{status:?}");
    }
    assert_eq!((world.apps().len(), world.rules().len(), world.records().len()), (20, 20, 20));
    let posts = world.writes().iter().filter(|write| *write == "POST access/apps").count();
    assert_eq!(posts, 20);
}

#[tokio::test(start_paused = true)]
async fn scenario_41_a_task_of_a_killed_worker_is_taken_over_when_its_lease_expired() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_secs(2));
    world.run(worker("w1"));
    world.settle().await;
    world.create(&task("web")).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::InProgress).await;
    world.kill("w1").await;

    world.run(worker("w2"));
    world.after(30).await;
    assert_eq!(world.phase("cfzt-shop-web").await, Phase::InProgress, "the lease still holds");

    world.after(40).await;
    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.worker_pod.as_deref()), (Some(Phase::Completed), Some("w2")), "{status:?}");
    assert_eq!((world.rules().len(), world.records().len()), (1, 1));
    assert_eq!(world.signs().await, ["cfzt-worker-w2"], "the dead worker's is swept away");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_back_under_its_name_resumes_at_once() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_secs(2));
    world.run(worker("w1"));
    world.settle().await;
    world.create(&task("web")).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::InProgress).await;
    world.kill("w1").await;
    let begun = tokio::time::Instant::now();

    world.run(Settings::new("w1", "2"));
    world.settle().await;

    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let taken_over = r#"portolan_zerotrust_claims_taken_over_total{from="this"} 1"#;
    assert!(world.measured("w1").contains(taken_over), "{}", world.measured("w1"));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_works_for_long_keeps_its_lease_fresh_and_one_at_rest_writes_nothing() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_secs(25));
    world.run(worker("w1"));
    world.run(worker("w2"));
    world.settle().await;

    let status = world.carry(&protected(task("web"))).await;
    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(1)), "{status:?}");

    let version = async || world.leases().list(&kube::api::ListParams::default()).await.unwrap().metadata;
    let before = version().await.resource_version;
    world.after(3600).await;
    assert_eq!(version().await.resource_version, before, "nothing was written at rest");
}

#[tokio::test(start_paused = true)]
async fn two_workers_that_write_one_tunnel_at_a_time_lose_no_rule_of_each_other() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_millis(100));
    for number in 0..40 {
        world.create(&task(&format!("web-{number}"))).await;
    }

    for name in ["w1", "w2"] {
        world.run(Settings { in_flight: 4, ..worker(name) });
    }
    world.settle().await;

    let mut workers = std::collections::BTreeSet::new();
    for number in 0..40 {
        let status = world.status(&format!("cfzt-shop-web-{number}")).await;
        assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
        workers.extend(status.worker_pod);
    }
    assert_eq!(workers.len(), 2, "both had a share");
    assert_eq!((world.rules().len(), world.records().len()), (40, 40));
}

#[tokio::test(start_paused = true)]
async fn two_workers_that_protect_names_side_by_side_lose_none_of_them_and_overtake_nobody() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_millis(100));
    for number in 0..40 {
        world.create(&protected(task(&format!("web-{number}")))).await;
    }

    for name in ["w1", "w2"] {
        world.run(Settings { in_flight: 4, ..worker(name) });
    }
    world.settle().await;

    assert_eq!((world.apps().len(), world.rules().len(), world.records().len()), (40, 40, 40));
    let everything = world.everything_but_secrets().await;
    assert!(!everything.contains("TunnelConfigRaced"), "the tunnel was written by one at a time");
    let posts = world.writes().iter().filter(|write| *write == "POST access/apps").count();
    assert_eq!(posts, 40);
}

#[tokio::test(start_paused = true)]
async fn finding_17_a_worker_whose_lease_ran_out_writes_nothing_more() {
    let mut world = World::empty().await;
    world.run(worker("w1"));
    world.settle().await;
    // The record waits for the budget, as others may wait behind a rate limit or a slow answer.
    let limited = Fault::on("POST", "/dns_records", Effect::status(429)).retry_after(Duration::from_secs(25)).times(2);
    world.simulator.fault(limited);
    world.create(&task("web")).await;
    world.until(async || world.writes().contains(&"POST dns_records → 429".to_owned())).await;

    world.cut_off("w1", true);
    world.run(worker("w2"));
    tokio::time::sleep(Duration::from_secs(58)).await;
    assert_eq!(world.phase("cfzt-shop-web").await, Phase::InProgress, "nobody else has it yet");
    assert_eq!(world.writes(), ["POST dns_records → 429"], "the second time within its lease");
    assert_eq!(world.records(), Vec::<String>::new());

    world.until(async || world.phase("cfzt-shop-web").await == Phase::Completed).await;
    world.cut_off("w1", false);
    world.after(120).await;
    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.worker_pod.as_deref()), (Some(Phase::Completed), Some("w2")), "{status:?}");
    assert_eq!((world.rules().len(), world.records().len()), (1, 1));
    let records = world.writes().iter().filter(|write| *write == "POST dns_records").count();
    assert_eq!(records, 1, "one of them made it");
}

#[tokio::test(start_paused = true)]
async fn finding_17_a_worker_that_comes_back_before_it_was_missed_begins_its_task_anew() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_secs(25));
    world.run(worker("w1"));
    world.settle().await;
    world.create(&task("web")).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::InProgress).await;

    world.cut_off("w1", true);
    tokio::time::sleep(Duration::from_secs(47)).await;
    world.cut_off("w1", false);
    world.after(300).await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(2)), "{status:?}");
    assert_eq!((world.rules().len(), world.records().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn finding_17_a_document_whose_lock_was_lost_is_not_written_under_it() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_secs(12));
    world.run(worker("w1"));
    world.settle().await;
    world.create(&task("web")).await;
    let leases: Api<_> = world.leases();
    let lock = async || {
        let all = leases.list(&ListParams::default()).await.unwrap().items;
        all.iter().map(kube::ResourceExt::name_any).find(|name| name.starts_with("portolan-lock-"))
    };
    world.until(async || lock().await.is_some()).await;
    let lock = lock().await.unwrap();
    world.writes();

    let theirs = json!({"spec": {"holderIdentity": "them", "leaseDurationSeconds": 600}});
    leases.patch(&lock, &PatchParams::default(), &Patch::Merge(theirs)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.writes(), Vec::<String>::new());

    let free = json!({"spec": {"holderIdentity": ""}});
    leases.patch(&lock, &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    world.after(900).await;
    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
    assert_eq!((world.rules().len(), world.records().len()), (1, 1));
}

/// Two workers look at a new task with a token; the second waits for its turn while the first makes everything but the rule.
async fn failed_while_another_waited(world: &mut World) {
    world.simulator.set_latency(Duration::from_millis(50));
    world.run(worker("w1"));
    world.run(worker("w2"));
    world.settle().await;
    let path = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";
    world.simulator.fault(Fault::on("PUT", path, Effect::status(500)).times(4));
    world.create(&with_token(task("web"))).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::Failed).await;
}

#[tokio::test(start_paused = true)]
async fn deletions_that_end_what_one_worker_made_is_no_find_for_another_that_looked_before() {
    let mut world = World::empty().await;
    failed_while_another_waited(&mut world).await;
    assert_eq!((world.apps().len(), world.service_tokens().len()), (1, 1), "made before the rule was refused");

    world.after(60).await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    let footprint = status.result.clone().unwrap_or_default().footprint();
    assert!(footprint.adopted.is_empty(), "{footprint:?}");
    let writes = world.writes();
    assert!(!writes.iter().any(|write| write.ends_with("/rotate")), "its secret lies ready: {writes:?}");
    let gone = world.carry(&deletion(&with_token(task("web")), &status)).await;
    assert_eq!(gone.phase, Some(Phase::Completed), "{gone:?}");
    assert_eq!((world.rules(), world.records()), (Vec::new(), Vec::new()));
    assert_eq!((world.apps(), world.service_tokens()), (Vec::new(), Vec::new()));
    let writes = world.writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text)).unwrap_or_else(|| panic!("{writes:?}"));
    assert!(at("dns_records") < at("configurations") && at("configurations") < at("DELETE access/apps"), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_one_worker_told_is_waited_out_by_another_that_looked_before() {
    let mut world = World::empty().await;
    failed_while_another_waited(&mut world).await;

    world.settle().await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.attempts), (Some(Phase::Failed), Some(1)), "{status:?}");
}

/// Two workers; with names, both have carried some out and know the account.
async fn two_workers(names: usize) -> World {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_millis(50));
    for name in ["w1", "w2"] {
        world.run(Settings { in_flight: 4, ..worker(name) });
    }
    world.settle().await;
    for number in 0..names {
        world.create(&protected(task(&format!("web-{number}")))).await;
    }
    world.settle().await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waited_while_another_tried_goes_on_from_what_that_one_made() {
    for names in [0, 40] {
        let world = two_workers(names).await;
        // All is made, the token has its name, and nobody hears of it: the attempt fails. The other worker has looked at
        // the task before that, and waits for its turn to make a token of the name.
        let path = "/accounts/{account_id}/access/service_tokens/{token_id}";
        world.simulator.fault(Fault::on("PUT", path, Effect::Reset).after_write().times(4));
        world.create(&with_token(task("web"))).await;
        world.until(async || world.phase("cfzt-shop-web").await == Phase::Failed).await;
        let first = world.status("cfzt-shop-web").await;
        world.after(600).await;

        let status = world.status("cfzt-shop-web").await;
        assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(2)), "{status:?}");
        assert_eq!(status.intent, first.intent, "it is known since when there may be things of ours");
        let (made, kept) = (first.result.unwrap().footprint(), status.result.clone().unwrap().footprint());
        assert_eq!(kept, made, "nothing of it is made again");
        assert_eq!(
            (world.service_tokens().len(), world.apps().len(), world.records().len()),
            (1, names + 1, names + 1)
        );
        assert!(opens(&world, "web.example.com", &handed(&world, &status).await));
    }
}
