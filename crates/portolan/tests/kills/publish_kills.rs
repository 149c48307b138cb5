//! `kill -9` of `portolan run` while protected routes with service tokens converge: in the end there is one of everything,
//! every Secret opens its name at the edge, and no client secret stands anywhere else.
//!
//! `PORTOLAN_PUBLISH_KILLS` sets the number of kills (50 where unset).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::ground::{API_TOKEN, Ground, decoded, route as protected};
use crate::support::process::{Process, eventually};
use serde_json::{Value, json};

const ROUTES: usize = 40;
/// An operator that has little to do is not waited for.
const LONGEST_LIFE: Duration = Duration::from_secs(4);
/// The one process, in all its lives.
const NAME: &str = "worker-0";

fn route(number: usize, emails: &str) -> Value {
    let host = format!("r{number}.example.com");
    protected("default", &format!("r{number}"), &host, &[("allowEmails", emails), ("serviceToken", "true")])
}

/// A route as it is after a round: other addresses, and now and then another secret.
fn edited(number: usize, emails: &str, round: usize) -> Value {
    let mut route = route(number, emails);
    if number.is_multiple_of(3) {
        route["metadata"]["annotations"]["cfzt.cloudflare.com/serviceToken.rotate"] = json!(format!("round {round}"));
    }
    route
}

/// Starts the operator, lets it come a little further, and kills it.
fn come_further_and_die(ground: &Ground, round: usize) {
    let before = ground.requests().len();
    let operator = Process::start(&mut ground.operator(NAME, "all"));
    let further = before + 1 + round * 7 % 11;
    let until = Instant::now() + LONGEST_LIFE;
    while ground.requests().len() < further && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis((round * 37 % 60) as u64));
    // Dropped, it is killed by SIGKILL.
    drop(operator);
}

#[test]
fn killed_fifty_times_there_is_one_of_everything_and_the_secrets_open_their_names() {
    let kills: usize = std::env::var("PORTOLAN_PUBLISH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    let ground = Ground::embedded("15ms");
    ground.apply(&(0..ROUTES).map(|number| route(number, "first@example.com")).collect::<Vec<_>>());

    for round in 0..kills {
        // Users go on working, so that there is always something to do.
        let emails = format!("user{round}@example.com");
        ground.apply(&(0..6).map(|n| edited((round * 6 + n) % ROUTES, &emails, round)).collect::<Vec<_>>());
        come_further_and_die(&ground, round);
    }
    let mut last = Process::start(&mut ground.operator(NAME, "all"));
    eventually("everything is done", || ground.is_done("default", ROUTES).then_some(()));

    for collection in ["access_apps", "service_tokens", "dns_records"] {
        assert_eq!(ground.count(collection), ROUTES, "{collection}");
    }
    assert_eq!(ground.rules(), ROUTES, "one rule each, and the catch-all");
    let secrets = ground.get("secrets", "default");
    let mut told = Vec::new();
    for number in 0..ROUTES {
        let name = format!("r{number}-cfzt-service-token");
        let secret = secrets.iter().find(|one| one["metadata"]["name"] == name).expect("every route has its Secret");
        let (id, key) = (decoded(secret, "client_id"), decoded(secret, "client_secret"));
        let host = format!("r{number}.example.com");
        let shown = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", key.as_str())];
        assert_eq!(ground.visit(&host, &shown), 200, "the Secret opens {host}");
        assert_eq!(ground.visit(&host, &[]), 302, "nobody else enters {host}");
        told.push(key);
    }
    assert_eq!(last.terminate(), Some(0));
    assert_nowhere_else(&ground, &told);
    // Written to the handle itself: what `println!` says is kept back when a test passes.
    let _ = writeln!(
        std::io::stderr(),
        "kills: {kills} of portolan run, {ROUTES} routes with tokens: one of everything, all Secrets open their names"
    );
}

/// No client secret stands in an object, an event or the log.
fn assert_nowhere_else(ground: &Ground, told: &[String]) {
    let mut places = vec![("the log".to_owned(), ground.log(NAME))];
    for (kind, namespace) in [
        ("httproutes", "default"),
        ("cloudflarezerotrusttenants", "default"),
        ("events", "default"),
        ("cloudflaretasks", "cloudflare-zero-trust"),
        ("configmaps", "cloudflare-zero-trust"),
        ("secrets", "cloudflare-zero-trust"),
    ] {
        let objects = ground.get(kind, namespace);
        places.push((kind.to_owned(), json!(objects).to_string()));
    }
    places.push(("recorded requests".to_owned(), ground.admin("requests").to_string()));
    for (place, text) in &places {
        let seen = told.iter().chain([&API_TOKEN.to_owned()]).any(|secret| text.contains(secret.as_str()));
        assert!(!seen, "a secret stands in {place}");
    }
    assert!(places[0].1.len() > 1000, "something was logged");
}
