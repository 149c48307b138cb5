//! The client against the simulator: what a thousand callers cost, and what lost answers leave behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{RECORDS, Record, World, create};
use portolan_cloudflare_api::collections::{VIRTUAL_NETWORKS, ZONES};
use portolan_cloudflare_api::{ApiError, CollectionHandle, Effect, ErrorClass, Freshness, Lane, Op, Snapshot, Written};
use portolan_cloudflare_sim::{self as sim, Count, Fault, Options};
use serde_json::json;
use tokio::task::JoinSet;

fn slow() -> Options {
    Options { latency: Duration::from_millis(150), ..Options::default() }
}

async fn write_all(
    remote: &Arc<CollectionHandle<Record>>,
    sources: Vec<Vec<Op>>,
) -> Vec<Result<Vec<Written<Record>>, ApiError>> {
    let mut tasks = JoinSet::new();
    for (number, ops) in sources.into_iter().enumerate() {
        let remote = remote.clone();
        tasks.spawn(async move { (number, remote.write(Lane::Change, ops).await) });
    }
    let answers: BTreeMap<_, _> = tasks.join_all().await.into_iter().collect();
    answers.into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_records_from_a_thousand_callers_cost_six_calls() {
    let world = World::new(slow(), "enterprise");
    let remote = world.client.records(&RECORDS, &world.zone);
    remote.refresh(Lane::Change, Freshness::Any).await.unwrap();

    let answers = write_all(&remote, (0..1_000).map(|n| vec![create(&format!("n{n}"))]).collect()).await;

    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(world.sim.objects("dns_records", &world.zone).len(), 1_000);
    assert_eq!(remote.with(Snapshot::len), 1_000);
    assert!(world.sim.request_count() <= 7, "{} calls", world.sim.request_count());
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_allows_more_takes_a_thousand_in_one_call() {
    let world = World::new(slow(), "enterprise");
    let remote = world.client.records(&RECORDS, &world.zone);
    remote.set_batch_limit(3_500);

    write_all(&remote, (0..1_000).map(|n| vec![create(&format!("n{n}"))]).collect()).await;

    assert_eq!(world.sim.objects("dns_records", &world.zone).len(), 1_000);
    assert!(world.sim.request_count() <= 2, "{} calls", world.sim.request_count());
}

#[tokio::test(start_paused = true)]
async fn one_bad_record_among_five_hundred_fails_alone() {
    let world = World::new(slow(), "enterprise");
    let remote = world.client.records(&RECORDS, &world.zone);
    let bad = Op::Create(json!({"type": "A", "name": "bad.example.com", "content": "not an address", "ttl": 300}));
    let mut sources: Vec<Vec<Op>> = (0..500).map(|n| vec![create(&format!("n{n}"))]).collect();
    sources[321] = vec![bad];

    let answers = write_all(&remote, sources).await;

    let failed: Vec<usize> = (0..500).filter(|index| answers[*index].is_err()).collect();
    assert_eq!(failed, [321]);
    assert_eq!(answers[321].as_ref().unwrap_err().class, ErrorClass::Validation);
    assert_eq!(world.sim.objects("dns_records", &world.zone).len(), 499);
    assert!(world.sim.request_count() <= 6, "{} calls", world.sim.request_count());
}

#[tokio::test(start_paused = true)]
async fn lost_answers_never_leave_duplicates() {
    for seed in 0..20 {
        let world = World::new(Options { seed, ..slow() }, "enterprise");
        for (effect, share) in [(sim::Effect::Reset, 0.2), (sim::Effect::Timeout, 0.1), (sim::Effect::status(500), 0.2)]
        {
            let fault = Fault::on("", "/dns_records", effect).count(Count::Probability(share));
            world.sim.fault(fault.clone());
            world.sim.fault(fault.after_write());
        }
        let remote = world.client.records(&RECORDS, &world.zone);
        let mut tasks = JoinSet::new();
        for number in 0..30 {
            let remote = remote.clone();
            tasks.spawn(async move { until_there(&remote, &format!("n{number}")).await });
        }

        tasks.join_all().await;

        let mut names: Vec<String> = world
            .sim
            .objects("dns_records", &world.zone)
            .iter()
            .map(|record| record["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 30, "failing seed: {seed}");
        assert_eq!(world.sim.objects("dns_records", &world.zone).len(), 30, "failing seed: {seed}");
    }
}

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

/// What a reconcile does: look, create what is missing, start again after a failure.
async fn until_there(remote: &CollectionHandle<Record>, name: &str) {
    let key = format!("A {name}.example.com");
    loop {
        if remote.refresh(Lane::Change, Freshness::Within(Duration::from_secs(30))).await.is_ok() {
            if remote.with(|snapshot| snapshot.by_key(&key).count()) > 0 {
                return;
            }
            // Different content each time: the API itself would refuse an identical record.
            let content = format!("192.0.2.{}", ATTEMPTS.fetch_add(1, Ordering::Relaxed) % 250 + 1);
            let body = json!({"type": "A", "name": format!("{name}.example.com"), "content": content, "ttl": 300});
            let _ = remote.write(Lane::Change, vec![Op::Create(body)]).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn records_deleted_behind_our_back_do_not_hold_a_batch_up() {
    let world = World::new(slow(), "enterprise");
    let remote = world.client.records(&RECORDS, &world.zone);
    let answers = write_all(&remote, (0..100).map(|n| vec![create(&format!("n{n}"))]).collect()).await;
    let ids: Vec<String> = answers.iter().map(|answer| answer.as_ref().unwrap()[0].id().to_owned()).collect();
    for id in &ids[..10] {
        world.sim.remove("dns_records", id);
    }
    world.sim.take_requests();

    let answers = write_all(&remote, ids.iter().map(|id| vec![Op::delete(id)]).collect()).await;

    let gone = answers.iter().filter(|answer| matches!(answer.as_deref(), Ok([Written::Gone(_)]))).count();
    assert_eq!((gone, answers.iter().filter(|answer| answer.is_ok()).count()), (10, 100));
    assert!(world.sim.objects("dns_records", &world.zone).is_empty());
    let asked = world.sim.take_requests().iter().filter(|request| request.method == "GET").count();
    assert_eq!((world.sim.request_count(), asked), (0, 4), "a listing, and three objects that it may not show yet");
}

#[tokio::test(start_paused = true)]
async fn a_full_free_zone_says_quota() {
    let world = World::new(slow(), "free");
    let remote = world.client.records(&RECORDS, &world.zone);

    let answers = write_all(&remote, (0..300).map(|n| vec![create(&format!("n{n}"))]).collect()).await;

    let there = world.sim.objects("dns_records", &world.zone).len();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), there);
    let classes: Vec<ErrorClass> = answers.iter().filter_map(|answer| Some(answer.as_ref().err()?.class)).collect();
    assert_eq!(
        (there + classes.len(), classes.iter().all(|class| *class == ErrorClass::Quota)),
        (300, true),
        "{classes:?}"
    );
    assert!(world.sim.request_count() <= 25, "{} calls", world.sim.request_count());
}

#[tokio::test(start_paused = true)]
async fn drift_over_fifty_zones_costs_a_call_each() {
    let world = World::new(slow(), "enterprise");
    let account = world.sim.add_account("Many");
    let mut zones = Vec::new();
    for number in 0..50 {
        let zone = world.sim.add_zone(&format!("zone{number}.example"), &account, "enterprise").unwrap();
        for record in 0..100 {
            let name = format!("n{record}.zone{number}.example");
            world.sim.put("dns_records", &zone, json!({"type": "A", "name": name, "content": "192.0.2.1"})).unwrap();
        }
        zones.push(zone);
    }
    world.sim.take_requests();

    for zone in &zones {
        let remote = world.client.records(&RECORDS, zone);
        remote.refresh(Lane::Drift, Freshness::AfterNow).await.unwrap();
        assert_eq!(remote.with(Snapshot::len), 100);
    }

    assert_eq!(world.sim.request_count(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_of_the_simulator_is_never_hit() {
    let options = Options { rate_limit: Some((100, Duration::from_secs(60))), ..slow() };
    let world = World::new(options, "enterprise");

    let start = tokio::time::Instant::now();
    for _ in 0..500 {
        world.client.list_all(Lane::Change, &ZONES, "").await.unwrap();
    }

    let refused = world.sim.requests().iter().filter(|request| request.status == 429).count();
    assert_eq!(refused, 0);
    assert!(start.elapsed() < Duration::from_secs(360), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn networks_are_listed_written_and_deleted_without_batches() {
    let world = World::new(slow(), "enterprise");
    let account = world.sim.add_account("Networks");
    let remote = world.client.records(&VIRTUAL_NETWORKS, &account);

    let made = remote.write(Lane::Change, vec![Op::Create(json!({"name": "corp", "comment": "x"}))]).await.unwrap();
    let again = remote.write(Lane::Change, vec![Op::Create(json!({"name": "corp"}))]).await.unwrap_err();
    let deleted = remote.write(Lane::Change, vec![Op::delete(made[0].id())]).await.unwrap();

    assert_eq!((again.class, again.effect), (ErrorClass::Conflict, Effect::None));
    assert_eq!(deleted, [Written::Deleted(made[0].id().to_owned())]);
    remote.refresh(Lane::Change, Freshness::AfterNow).await.unwrap();
    assert_eq!(remote.with(|snapshot| snapshot.by_key("corp").count()), 0);
}
