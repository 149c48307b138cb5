//! Snapshots and writes against a scripted API under a paused clock.

use std::collections::BTreeMap;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::testing::{Answered, RECORDS, ROUTES, Scripted, SeenRequest, TestRecord, answer, bad, broken, good, record};

const LATENCY: Duration = Duration::from_millis(150);

/// A zone in memory that knows no pointers: names that begin with `bad` are refused.
#[derive(Default)]
struct Zone {
    records: BTreeMap<String, Value>,
    next: u32,
    /// Most records that fit.
    room: Option<usize>,
    batchless: bool,
    /// What listings still show.
    lagging: Option<BTreeMap<String, Value>>,
}

impl Zone {
    fn shown(&self) -> &BTreeMap<String, Value> {
        self.lagging.as_ref().unwrap_or(&self.records)
    }

    fn answer(&mut self, seen: &SeenRequest) -> Answered {
        let (method, path) = seen.line.split_once(' ').unwrap();
        let path = path.split('?').next().unwrap();
        let id = path.rsplit('/').next().unwrap();
        match (method, id) {
            ("GET", "dns_records") => listed(self.shown().values().cloned().collect()),
            ("GET", id) => self.records.get(id).map_or_else(|| bad(404, 81044), |record| good(record.clone())),
            ("POST", "dns_records") => self.answer_of(|zone| zone.create(&seen.body)),
            ("POST", "batch") if self.batchless => bad(405, 10405),
            ("POST", "batch") => self.answer_of(|zone| zone.batch(&seen.body)),
            ("PATCH", id) => self.answer_of(|zone| zone.patch(id, &seen.body)),
            ("DELETE", id) => self.answer_of(|zone| zone.delete(id)),
            other => panic!("no such route: {other:?}"),
        }
    }

    fn answer_of(&mut self, change: impl FnOnce(&mut Self) -> Result<Value, (u16, u64)>) -> Answered {
        let before = self.records.clone();
        change(self).map_or_else(
            |(status, code)| {
                self.records = before;
                bad(status, code)
            },
            good,
        )
    }

    fn create(&mut self, body: &Value) -> Result<Value, (u16, u64)> {
        let name = body["name"].as_str().unwrap();
        if name.starts_with("bad") {
            return Err((400, 9005));
        }
        if self.room.is_some_and(|room| self.records.len() >= room) {
            return Err((400, 81045));
        }
        if self.records.values().any(|record| record["name"] == name) {
            return Err((400, 81058));
        }
        self.next += 1;
        let id = format!("r{}", self.next);
        self.records.insert(id.clone(), record(&id, name, body["content"].as_str().unwrap_or("192.0.2.1")));
        Ok(self.records[&id].clone())
    }

    fn patch(&mut self, id: &str, body: &Value) -> Result<Value, (u16, u64)> {
        let there = self.records.get_mut(id).ok_or((404, 81044))?;
        for (name, value) in body.as_object().unwrap() {
            there[name] = value.clone();
        }
        Ok(there.clone())
    }

    fn delete(&mut self, id: &str) -> Result<Value, (u16, u64)> {
        self.records.remove(id).map(|_| json!({"id": id})).ok_or((404, 81044))
    }

    fn batch(&mut self, body: &Value) -> Result<Value, (u16, u64)> {
        let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
        let id = |op: &Value| op["id"].as_str().unwrap().to_owned();
        Ok(json!({
            "deletes": list("deletes").iter().map(|op| self.delete(&id(op))).collect::<Result<Vec<_>, _>>()?,
            "patches": list("patches").iter().map(|op| self.patch(&id(op), op)).collect::<Result<Vec<_>, _>>()?,
            "posts": list("posts").iter().map(|op| self.create(op)).collect::<Result<Vec<_>, _>>()?,
        }))
    }
}

struct Api {
    scripted: Arc<Scripted>,
    zone: Arc<StdMutex<Zone>>,
    remote: Arc<CollectionHandle<TestRecord>>,
}

impl Api {
    fn new(zone: Zone) -> Self {
        let zone = Arc::new(StdMutex::new(zone));
        let played = zone.clone();
        let scripted = Scripted::new(LATENCY, move |seen| played.lock().unwrap().answer(seen));
        let remote = scripted.client().records(&RECORDS, "z1");
        Self { scripted, zone, remote }
    }

    fn with(records: &[(&str, &str)]) -> Self {
        let records = records.iter().map(|(id, name)| ((*id).to_owned(), record(id, name, "192.0.2.1"))).collect();
        Self::new(Zone { records, next: 100, ..Zone::default() })
    }

    /// Lines without scope and query, such as `POST batch`.
    fn calls(&self) -> Vec<String> {
        let short = |line: String| {
            let (method, path) = line.split_once(' ').unwrap();
            format!("{method} {}", path.split('?').next().unwrap().rsplit('/').next().unwrap())
        };
        self.scripted.lines().into_iter().map(short).collect()
    }

    fn names(&self) -> Vec<String> {
        let zone = self.zone.lock().unwrap();
        let mut names: Vec<String> =
            zone.records.values().map(|record| record["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// Every source in a task of its own, in order of arrival; the answers in the same order.
    async fn write_all(&self, sources: Vec<Vec<Op>>) -> Vec<Result<Vec<Written<TestRecord>>, ApiError>> {
        let mut tasks = Vec::new();
        for ops in sources {
            let remote = self.remote.clone();
            tasks.push(AbortOnDropHandle::new(tokio::spawn(async move { remote.write(Lane::Change, ops).await })));
        }
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers
    }
}

/// The only page of a listing.
fn listed(records: Vec<Value>) -> Answered {
    let info = json!({"total_pages": 1, "total_count": records.len()});
    answer(200, &json!({"success": true, "result": records, "result_info": info}))
}

fn create(name: &str) -> Op {
    Op::Create(json!({"type": "A", "name": name, "content": "192.0.2.1"}))
}

fn patch(id: &str) -> Op {
    Op::Update { id: id.to_owned(), body: json!({"content": "192.0.2.9"}) }
}

#[tokio::test(start_paused = true)]
async fn an_idle_collection_writes_one_change_at_once_by_a_plain_call() {
    let api = Api::with(&[]);

    let written = api.remote.write(Lane::Change, vec![create("a")]).await.unwrap();

    assert_eq!(api.calls(), ["POST dns_records"]);
    assert_eq!(api.scripted.seen()[0].at, Duration::ZERO);
    assert_eq!(written[0].id(), "r101");
    assert_eq!(api.remote.with(|snapshot| snapshot.by_key("A a").count()), 1);
}

#[tokio::test(start_paused = true)]
async fn changes_that_come_while_one_is_under_way_go_together() {
    let api = Api::with(&[]);
    let first = api.remote.clone();
    let first =
        AbortOnDropHandle::new(tokio::spawn(async move { first.write(Lane::Change, vec![create("first")]).await }));
    tokio::time::sleep(LATENCY / 2).await;

    let answers = api.write_all((0..50).map(|number| vec![create(&format!("n{number}"))]).collect()).await;

    assert!(first.await.unwrap().is_ok() && answers.iter().all(Result::is_ok));
    assert_eq!(api.calls(), ["POST dns_records", "POST batch"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_for_those_that_were_announced() {
    let api = Api::with(&[]);
    let announced = api.remote.expect();
    let first = api.remote.clone();
    let first =
        AbortOnDropHandle::new(tokio::spawn(async move { first.write(Lane::Change, vec![create("first")]).await }));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(api.calls().is_empty(), "the first one waits");

    drop(announced);
    api.remote.write(Lane::Change, vec![create("second")]).await.unwrap();

    assert!(first.await.unwrap().is_ok());
    assert_eq!(api.calls(), ["POST batch"]);
}

#[tokio::test(start_paused = true)]
async fn an_announced_write_that_does_not_come_holds_others_up_for_a_second_at_most() {
    let api = Api::with(&[]);
    let announced = api.remote.expect();

    api.remote.write(Lane::Change, vec![create("first")]).await.unwrap();

    assert_eq!(api.scripted.seen()[0].at, Duration::from_secs(1));
    drop(announced);
}

#[tokio::test(start_paused = true)]
async fn a_full_call_waits_for_nobody() {
    let api = Api::with(&[]);
    api.remote.set_batch_limit(10);
    let announced = api.remote.expect();

    api.write_all((0..10).map(|number| vec![create(&format!("n{number}"))]).collect()).await;

    assert_eq!(api.scripted.seen()[0].at, Duration::ZERO);
    assert_eq!(api.calls(), ["POST batch"]);
    drop(announced);
}

#[tokio::test(start_paused = true)]
async fn one_bad_source_fails_alone_by_halving() {
    let api = Api::with(&[]);
    let sources =
        (0..100).map(|number| vec![create(&if number == 61 { "bad".to_owned() } else { format!("n{number}") })]);

    let answers = api.write_all(sources.collect()).await;

    let failed: Vec<_> = answers.iter().enumerate().filter(|(_, answer)| answer.is_err()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].0, failed[0].1.as_ref().unwrap_err().class), (61, ErrorClass::Validation));
    assert_eq!(api.names().len(), 99);
    assert!(api.calls().len() <= 16, "{} calls", api.calls().len());
}

#[tokio::test(start_paused = true)]
async fn a_source_is_applied_whole_or_not_at_all() {
    let api = Api::with(&[("1", "old")]);

    let answers = api
        .write_all(vec![vec![create("a"), create("b")], vec![Op::delete("1"), create("bad")], vec![create("c")]])
        .await;

    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(api.names(), ["a", "b", "c", "old"]);
}

#[tokio::test(start_paused = true)]
async fn deletes_of_what_is_gone_are_done_and_the_rest_of_the_batch_goes_on() {
    let api = Api::with(&[("1", "a"), ("2", "b")]);

    let answers = api.write_all(vec![vec![Op::delete("1")], vec![Op::delete("gone")], vec![create("c")]]).await;

    assert_eq!(answers[1].as_ref().unwrap(), &[Written::Gone("gone".to_owned())]);
    assert_eq!(answers[0].as_ref().unwrap(), &[Written::Deleted("1".to_owned())]);
    assert_eq!(api.names(), ["b", "c"]);
    assert_eq!(api.calls(), ["POST batch", "GET dns_records", "POST batch"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_is_gone_fails_alone() {
    let api = Api::with(&[("1", "a")]);

    let answers = api.write_all(vec![vec![patch("1")], vec![patch("gone")], vec![create("c")]]).await;

    assert_eq!(answers[1].as_ref().unwrap_err().class, ErrorClass::NotFound);
    assert!(answers[0].is_ok() && answers[2].is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_single_delete_of_what_is_gone_is_done() {
    let api = Api::with(&[]);

    let written = api.remote.write(Lane::Protect, vec![Op::delete("gone")]).await.unwrap();

    assert_eq!(written, [Written::Gone("gone".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_full_zone_takes_what_fits_and_tells_the_rest_without_asking_for_each() {
    let api = Api::new(Zone { room: Some(70), ..Zone::default() });

    let answers = api.write_all((0..200).map(|number| vec![create(&format!("n{number}"))]).collect()).await;

    let full = |answer: &Result<_, ApiError>| answer.as_ref().is_err_and(|error| error.class == ErrorClass::Quota);
    assert_eq!(answers.iter().filter(|answer| full(answer)).count(), 130);
    assert_eq!(api.names().len(), 70);
    assert!(api.calls().len() <= 20, "{} calls", api.calls().len());
}

#[tokio::test(start_paused = true)]
async fn an_api_without_batches_gets_single_calls() {
    let api = Api::new(Zone { batchless: true, ..Zone::default() });

    for round in 0..5 {
        let names = (0..10).map(|number| vec![create(&format!("n{round}-{number}"))]).collect();
        assert!(api.write_all(names).await.iter().all(Result::is_ok));
    }

    assert_eq!(api.names().len(), 50);
    assert_eq!(api.calls().iter().filter(|call| *call == "POST batch").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn two_changes_of_one_object_go_in_two_calls_in_their_order() {
    let api = Api::with(&[("1", "a"), ("2", "b")]);
    let to = |content: &str| vec![Op::Update { id: "1".to_owned(), body: json!({"content": content}) }];

    api.write_all(vec![to("192.0.2.1"), vec![patch("2")], to("192.0.2.2"), to("192.0.2.3")]).await;

    assert_eq!(api.zone.lock().unwrap().records["1"]["content"], "192.0.2.3");
    assert_eq!(api.calls(), ["POST batch", "PATCH 1", "PATCH 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_larger_than_a_batch_is_sent_in_parts() {
    let api = Api::with(&[]);
    api.remote.set_batch_limit(40);

    let written = api.remote.write(Lane::Change, (0..100).map(|n| create(&format!("n{n}"))).collect()).await.unwrap();

    assert_eq!((written.len(), api.names().len(), api.calls().len()), (100, 100, 3));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_fails_everybody_in_the_call_and_sheds_doubt_on_the_snapshot() {
    let lost = Arc::new(StdMutex::new(true));
    let zone = Arc::new(StdMutex::new(Zone::default()));
    let (lose, played) = (lost.clone(), zone.clone());
    let scripted = Scripted::new(LATENCY, move |seen| {
        let answer = played.lock().unwrap().answer(seen);
        let write = !seen.line.starts_with("GET");
        if write && std::mem::take(&mut *lose.lock().unwrap()) { broken(true) } else { answer }
    });
    let api = Api { remote: scripted.client().records(&RECORDS, "z1"), scripted, zone };
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();

    let answers = api.write_all((0..5).map(|number| vec![create(&format!("n{number}"))]).collect()).await;
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();

    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|error| error.effect == Effect::Unknown)));
    assert_eq!(api.remote.with(Snapshot::len), 5);
    assert_eq!(api.calls(), ["GET dns_records", "POST batch", "GET dns_records"]);
}

#[tokio::test(start_paused = true)]
async fn callers_who_go_away_before_their_turn_are_not_written() {
    let api = Api::with(&[]);
    let remote = api.remote.clone();
    let first =
        AbortOnDropHandle::new(tokio::spawn(async move { remote.write(Lane::Change, vec![create("first")]).await }));
    tokio::time::sleep(LATENCY / 2).await;
    let gone = tokio::time::timeout(LATENCY / 10, api.remote.write(Lane::Change, vec![create("gone")])).await;

    api.remote.write(Lane::Change, vec![create("last")]).await.unwrap();

    assert!(gone.is_err() && first.await.unwrap().is_ok());
    assert_eq!(api.names(), ["first", "last"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handles_stops_the_writer() {
    let Api { scripted, zone, remote } = Api::with(&[]);
    let caller = remote.clone();
    let waiting =
        AbortOnDropHandle::new(tokio::spawn(async move { caller.write(Lane::Change, vec![create("a")]).await }));
    tokio::time::sleep(LATENCY / 10).await;

    drop((waiting, remote));
    tokio::time::sleep(Duration::from_secs(60)).await;

    assert_eq!(scripted.seen().len(), 1);
    assert!(zone.lock().unwrap().records.is_empty());
}

#[tokio::test(start_paused = true)]
async fn everybody_who_asks_at_once_shares_one_listing() {
    let api = Api::with(&[("1", "a")]);
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let remote = api.remote.clone();
        tasks.spawn(async move { remote.refresh(Lane::Change, Freshness::AfterNow).await });
    }

    let answers = tasks.join_all().await;

    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(api.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn everybody_who_waits_for_a_listing_shares_its_failure() {
    let scripted = Scripted::new(LATENCY, |_| bad(403, 10000));
    let remote = scripted.client().records(&RECORDS, "z1");
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let remote = remote.clone();
        tasks.spawn(async move { remote.refresh(Lane::Change, Freshness::Any).await });
    }

    let answers = tasks.join_all().await;

    assert!(answers.iter().all(Result::is_err));
    assert_eq!(scripted.seen().len(), 1);
    assert!(remote.refresh(Lane::Change, Freshness::Any).await.is_err());
    assert_eq!(scripted.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn somebody_in_a_hurry_does_not_wait_behind_a_listing_for_drift() {
    let scripted = Scripted::new(LATENCY, |_| {
        crate::testing::with_header(listed(Vec::new()), "ratelimit-policy", r#""default";q=10;w=300"#)
    });
    let client = scripted.client();
    let remote = |zone: &str| client.records(&RECORDS, zone);
    for zone in ["z1", "z2", "z3"] {
        remote(zone).refresh(Lane::Drift, Freshness::Any).await.unwrap();
    }
    let start = tokio::time::Instant::now();
    let patient = remote("z4");
    let patient =
        AbortOnDropHandle::new(tokio::spawn(async move { patient.refresh(Lane::Drift, Freshness::Any).await }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scripted.seen().len(), 3, "drift has spent its share");

    remote("z4").refresh(Lane::Change, Freshness::Any).await.unwrap();

    assert!(patient.await.unwrap().is_ok());
    assert_eq!((start.elapsed(), scripted.seen().len()), (Duration::from_secs(1) + LATENCY, 4));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_listed_again_when_it_is_older_than_asked_for() {
    let api = Api::with(&[]);
    let within = Freshness::Within(Duration::from_secs(30));
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    api.remote.refresh(Lane::Change, within).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();

    api.remote.refresh(Lane::Change, within).await.unwrap();

    assert_eq!(api.calls().len(), 2);
    assert_eq!(api.remote.with(Snapshot::age), Some(LATENCY));
}

#[tokio::test(start_paused = true)]
async fn a_write_during_a_listing_is_not_forgotten_when_the_listing_ends() {
    let start = tokio::time::Instant::now();
    let slow = Scripted::new(Duration::ZERO, move |seen| match seen.line.starts_with("GET") {
        // The page was read before the write and arrives after it.
        true => listed(vec![record("1", "a", "192.0.2.1"), record("2", "b", "192.0.2.1")]),
        false if seen.line.contains("batch") => {
            good(json!({"deletes": [{"id": "1"}], "posts": [record("3", "c", "192.0.2.1")]}))
        }
        false => panic!("at {:?}: {}", start.elapsed(), seen.line),
    });
    let remote = slow.client().records(&RECORDS, "z1");
    let began = remote.shared.store().begin(Instant::now());

    remote.write(Lane::Change, vec![Op::delete("1"), create("c")]).await.unwrap();
    let page = json!([record("1", "a", "192.0.2.1"), record("2", "b", "192.0.2.1")]);
    remote.shared.store().finish(began, serde_json::from_value(page).unwrap(), Vec::new());

    let mut ids: Vec<String> = remote.with(|snapshot| snapshot.iter().map(|entry| entry.id.clone()).collect());
    ids.sort();
    assert_eq!(ids, ["2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_nobody_waits_for_is_begun_anew_by_the_next() {
    let api = Api::with(&[("1", "a")]);
    let gone = tokio::time::timeout(LATENCY / 2, api.remote.refresh(Lane::Change, Freshness::Any)).await;

    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();

    assert!(gone.is_err());
    assert_eq!((api.remote.with(Snapshot::len), api.calls().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_makes_the_next_refresh_list() {
    let api = Api::with(&[]);
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();
    api.zone.lock().unwrap().records.insert("x".to_owned(), record("x", "a", "192.0.2.1"));

    let error = api.remote.write(Lane::Change, vec![create("a")]).await.unwrap_err();
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();

    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(api.remote.with(|snapshot| snapshot.by_key("A a").count()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gone_zone_has_everything_in_it_deleted() {
    let scripted = Scripted::new(LATENCY, |_| bad(404, 7003));
    let remote = scripted.client().records(&RECORDS, "z1");

    let written = remote.write(Lane::Change, vec![Op::delete("1"), Op::delete("2")]).await.unwrap();

    assert_eq!(written, [Written::Gone("1".to_owned()), Written::Gone("2".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn creates_in_a_gone_zone_fail_without_asking_for_each() {
    let scripted = Scripted::new(LATENCY, |_| bad(404, 7003));
    let remote = scripted.client().records(&RECORDS, "z1");
    let api = Api { remote, scripted, zone: Arc::default() };

    let answers = api.write_all((0..50).map(|number| vec![create(&format!("n{number}"))]).collect()).await;

    let gone = |answer: &Result<_, ApiError>| answer.as_ref().is_err_and(|error| error.class == ErrorClass::NotFound);
    assert!(answers.iter().all(gone));
    assert_eq!(api.calls(), ["POST batch", "GET dns_records"]);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_source_takes_those_that_wait_for_the_budget_along() {
    let zone = Arc::new(StdMutex::new(Zone::default()));
    let played = zone.clone();
    let scripted = Scripted::new(LATENCY, move |seen| {
        let answer = played.lock().unwrap().answer(seen);
        crate::testing::with_header(answer, "ratelimit", r#""default";r=130;t=300"#)
    });
    let api = Api { remote: scripted.client().records(&RECORDS, "z1"), scripted, zone };
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();
    let start = tokio::time::Instant::now();
    let patient = api.remote.clone();
    let patient =
        AbortOnDropHandle::new(tokio::spawn(async move { patient.write(Lane::Drift, vec![create("a")]).await }));
    tokio::task::yield_now().await;

    api.remote.write(Lane::Protect, vec![create("b")]).await.unwrap();

    assert!(patient.await.unwrap().is_ok());
    assert_eq!(start.elapsed(), LATENCY);
    assert_eq!(api.calls(), ["GET dns_records", "POST batch"]);
}

#[tokio::test(start_paused = true)]
async fn a_collection_without_batches_writes_a_source_in_order_and_sources_side_by_side() {
    let scripted = Scripted::new(LATENCY, |seen| {
        good(json!({"id": seen.line.rsplit('/').next().unwrap(), "type": "A", "name": "x"}))
    });
    let remote = scripted.client().records(&ROUTES, "acc");
    let start = tokio::time::Instant::now();
    let mut tasks = JoinSet::new();
    for source in 0..4 {
        let remote = remote.clone();
        let ops = (0..2).map(|number| patch(&format!("{source}-{number}"))).collect();
        tasks.spawn(async move { remote.write(Lane::Change, ops).await });
    }

    let answers = tasks.join_all().await;

    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(start.elapsed(), LATENCY * 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_show_the_object_is_an_unknown_outcome() {
    let scripted = Scripted::in_order([answer(200, &json!({"success": true, "result": {}}))]);
    let remote = scripted.client().records(&RECORDS, "z1");

    let error = remote.write(Lane::Change, vec![create("a")]).await.unwrap_err();

    assert_eq!(error.effect, Effect::Unknown);
}

/// One source of a random group: a good create, a bad one, a delete, a delete of nothing, a change, a change of nothing.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Create,
    Bad,
    Delete,
    DeleteGone,
    Patch,
    PatchGone,
}

fn kinds() -> impl Strategy<Value = Vec<Vec<Kind>>> {
    let kind = prop_oneof![
        6 => Just(Kind::Create),
        1 => Just(Kind::Bad),
        2 => Just(Kind::Delete),
        1 => Just(Kind::DeleteGone),
        2 => Just(Kind::Patch),
        1 => Just(Kind::PatchGone),
    ];
    proptest::collection::vec(proptest::collection::vec(kind, 1..4), 1..40)
}

/// The operation, about a record of its own.
fn op(kind: Kind, number: usize) -> Op {
    match kind {
        Kind::Create => create(&format!("new{number}")),
        Kind::Bad => create(&format!("bad{number}")),
        Kind::Delete => Op::delete(format!("d{number}")),
        Kind::DeleteGone => Op::delete(format!("gone{number}")),
        Kind::Patch => patch(&format!("p{number}")),
        Kind::PatchGone => patch(&format!("gone{number}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_group_ends_as_if_each_source_had_been_sent_alone(sources in kinds(), limit in 3..30_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let numbered: Vec<Vec<(Kind, usize)>> = sources
                .iter()
                .enumerate()
                .map(|(source, kinds)| kinds.iter().enumerate().map(|(op, kind)| (*kind, source * 10 + op)).collect())
                .collect();
            let there = numbered.iter().flatten().filter_map(|(kind, number)| match kind {
                Kind::Delete => Some(format!("d{number}")),
                Kind::Patch => Some(format!("p{number}")),
                _ => None,
            });
            let records = there.map(|id| (id.clone(), record(&id, &id, "192.0.2.1"))).collect();
            let api = Api::new(Zone { records, ..Zone::default() });
            api.remote.set_batch_limit(limit);

            let ops = numbered.iter().map(|source| source.iter().map(|(kind, number)| op(*kind, *number)).collect());
            let answers = api.write_all(ops.collect()).await;

            for (source, answer) in numbered.iter().zip(&answers) {
                let fine = source.iter().all(|(kind, _)| !matches!(kind, Kind::Bad | Kind::PatchGone));
                assert_eq!(answer.is_ok(), fine, "{source:?}");
                let zone = api.zone.lock().unwrap();
                for (kind, number) in source {
                    let there = |name: &str| zone.records.values().any(|record| record["name"] == name);
                    match kind {
                        Kind::Create => assert_eq!(there(&format!("new{number}")), fine, "{source:?}"),
                        Kind::Delete => assert_eq!(!there(&format!("d{number}")), fine, "{source:?}"),
                        Kind::Patch => {
                            let changed = zone.records[&format!("p{number}")]["content"] == "192.0.2.9";
                            assert_eq!(changed, fine, "{source:?}");
                        }
                        Kind::Bad | Kind::DeleteGone | Kind::PatchGone => {}
                    }
                }
            }
            api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();
            assert_eq!(api.remote.with(Snapshot::len), api.zone.lock().unwrap().records.len());
        });
    }
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_learns_what_other_calls_showed() {
    let api = Api::with(&[]);
    api.remote.refresh(Lane::Change, Freshness::Any).await.unwrap();
    let entry = Entry::read(record("r9", "y", "")).unwrap();

    api.remote.learn(&entry);
    assert_eq!(api.remote.with(|snapshot| snapshot.get("r9").cloned()), Some(entry));
    api.remote.unlearn("r9");

    assert!(api.remote.with(Snapshot::is_empty));
}

/// Listings show the zone as it is now, whatever happens to it.
fn lag(api: &Api) {
    let mut zone = api.zone.lock().unwrap();
    zone.lagging = Some(zone.records.clone());
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_lags_behind_our_writes_takes_nothing_of_them_back() {
    let api = Api::with(&[("r1", "goes")]);
    lag(&api);
    let creates = (0..20).map(|number| create(&format!("n{number}"))).collect();
    api.remote.write(Lane::Change, creates).await.unwrap();
    api.remote.write(Lane::Change, vec![Op::Delete { id: "r1".to_owned(), query: Vec::new() }]).await.unwrap();
    let before = api.calls().len();

    api.remote.refresh(Lane::Drift, Freshness::AfterNow).await.unwrap();

    assert_eq!(api.remote.with(|snapshot| (snapshot.len(), snapshot.get("r1").is_some())), (20, false));
    assert_eq!(api.calls().len() - before, 2, "one is asked for: {:?}", api.calls());
    api.zone.lock().unwrap().lagging = None;
    api.remote.refresh(Lane::Drift, Freshness::AfterNow).await.unwrap();
    assert_eq!(api.calls().len() - before, 3, "a listing that shows them asks for none");
}

#[tokio::test(start_paused = true)]
async fn what_others_deleted_right_after_our_write_is_gone() {
    let api = Api::with(&[]);
    let creates = (0..20).map(|number| create(&format!("n{number}"))).collect();
    api.remote.write(Lane::Change, creates).await.unwrap();
    api.zone.lock().unwrap().records.clear();

    api.remote.refresh(Lane::Drift, Freshness::AfterNow).await.unwrap();

    assert!(api.remote.with(Snapshot::is_empty));
    assert_eq!(api.calls().len(), 2 + CONFIRMED, "not each of them is asked for: {:?}", api.calls());
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_long_after_our_write_is_not_asked_for() {
    let api = Api::with(&[]);
    api.remote.write(Lane::Change, vec![create("a")]).await.unwrap();
    lag(&api);
    api.zone.lock().unwrap().lagging.as_mut().unwrap().clear();
    tokio::time::advance(Duration::from_secs(31)).await;

    api.remote.refresh(Lane::Drift, Freshness::AfterNow).await.unwrap();

    assert!(api.remote.with(Snapshot::is_empty));
    assert_eq!(api.calls(), ["POST dns_records", "GET dns_records"]);
}
