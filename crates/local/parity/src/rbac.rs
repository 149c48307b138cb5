//! Random roles and bindings on both servers and random requests by impersonation → the decisions that differ.
//!
//! A role set has users, groups and service accounts of its own, so that sets do not meet though they run side by side.

mod draw;
mod question;
mod role_set;

use std::time::Duration;

use futures::StreamExt as _;

use crate::client::{Client, Request};
use crate::names::run_name;
use crate::options::Options;
use crate::peers::Peers;

use draw::Draw;
use question::Question;
use role_set::RoleSet;

/// Role sets of one run, and requests of each.
const SETS: u64 = 50;
const REQUESTS: usize = 200;
/// Sets and requests of a set that run at the same time.
const SETS_AT_ONCE: usize = 3;
const REQUESTS_AT_ONCE: usize = 8;
/// The real server decides by caches that follow its store, and picks any of several bindings that allow: a difference
/// is one that stays.
const ASKED_AGAIN: u32 = 40;
/// Differences that are shown of a set.
const SHOWN: usize = 5;

/// One decision that differs.
struct Difference {
    question: String,
    real: String,
    embedded: String,
}

/// Runs everything, prints the summary, and tells whether nothing differed.
pub async fn run(peers: &Peers, options: &Options) -> bool {
    let client = |server| Client::new(server).expect("the server's CA is PEM");
    let embedded = client(peers.embedded());
    let Some(real) = peers.real().map(client) else {
        println!("parity rbac: NOT RUN: there is no real server to compare with");
        return true;
    };
    let sets = std::env::var("PORTOLAN_ROLE_SETS").ok().and_then(|count| count.parse().ok()).unwrap_or(SETS);
    let run = run_name();
    let compared = (options.seed..options.seed.saturating_add(sets)).map(|seed| compare(&real, &embedded, &run, seed));
    let results: Vec<(u64, Vec<Difference>)> =
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

fn show(seed: u64, differences: &[Difference]) {
    if differences.is_empty() {
        return;
    }
    println!("failing seed: {seed}");
    for difference in differences.iter().take(SHOWN) {
        println!("  {}\n    real:     {}\n    embedded: {}", difference.question, difference.real, difference.embedded);
    }
}

/// Makes a role set on both servers and asks both the same questions.
async fn compare(real: &Client, embedded: &Client, run: &str, seed: u64) -> (u64, Vec<Difference>) {
    let mut draw = Draw::of(seed);
    let set = RoleSet::draw(&mut draw, &format!("rs{seed}-{run}"));
    for client in [real, embedded] {
        for (path, object) in &set.objects {
            let answer = client.send(&Request::json("POST", path, object)).await;
            assert!(answer.status == 201, "{path} was refused: {}", answer.json()["message"]);
        }
    }
    let questions: Vec<Question> = (0..REQUESTS).map(|_| Question::draw(&mut draw, &set)).collect();
    let asked = questions.iter().map(|question| differs(real, embedded, question));
    let found: Vec<Option<Difference>> =
        futures::stream::iter(asked).buffer_unordered(REQUESTS_AT_ONCE).collect().await;
    (seed, found.into_iter().flatten().collect())
}

/// Asks both; the real one again and again while they differ.
async fn differs(real: &Client, embedded: &Client, question: &Question) -> Option<Difference> {
    let request = question.request();
    let mut pause = Duration::from_millis(5);
    for attempt in 0.. {
        let (from_real, from_embedded) = futures::join!(real.send(&request), embedded.send(&request));
        let (real, embedded) = (question.decision(&from_real), question.decision(&from_embedded));
        if real == embedded {
            return None;
        }
        if attempt == ASKED_AGAIN {
            return Some(Difference { question: question.to_string(), real, embedded });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(Duration::from_millis(300));
    }
    None
}
