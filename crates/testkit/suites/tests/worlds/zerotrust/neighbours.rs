//! Somebody else edits the tunnel's configuration: before our read and after our write a hundred times each, and inside
//! the window between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use portolan_cloudflare_sim::Simulator;
use portolan_testkit_suites::failpoints::StopSide;
use portolan_testkit_suites::hooks::HookedCall;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, RouteManifest, TUNNEL};
use portolan_testkit_suites::{World, tell};
use serde_json::{Value, json};

use super::settled;

const TIMES: usize = 100;

fn path() -> String {
    format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations")
}

/// Somebody adds a rule of his own, and changes what he likes.
fn edit(simulator: &Simulator, number: usize) {
    let mut config = z::ask(simulator, "GET", &path(), &Value::Null)["result"]["config"].clone();
    let rule = json!({ "hostname": format!("theirs{number}.example.com"), "service": format!("http://theirs:{}", 1000 + number) });
    config["ingress"].as_array_mut().expect("there are rules").insert(number % 2, rule);
    config["originRequest"]["connectTimeout"] = json!(number + 1);
    let answer = z::ask(simulator, "PUT", &path(), &json!({ "config": config }));
    assert_eq!(answer["success"], true, "{answer}");
}

/// All edits are there, and so is what we publish.
fn assert_all_there(world: &World, edits: usize) {
    for number in 0..edits {
        assert_eq!(world.name(&format!("theirs{number}.example.com")).rules().len(), 1, "edit {number}");
    }
    assert_eq!(z::config(world, TUNNEL)["originRequest"]["connectTimeout"], json!(edits));
    assert_eq!(z::config(world, TUNNEL)["warp-routing"], json!({ "enabled": true }));
}

fn is(call: &HookedCall, method: &Method) -> bool {
    call.method == *method && call.path.ends_with("/configurations")
}

/// Publishes, changes and withdraws names while somebody edits on one side of our requests.
async fn with_edits(side: StopSide, method: Method) -> usize {
    let world = settled([]).await;
    let edits = Arc::new(AtomicUsize::new(0));
    let due = Arc::new(AtomicBool::new(false));
    let (counted, asked) = (edits.clone(), due.clone());
    world.cloudflare.hooks.add(side, move |call, simulator| {
        if is(call, &method) && asked.swap(false, Ordering::Relaxed) {
            edit(simulator, counted.fetch_add(1, Ordering::Relaxed));
        }
    });
    for round in 0..TIMES {
        due.store(true, Ordering::Relaxed);
        let route =
            RouteManifest::to("app", "app.example.com").with("origin.url", &format!("http://origin:{}", 2000 + round));
        world.cluster.apply(route.manifest()).await;
        world.settle().await;
        assert_eq!(world.name("app.example.com").rule()["service"], format!("http://origin:{}", 2000 + round));
        assert_eq!(edits.load(Ordering::Relaxed), round + 1, "somebody edited");
        assert_all_there(&world, round + 1);
    }
    let raced = world.cluster.told("HTTPRoute/default/app").await;
    assert!(!raced.iter().any(|event| event.starts_with("TunnelConfigRaced")), "nothing was lost: {raced:?}");
    edits.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn edits_before_our_read_survive_a_hundred_times() {
    let edits = with_edits(StopSide::Before, Method::GET).await;

    tell(&format!("neighbours: {edits} edits before our read survived"));
    assert_eq!(edits, TIMES);
}

#[tokio::test(start_paused = true)]
async fn edits_after_our_write_survive_a_hundred_times() {
    let edits = with_edits(StopSide::After, Method::PUT).await;

    tell(&format!("neighbours: {edits} edits after our write survived"));
    assert_eq!(edits, TIMES);
}

#[tokio::test(start_paused = true)]
async fn an_edit_inside_the_window_is_told_with_both_versions() {
    let mut told = 0;
    for round in 0..20 {
        let world = settled([]).await;
        let once = AtomicBool::new(false);
        world.cloudflare.hooks.add(StopSide::Before, move |call, simulator| {
            if is(call, &Method::PUT) && !once.swap(true, Ordering::Relaxed) {
                for number in 0..=round % 3 {
                    edit(simulator, number);
                }
            }
        });
        let before =
            world.cloudflare.simulator.state()["configurations"][TUNNEL]["version"].as_u64().unwrap_or_default();

        super::publish(&world, RouteManifest::to("app", "app.example.com")).await;

        assert_eq!(world.name("app.example.com").rules().len(), 1);
        let events = world.cluster.told("HTTPRoute/default/app").await;
        let race = events.iter().find(|event| event.starts_with("TunnelConfigRaced")).expect("it is told");
        let numbers: Vec<u64> = race.split(|c: char| !c.is_ascii_digit()).filter_map(|one| one.parse().ok()).collect();
        let written = before + round as u64 % 3 + 2;
        assert!(numbers.contains(&before) && numbers.contains(&written), "{before} and {written} in {race}");
        told += 1;
    }
    tell(&format!("neighbours: {told} edits inside the window were told"));
}
