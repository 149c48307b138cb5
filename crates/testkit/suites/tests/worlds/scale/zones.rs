//! How many calls it takes to find the zones of names where there are many.

use std::time::Duration;

use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, RouteManifest};
use portolan_testkit_suites::{World, tell};

/// Ten thousand zones besides the world's own.
async fn world() -> World {
    let world = z::world().asleep().start().await;
    for number in 0..10_000 {
        let name = format!("zone{number}.example");
        world.cloudflare.simulator.add_zone(&name, ACCOUNT, "free").expect("the zone is new");
    }
    world
}

fn for_zones(world: &World) -> Vec<String> {
    let requests = world.cloudflare.take_requests();
    requests.into_iter().filter(|request| request == "GET zones").collect()
}

#[tokio::test(start_paused = true)]
async fn finding_20_a_name_in_none_of_ten_thousand_zones_takes_at_most_two_calls_a_minute() {
    let world = world().await;
    world.cluster.apply(&RouteManifest::to("app", "app.nowhere.org").into()).await;

    world.restart().await;
    world.pass(Duration::from_secs(600)).await;

    let calls = for_zones(&world);
    tell(&format!("scale: a name in none of 10,000 zones: {} calls for zones in ten minutes", calls.len()));
    assert!((2..=20).contains(&calls.len()), "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn finding_20_names_in_one_of_ten_thousand_zones_share_the_call_that_finds_it() {
    let world = world().await;
    let routes: Vec<_> =
        (0..50).map(|n| RouteManifest::to(&format!("r{n}"), &format!("r{n}.zone77.example")).into()).collect();
    world.cluster.create_all(&routes).await;

    world.restart().await;
    world.settle().await;

    let calls = for_zones(&world);
    assert!((1..=3).contains(&calls.len()), "{calls:#?}");
    assert_eq!(world.cloudflare.all("dns_records").len(), 50);
}
