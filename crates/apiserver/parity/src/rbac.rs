//! Random roles and bindings on both servers and random requests by impersonation → the decisions that differ.
//!
//! A role set has users, groups and service accounts of its own, so that sets do not meet though they run side by side.

mod draw;
mod question;
mod rights;
mod role_set;

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;

use crate::answer::ServerAnswer;
use crate::client::{Client, PeerRequest};
use crate::names::run_name;
use crate::options::Options;
use crate::peers::Peers;
use crate::run::poll;

use draw::Draw;
use question::{AccessQuestion, REVIEWS};
use rights::Rights;
use role_set::{MARKS, RoleSet};

/// Requests of a role set.
const REQUESTS: usize = 200;
/// Sets and requests of a set that run at the same time.
const SETS_AT_ONCE: usize = 3;
const REQUESTS_AT_ONCE: usize = 8;
/// How often a server may fail to answer at all: it is busy, or its store is.
const FAILURES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);
/// Differences that are shown of a set.
const SHOWN: usize = 5;

/// One decision that differs.
struct DecisionDifference {
    question: String,
    real: String,
    embedded: String,
}

/// Runs everything, prints the summary, and tells whether nothing differed.
pub(crate) async fn run(peers: &Peers, options: &Options) -> bool {
    let client = |server| Client::new(server).expect("the server's CA is PEM");
    let embedded = client(peers.embedded());
    let Some(real) = peers.real().map(client) else { return true };
    let run = run_name();
    let compared = options.role_sets.iter().map(|seed| compare(&real, &embedded, &run, *seed));
    let results: Vec<(u64, Vec<DecisionDifference>)> =
        futures::stream::iter(compared).buffer_unordered(SETS_AT_ONCE).collect().await;
    let mut differing = 0;
    for (seed, differences) in &results {
        differing += differences.len();
        show(*seed, differences);
    }
    let requests = results.len() * REQUESTS;
    println!("parity rbac: {} role sets, {requests} requests, {differing} differences", results.len());
    differing == 0
}

fn show(seed: u64, differences: &[DecisionDifference]) {
    if differences.is_empty() {
        return;
    }
    println!("failing seed: {seed}");
    for difference in differences.iter().take(SHOWN) {
        println!("  {}\n    real:     {}\n    embedded: {}", difference.question, difference.real, difference.embedded);
    }
}

/// Makes a role set on both servers, waits until both know all of it, and asks both the same questions.
async fn compare(real: &Client, embedded: &Client, run: &str, seed: u64) -> (u64, Vec<DecisionDifference>) {
    let mut draw = Draw::of(seed);
    let set = RoleSet::draw(&mut draw, &format!("rs{seed}-{run}"));
    futures::join!(settle(real, &set), settle(embedded, &set));
    let rights = Rights::of(real).await;
    let questions: Vec<AccessQuestion> = (0..REQUESTS).map(|_| AccessQuestion::draw(&mut draw, &set)).collect();
    let asked = questions.iter().map(|question| differs(real, embedded, question, &rights));
    let found: Vec<Option<DecisionDifference>> =
        futures::stream::iter(asked).buffer_unordered(REQUESTS_AT_ONCE).collect().await;
    (seed, found.into_iter().flatten().collect())
}

/// Makes the set on one server. Its authorizer decides by caches that follow the store kind by kind, in order: it knows
/// the set once it knows the last of every kind. Before that, both servers may be wrong alike.
async fn settle(client: &Client, set: &RoleSet) {
    let (last, reviews) = set.last_ones();
    let last_part = set.last_part();
    for (path, object) in set.objects.iter().chain([&last_part]) {
        post(client, path, object).await;
    }
    for path in set.aggregated() {
        let request = PeerRequest::get(&path);
        let filled = poll(client, &request, |answer| answer.json()["rules"].to_string().contains(MARKS));
        assert!(filled.await, "{path} does not gather the others' rules");
    }
    for (path, object) in &last {
        post(client, path, object).await;
    }
    for review in &reviews {
        let request = PeerRequest::json("POST", &format!("{REVIEWS}/subjectaccessreviews"), review);
        let known = poll(client, &request, |answer| answer.json()["status"]["allowed"] == true);
        assert!(known.await, "{} is not known: {review}", set.id);
    }
}

async fn post(client: &Client, path: &str, object: &Value) {
    let answer = client.send(&PeerRequest::json("POST", path, object)).await;
    assert!(answer.status == 201, "{path} was refused: {}", answer.json()["message"]);
}

/// Asks both, once.
async fn differs(
    real: &Client,
    embedded: &Client,
    question: &AccessQuestion,
    rights: &Rights,
) -> Option<DecisionDifference> {
    let request = question.request();
    let (from_real, from_embedded) = futures::join!(ask(real, &request), embedded.send(&request));
    let (real, embedded) = (question.decision(&from_real, rights), question.decision(&from_embedded, rights));
    let wrong = real != embedded || real.contains(question::NAMED_WRONGLY);
    wrong.then(|| DecisionDifference { question: question.to_string(), real, embedded })
}

/// The answer of the real server; again where it only says that it cannot answer now.
async fn ask(real: &Client, request: &PeerRequest) -> ServerAnswer {
    let mut answer = real.send(request).await;
    for _ in 0..FAILURES {
        if !matches!(answer.status, 0 | 429 | 500..) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        answer = real.send(request).await;
    }
    answer
}
