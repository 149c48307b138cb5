//! Whole documents against a scripted API under a paused clock.

use std::time::Duration;

use super::*;
use crate::testing::{Scripted, bad, good};

const LATENCY: Duration = Duration::from_millis(100);

/// A configuration that refuses rules called `bad`, and that somebody else writes as often as `meddles` says.
struct Tunnel {
    config: Value,
    version: i64,
    meddles: u32,
}

struct Api {
    scripted: Arc<Scripted>,
    tunnel: Arc<Mutex<Tunnel>>,
    document: Arc<Document>,
}

fn api(meddles: u32) -> Api {
    let tunnel = Arc::new(Mutex::new(Tunnel { config: json!({"rules": []}), version: 7, meddles }));
    let played = tunnel.clone();
    let scripted = Scripted::new(LATENCY, move |seen| {
        let mut tunnel = played.lock().unwrap();
        if seen.line.starts_with("PUT") {
            let config = seen.body["config"].clone();
            if config["rules"].as_array().unwrap().contains(&json!("bad")) {
                return bad(400, 1056);
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
fn with_rule(rule: &'static str) -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    move |live| {
        let mut wanted = live.clone();
        let rules = wanted["rules"].as_array_mut().unwrap();
        if !rules.contains(&json!(rule)) {
            rules.push(json!(rule));
        }
        wanted
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

    let error = document.edit(Lane::Change, "a", Value::clone).await.unwrap_err();

    assert_eq!(error.class, ErrorClass::Auth);
}
