//! Whole documents against a scripted API under a paused clock.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::testing::{Scripted, bad, good};

const LATENCY: Duration = Duration::from_millis(100);

/// A configuration that refuses rules called `bad`, and that somebody else writes as often as `meddles` says.
struct Tunnel {
    config: Value,
    version: i64,
    meddles: u32,
    /// What happens to the next writes.
    faults: VecDeque<Fault>,
}

enum Fault {
    /// Refused by a server error.
    Fails,
    /// Applied, but answered by a server error.
    Lost,
    /// Refused by a server error, and somebody else adds a rule.
    Overtaken(&'static str),
}

impl Tunnel {
    fn write(&mut self, config: Value) {
        (self.config, self.version) = (config, self.version + 1);
    }

    /// Whether this write is answered by a server error.
    fn fails(&mut self, config: &Value) -> bool {
        match self.faults.pop_front() {
            None => return false,
            Some(Fault::Fails) => {}
            Some(Fault::Lost) => self.write(config.clone()),
            Some(Fault::Overtaken(rule)) => {
                let mut config = self.config.clone();
                with_rule(rule)(&mut config);
                self.write(config);
            }
        }
        true
    }
}

struct Api {
    scripted: Arc<Scripted>,
    tunnel: Arc<Mutex<Tunnel>>,
    document: Arc<Document>,
}

fn api(meddles: u32) -> Api {
    let tunnel =
        Arc::new(Mutex::new(Tunnel { config: json!({"rules": []}), version: 7, meddles, faults: VecDeque::new() }));
    let played = tunnel.clone();
    let scripted = Scripted::new(LATENCY, move |seen| {
        let mut tunnel = played.lock().unwrap();
        if seen.line.starts_with("PUT") {
            let config = seen.body["config"].clone();
            if config["rules"].as_array().unwrap().contains(&json!("bad")) {
                return bad(400, 1056);
            }
            if tunnel.fails(&config) {
                return bad(500, 1);
            }
            let meddled = i64::from(tunnel.meddles > 0);
            tunnel.meddles = tunnel.meddles.saturating_sub(1);
            (tunnel.config, tunnel.version) = (config, tunnel.version + 1 + meddled);
        }
        good(json!({"config": tunnel.config, "version": tunnel.version}))
    });
    let document = scripted.client().document(&TUNNEL_CONFIGURATION, "acc", "t1");
    Api { scripted, tunnel, document }
}

impl Api {
    fn methods(&self) -> Vec<String> {
        self.scripted.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    fn breaks(&self, faults: impl IntoIterator<Item = Fault>) {
        self.tunnel.lock().unwrap().faults.extend(faults);
    }

    fn rules(&self) -> Value {
        self.tunnel.lock().unwrap().config["rules"].clone()
    }

    async fn edit_all(&self, edits: &[(&str, &'static str)]) -> Vec<Result<Committed, ApiError>> {
        let mut tasks = Vec::new();
        for (source, rule) in edits {
            let (document, source, rule) = (self.document.clone(), (*source).to_owned(), *rule);
            let edit = async move { document.edit(Lane::Change, &source, with_rule(rule)).await };
            tasks.push(AbortOnDropHandle::new(tokio::spawn(edit)));
        }
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers
    }
}

/// Adds a rule unless it is there.
fn with_rule(rule: &'static str) -> impl Fn(&mut Value) + Send + Sync + 'static {
    move |config| {
        let rules = config["rules"].as_array_mut().unwrap();
        if !rules.contains(&json!(rule)) {
            rules.push(json!(rule));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn edits_that_gather_are_written_once() {
    let api = api(0);

    let answers = api.edit_all(&[("a", "1"), ("b", "2"), ("c", "3")]).await;

    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|committed| committed.written)));
    assert_eq!(answers[0].as_ref().unwrap().content.version, Some(8));
    assert_eq!(api.rules(), json!(["1", "2", "3"]));
    assert_eq!(api.methods(), ["GET", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_changes_nothing_is_not_written() {
    let api = api(0);
    api.edit_all(&[("a", "1")]).await;

    let answers = api.edit_all(&[("a", "1")]).await;

    assert!(!answers[0].as_ref().unwrap().written);
    assert_eq!(api.methods(), ["GET", "PUT", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_edit_fails_alone() {
    let api = api(0);

    let answers = api.edit_all(&[("a", "1"), ("b", "2"), ("c", "bad"), ("d", "4")]).await;

    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(api.rules(), json!(["1", "2", "4"]));
}

#[tokio::test(start_paused = true)]
async fn the_latest_edit_of_a_source_wins() {
    let api = api(0);

    let answers = api.edit_all(&[("a", "old"), ("a", "new")]).await;

    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(api.rules(), json!(["new"]));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_overtook_somebody_elses_is_merged_again_and_told() {
    let api = api(1);

    let answers = api.edit_all(&[("a", "1")]).await;

    assert_eq!(answers[0].as_ref().unwrap().raced, Some(Raced { read: 7, became: 9 }));
    assert_eq!(api.methods(), ["GET", "PUT", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_cannot_be_read_fails_everybody() {
    let scripted = Scripted::new(LATENCY, |_| bad(403, 10000));
    let document = scripted.client().document(&TUNNEL_CONFIGURATION, "acc", "t1");

    let error = document.edit(Lane::Change, "a", |_| {}).await.unwrap_err();

    assert_eq!(error.class, ErrorClass::Auth);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_overtaken_every_time_gives_up_and_says_so() {
    let api = api(u32::MAX);
    let count = Arc::new(Mutex::new(0));

    let error = api
        .document
        .edit(Lane::Change, "a", move |config| {
            let mut count = count.lock().unwrap();
            *count += 1;
            config["rules"] = json!([*count]);
        })
        .await
        .unwrap_err();

    assert_eq!((error.class, error.effect), (ErrorClass::Conflict, Effect::Unknown));
    assert_eq!(api.methods().iter().filter(|method| *method == "PUT").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn server_errors_are_waited_out_and_the_document_read_again_before_each_write() {
    let api = api(0);
    api.breaks([Fault::Fails, Fault::Fails]);

    let answers = api.edit_all(&[("a", "1")]).await;

    assert_eq!(answers[0].as_ref().unwrap().raced, None);
    assert_eq!(api.methods(), ["GET", "PUT", "GET", "PUT", "GET", "PUT"]);
    assert_eq!(api.rules(), json!(["1"]));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_wrote_during_the_pause_survives() {
    let api = api(0);
    api.breaks([Fault::Overtaken("theirs")]);

    let answers = api.edit_all(&[("a", "ours")]).await;

    assert_eq!(answers[0].as_ref().unwrap().raced, None);
    assert_eq!(api.rules(), json!(["theirs", "ours"]));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_found_and_not_sent_again() {
    let api = api(0);
    api.breaks([Fault::Lost]);

    let answers = api.edit_all(&[("a", "1")]).await;

    let committed = answers[0].as_ref().unwrap();
    assert_eq!((committed.written, committed.raced, committed.content.version), (true, None, Some(8)));
    assert_eq!(api.methods(), ["GET", "PUT", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_waits_for_those_that_were_announced_two_seconds_at_most() {
    let api = api(0);
    let announced = api.document.expect();

    api.edit_all(&[("a", "1")]).await;

    assert_eq!(api.scripted.seen()[0].at, Duration::from_secs(2));
    drop(announced);
}

#[tokio::test(start_paused = true)]
async fn an_announced_edit_goes_out_with_the_one_that_waited() {
    let api = api(0);
    let announced = api.document.expect();
    let (document, late) = (api.document.clone(), api.document.clone());
    let late = async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(announced);
        late.edit(Lane::Change, "b", with_rule("2")).await
    };

    let (one, other) = tokio::join!(document.edit(Lane::Change, "a", with_rule("1")), late);

    assert!(one.is_ok() && other.is_ok());
    assert_eq!(api.methods(), ["GET", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn a_document_whose_owner_is_not_there_is_empty_and_nothing_is_written_to_take_something_out() {
    let scripted = Scripted::new(LATENCY, |_| bad(404, 1003));
    let document = scripted.client().document(&TUNNEL_CONFIGURATION, "acc", "t1");

    let committed = document.edit(Lane::Change, "a", |config| assert_eq!(*config, json!({}))).await.unwrap();

    assert_eq!((committed.written, committed.content.as_ref()), (false, &Content::default()));
    assert_eq!(scripted.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_was_never_written_is_an_empty_one() {
    let scripted = Scripted::new(LATENCY, |_| good(json!({"config": null, "version": 0})));
    let document = scripted.client().document(&TUNNEL_CONFIGURATION, "acc", "t1");

    let content = document.read(Lane::Change).await.unwrap();

    assert_eq!(*content, Content { value: json!({}), version: Some(0) });
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_shows_what_was_last_written_and_how_old_it_is() {
    let api = api(0);
    assert!(api.document.snapshot().is_none());

    api.edit_all(&[("a", "1")]).await;
    tokio::time::advance(Duration::from_secs(5)).await;

    let known = api.document.snapshot().unwrap();
    assert_eq!((known.content.value.clone(), known.content.version), (json!({"rules": ["1"]}), Some(8)));
    assert_eq!(known.age, LATENCY + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_together_share_one_read() {
    let api = api(0);
    let document = &api.document;
    let ask = || document.refresh(Lane::Drift, Freshness::AfterNow);

    let (one, other) = tokio::join!(ask(), ask());
    let later = document.refresh(Lane::Drift, Freshness::Within(Duration::from_secs(60))).await;

    assert!(one.is_ok() && one == other && other == later);
    assert_eq!(api.methods(), ["GET"]);
}
