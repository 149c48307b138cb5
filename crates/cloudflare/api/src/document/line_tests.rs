//! One document, several credentials and rights that run out, against a scripted API under a paused clock.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::*;
use crate::clients::Clients;
use crate::credential::Credential;
use crate::settings::Settings;
use crate::testing::{Answered, Scripted, SeenRequest, bad, clients, good, with_header};

const LATENCY: Duration = Duration::from_millis(100);

/// A configuration as the API keeps it.
struct Tunnel {
    rules: BTreeSet<String>,
    version: i64,
}

struct Api {
    scripted: Arc<Scripted>,
    clients: Clients,
    tunnel: Arc<Mutex<Tunnel>>,
}

fn token(seen: &SeenRequest) -> &str {
    seen.headers["authorization"].to_str().unwrap().trim_start_matches("Bearer ")
}

fn rules_of(config: &Value) -> BTreeSet<String> {
    let rules = config["rules"].as_array().cloned().unwrap_or_default();
    rules.iter().map(|rule| rule.as_str().unwrap().to_owned()).collect()
}

/// An API whose answers `trouble` may replace; what it gives back instead of an answer is a fault after the write.
fn api(mut trouble: impl FnMut(&SeenRequest) -> Option<Trouble> + Send + 'static) -> Api {
    let tunnel = Arc::new(Mutex::new(Tunnel { rules: BTreeSet::new(), version: 7 }));
    let played = tunnel.clone();
    let scripted = Scripted::new(LATENCY, move |seen| {
        let trouble = trouble(seen);
        if let Some(Trouble::Refused(answer)) = trouble {
            return answer;
        }
        let mut tunnel = played.lock().unwrap();
        if seen.line.starts_with("PUT") {
            (tunnel.rules, tunnel.version) = (rules_of(&seen.body["config"]), tunnel.version + 1);
        }
        match trouble {
            Some(Trouble::Lost(answer)) => answer,
            _ => good(json!({"config": {"rules": tunnel.rules}, "version": tunnel.version})),
        }
    });
    let clients = clients(Settings::default(), scripted.clone());
    Api { scripted, clients, tunnel }
}

enum Trouble {
    Refused(Answered),
    Lost(Answered),
}

impl Api {
    fn document(&self, token: &str) -> Arc<Document> {
        self.clients.client(&Credential::token(token)).document(&TUNNEL_CONFIGURATION, "acc", "t1")
    }

    fn rules(&self) -> usize {
        self.tunnel.lock().unwrap().rules.len()
    }

    /// Rules that each write added to what the one before it left, with the token that sent it.
    fn added(&self) -> Vec<(String, BTreeSet<String>)> {
        let mut before = BTreeSet::new();
        let puts = self.scripted.seen().into_iter().filter(|seen| seen.line.starts_with("PUT"));
        let added = |seen: SeenRequest| {
            let rules = rules_of(&seen.body["config"]);
            let new = rules.difference(&before).cloned().collect();
            before = rules;
            (token(&seen).to_owned(), new)
        };
        puts.map(added).collect()
    }

    fn puts(&self) -> usize {
        self.scripted.lines().iter().filter(|line| line.starts_with("PUT")).count()
    }
}

/// Adds a rule unless it is there.
fn with_rule(rule: String) -> impl Fn(&mut Value) + Send + Sync + 'static {
    move |config| {
        let mut rules = rules_of(config);
        if rules.insert(rule.clone()) {
            config["rules"] = json!(rules);
        }
    }
}

async fn edit(document: &Document, rule: String) -> Result<Committed, ApiError> {
    document.edit(Lane::Change, &rule.clone(), with_rule(rule)).await
}

#[tokio::test(start_paused = true)]
async fn finding_7_two_tokens_on_one_tunnel_lose_no_rule() {
    let api = api(|_| None);
    let documents = ["a", "b"].map(|token| (token, api.document(token)));

    let mut edits = Vec::new();
    for number in 0..20_u64 {
        for (token, document) in &documents {
            let edit = async move {
                tokio::time::sleep(Duration::from_millis(number * 37)).await;
                edit(document, format!("{token}{number}")).await
            };
            edits.push(edit);
        }
    }
    let answers = join_all(edits).await;

    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|committed| committed.raced.is_none())));
    assert_eq!(api.rules(), 40);
    for (token, added) in api.added() {
        assert!(added.iter().all(|rule| rule.starts_with(&token)), "{token} wrote {added:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_second_token_costs_no_read_more() {
    let api = api(|_| None);
    let (a, b) = (api.document("a"), api.document("b"));

    let _ = tokio::join!(edit(&a, "a1".to_owned()), edit(&b, "b1".to_owned()));

    assert_eq!((api.rules(), api.puts(), api.scripted.lines().len()), (2, 2, 4));
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_read_that_took_long_is_not_put_behind_an_older_write_of_another_token() {
    let mut refused = 0;
    let api = api(move |seen| {
        refused += u32::from(token(seen) == "b");
        let busy = token(seen) == "b" && refused == 1;
        busy.then(|| Trouble::Refused(with_header(bad(429, 10000), "retry-after", "5")))
    });
    let (a, b) = (api.document("a"), api.document("b"));
    api.tunnel.lock().unwrap().rules.insert("foreign".to_owned());

    let somebody_else = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        edit(&a, "a1".to_owned()).await.unwrap();
        let mut tunnel = api.tunnel.lock().unwrap();
        tunnel.rules.remove("foreign");
        tunnel.version += 1;
    };
    let (written, ()) = tokio::join!(edit(&b, "b1".to_owned()), somebody_else);

    assert!(written.unwrap().raced.is_none(), "it was read after everybody else had written");
    assert_eq!(api.tunnel.lock().unwrap().rules, ["a1", "b1"].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_token_without_rights_sees_nothing_of_what_others_write() {
    let api = api(|seen| (token(seen) == "b").then(|| Trouble::Refused(bad(403, 10000))));
    let (a, b) = (api.document("a"), api.document("b"));
    assert!(b.refresh(Lane::Change, Freshness::Any).await.is_err());

    edit(&a, "a1".to_owned()).await.unwrap();

    assert!(b.snapshot().is_none());
    assert!(edit(&b, "b1".to_owned()).await.is_err_and(|error| error.class == ErrorClass::Auth));
    assert!(b.snapshot().is_none() && b.refresh(Lane::Change, Freshness::Any).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_token_that_finds_no_tunnel_does_not_write_what_others_see() {
    let api = api(|seen| (token(seen) == "b").then(|| Trouble::Refused(bad(404, 7003))));
    let (a, b) = (api.document("a"), api.document("b"));

    let (_, refused) = tokio::join!(edit(&a, "a1".to_owned()), edit(&b, "b1".to_owned()));

    assert!(refused.is_err_and(|error| error.class == ErrorClass::NotFound));
    let writes = api.scripted.seen().into_iter().filter(|seen| seen.line.starts_with("PUT") && token(seen) == "b");
    assert!(writes.map(|seen| rules_of(&seen.body["config"])).all(|rules| !rules.contains("a1")));
}

#[tokio::test(start_paused = true)]
async fn finding_7_what_one_token_writes_the_other_knows_if_it_has_read_it() {
    let api = api(|_| None);
    let (a, b) = (api.document("a"), api.document("b"));
    b.refresh(Lane::Change, Freshness::Any).await.unwrap();

    edit(&a, "a1".to_owned()).await.unwrap();

    let known = b.snapshot().unwrap().content;
    assert_eq!((rules_of(&known.value).len(), known.version), (1, Some(8)));
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_token_whose_budget_is_spent_keeps_nobody_else_waiting() {
    let spent = || Trouble::Refused(with_header(bad(429, 10429), "retry-after", "25"));
    let api = api(move |seen| (token(seen) == "a" && seen.line.starts_with("PUT")).then(spent));
    let (a, b) = (api.document("a"), api.document("b"));
    let waits = AbortOnDropHandle::new(tokio::spawn(async move { edit(&a, "a1".to_owned()).await }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();

    edit(&b, "b1".to_owned()).await.unwrap();

    assert!(begun.elapsed() <= 3 * LATENCY && !waits.is_finished());
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_write_of_unknown_outcome_makes_the_other_token_read_again() {
    let mut lost = false;
    let api = api(move |seen| {
        let first = token(seen) == "a" && seen.line.starts_with("PUT") && !std::mem::replace(&mut lost, true);
        first.then(|| Trouble::Lost(bad(500, 1)))
    });
    let (a, b) = (api.document("a"), api.document("b"));

    let (first, second) = tokio::join!(edit(&a, "a1".to_owned()), edit(&b, "b1".to_owned()));

    assert!(first.is_ok() && second.is_ok_and(|committed| committed.raced.is_none()));
    assert_eq!(api.rules(), 2);
}

#[tokio::test(start_paused = true)]
async fn finding_17_an_edit_whose_right_ran_out_is_not_sent_and_holds_nobody_up() {
    let api = api(|_| None);
    let (document, begun) = (api.document("a"), Instant::now());
    // The read takes longer than the right lasts.
    let late = document.within(&WriteGate::new(move || begun.elapsed() < LATENCY / 2));

    let (lapsed, written) = tokio::join!(edit(&late, "late".to_owned()), edit(&document, "good".to_owned()));

    assert!(lapsed.is_err_and(|error| error.effect == Effect::None));
    assert!(written.is_ok());
    let added: Vec<_> = api.added().into_iter().flat_map(|(_, rules)| rules).collect();
    assert_eq!(added, ["good"]);
}

#[tokio::test(start_paused = true)]
async fn finding_17_an_edit_that_waits_in_line_behind_another_token_is_not_sent_when_its_right_ran_out_there() {
    let api = api(|_| None);
    let (a, b, begun) = (api.document("a"), api.document("b"), Instant::now());
    // Both read until 100 ms; the second write waits for the first one until 200 ms.
    let b = b.within(&WriteGate::new(move || begun.elapsed() < LATENCY * 3 / 2));

    let (first, second) = tokio::join!(edit(&a, "a1".to_owned()), edit(&b, "b1".to_owned()));

    assert!(first.is_ok() && second.is_err());
    assert_eq!((api.rules(), api.puts()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn finding_17_an_edit_that_is_tried_again_is_not_sent_when_its_right_ran_out_meanwhile() {
    let api = api(|seen| seen.line.starts_with("PUT").then(|| Trouble::Refused(bad(500, 1))));
    let open = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&open);
    let document = api.document("a").within(&WriteGate::new(move || asked.load(Ordering::Relaxed)));
    let waits = AbortOnDropHandle::new(tokio::spawn(async move { edit(&document, "a1".to_owned()).await }));
    tokio::time::sleep(2 * LATENCY).await;

    open.store(false, Ordering::Relaxed);

    assert!(waits.await.unwrap().is_err());
    assert_eq!(api.puts(), 1);
}

#[tokio::test(start_paused = true)]
async fn finding_17_an_edit_that_nobody_waits_for_any_more_is_not_sent() {
    let api = api(|_| None);
    let document = api.document("a");
    let waits = AbortOnDropHandle::new(tokio::spawn(async move { edit(&document, "a1".to_owned()).await }));
    tokio::time::sleep(LATENCY / 2).await;

    drop(waits);
    tokio::time::sleep(Duration::from_secs(10)).await;

    assert_eq!(api.puts(), 0);
}
