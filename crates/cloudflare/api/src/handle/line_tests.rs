//! One zone, several credentials and rights that run out, against a scripted API under a paused clock.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::clients::Clients;
use crate::credential::Credential;
use crate::settings::Settings;
use crate::testing::{RECORDS, Scripted, SeenRequest, TestRecord, answer, bad, clients, good, record};

const LATENCY: Duration = Duration::from_millis(100);

fn token(seen: &SeenRequest) -> &str {
    seen.headers["authorization"].to_str().unwrap().trim_start_matches("Bearer ")
}

/// A zone that takes everything of every token but `stranger`, which may not even read it.
fn zone() -> (Arc<Scripted>, Clients) {
    let mut records: Vec<Value> = Vec::new();
    let scripted = Scripted::new(LATENCY, move |seen| {
        let mut make = |op: &Value| {
            let made = record(&format!("r{}", records.len()), op["name"].as_str().unwrap(), "192.0.2.1");
            records.push(made.clone());
            made
        };
        match (token(seen), seen.line.split(['?', ' ']).collect::<Vec<_>>().as_slice()) {
            ("stranger", _) => bad(403, 10000),
            (_, ["POST", path]) if path.ends_with("/batch") => {
                let posts: Vec<Value> = seen.body["posts"].as_array().unwrap().iter().map(make).collect();
                good(json!({"posts": posts}))
            }
            (_, ["POST", _]) => good(make(&seen.body)),
            _ => answer(200, &json!({"success": true, "result": records, "result_info": {"total_pages": 1}})),
        }
    });
    let clients = clients(Settings::default(), scripted.clone());
    (scripted, clients)
}

fn records(clients: &Clients, token: &str) -> Arc<CollectionHandle<TestRecord>> {
    clients.client(&Credential::token(token)).records(&RECORDS, "z1")
}

fn create(name: String) -> Vec<Op> {
    vec![Op::Create(json!({"name": name}))]
}

fn known(remote: &CollectionHandle<TestRecord>) -> usize {
    remote.with(Snapshot::len)
}

fn writes(scripted: &Scripted) -> Vec<SeenRequest> {
    scripted.seen().into_iter().filter(|seen| seen.line.starts_with("POST")).collect()
}

#[tokio::test(start_paused = true)]
async fn finding_7_two_tokens_write_a_zone_one_after_the_other_each_its_own_changes() {
    let (scripted, clients) = zone();
    let remotes = ["a", "b"].map(|token| (token, records(&clients, token)));

    let mut all = Vec::new();
    for number in 0..20_u64 {
        for (token, remote) in &remotes {
            all.push(async move {
                tokio::time::sleep(Duration::from_millis(number * 23)).await;
                remote.write(Lane::Change, create(format!("{token}{number}"))).await
            });
        }
    }
    let answers = join_all(all).await;

    assert!(answers.iter().all(Result::is_ok));
    let writes = writes(&scripted);
    assert!(writes.windows(2).all(|two| two[1].at >= two[0].at + LATENCY), "one is on its way at a time");
    for seen in &writes {
        let posts = seen.body["posts"].as_array().cloned().unwrap_or_else(|| vec![seen.body.clone()]);
        assert!(posts.iter().all(|post| post["name"].as_str().unwrap().starts_with(token(seen))), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_write_shows_to_those_who_have_read_the_zone_themselves() {
    let (scripted, clients) = zone();
    let (a, reader, idle, stranger) =
        (records(&clients, "a"), records(&clients, "b"), records(&clients, "c"), records(&clients, "stranger"));
    reader.refresh(Lane::Change, Freshness::Any).await.unwrap();
    assert!(stranger.refresh(Lane::Change, Freshness::Any).await.is_err());

    a.write(Lane::Change, create("x".to_owned())).await.unwrap();

    assert_eq!([known(&reader), known(&idle), known(&stranger)], [1, 0, 0]);
    let listings = scripted.seen().len();
    reader.refresh(Lane::Change, Freshness::Any).await.unwrap();
    assert_eq!(scripted.seen().len(), listings, "it need not list for that");
}

#[tokio::test(start_paused = true)]
async fn finding_7_a_write_during_the_first_listing_shows_when_the_listing_succeeds_and_not_before() {
    let (_, clients) = zone();
    let (a, b, stranger) = (records(&clients, "a"), records(&clients, "b"), records(&clients, "stranger"));
    let listing = tokio::spawn({
        let b = b.clone();
        async move {
            tokio::time::sleep(LATENCY / 4 * 3).await;
            b.refresh(Lane::Change, Freshness::Any).await
        }
    });
    let refused = tokio::spawn({
        let stranger = stranger.clone();
        async move {
            tokio::time::sleep(LATENCY / 4 * 3).await;
            stranger.refresh(Lane::Change, Freshness::Any).await
        }
    });

    a.write(Lane::Change, create("x".to_owned())).await.unwrap();

    assert_eq!((known(&b), known(&stranger)), (0, 0));
    assert!(listing.await.unwrap().is_ok() && refused.await.unwrap().is_err());
    assert_eq!((known(&b), known(&stranger)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn finding_17_a_write_whose_right_ran_out_in_line_is_not_sent_and_holds_nobody_up() {
    let (scripted, clients) = zone();
    let (a, begun) = (records(&clients, "a"), Instant::now());
    let gate = WriteGate::new(move || begun.elapsed() < LATENCY / 2);
    let late = clients.client(&Credential::token("b")).within(&gate).records(&RECORDS, "z1");
    let good = records(&clients, "b");

    let (first, lapsed, second) = tokio::join!(
        a.write(Lane::Change, create("a1".to_owned())),
        late.write(Lane::Change, create("late".to_owned())),
        good.write(Lane::Change, create("b1".to_owned())),
    );

    assert!(first.is_ok() && second.is_ok());
    assert!(lapsed.is_err_and(|error| error.effect == Effect::None));
    assert!(writes(&scripted).iter().all(|seen| !seen.body.to_string().contains("late")));
}

#[tokio::test(start_paused = true)]
async fn finding_17_a_client_whose_right_ran_out_sends_no_write_but_reads() {
    let (scripted, clients) = zone();
    let clients = clients.within(&WriteGate::new(|| false));
    let client = clients.client(&Credential::token("a"));
    let post = Request::new(http::Method::POST, "/accounts/{account_id}/access/apps", &["acc"]);

    assert!(client.send(Lane::Change, &post).await.is_err());
    assert!(client.records(&RECORDS, "z1").refresh(Lane::Change, Freshness::Any).await.is_ok());

    assert!(writes(&scripted).is_empty());
}
