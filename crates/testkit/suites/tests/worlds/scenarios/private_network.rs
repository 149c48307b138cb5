//! Scenarios 63–70: virtual networks and routes.

use std::time::Duration;

use portolan_testkit_suites::manifests::{self as m, ACCOUNT, with};
use portolan_testkit_suites::sample::tunnel_id;
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

fn network_named(world: &World, name: &str) -> Value {
    world.cloudflare.one("virtual_networks", |one| one["name"] == name)
}

#[tokio::test(start_paused = true)]
async fn scenario_63_a_tombstone_is_no_network() {
    let world = cloudflare_world().start().await;
    let old = world.cloudflare.plant("virtual_networks", &json!({ "name": "corp" }));
    world.cloudflare.remove("virtual_networks", &old);

    world.cluster.apply(&m::network("corp")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("VirtualNetwork/corp").await, "True/Synced");
    assert_ne!(network_named(&world, "corp")["id"], json!(old));
}

#[tokio::test(start_paused = true)]
async fn scenario_64_the_default_moves_without_flapping() {
    for order in [["a", "b"], ["b", "a"]] {
        let world = cloudflare_world().start().await;
        world.cluster.apply(&with(m::network("a"), "isDefaultNetwork", json!(true))).await;
        world.cluster.apply(&m::network("b")).await;
        world.settle().await;
        assert_eq!(network_named(&world, "a")["is_default_network"], json!(true));

        for name in order {
            world.cluster.apply(&with(m::network(name), "isDefaultNetwork", json!(name == "b"))).await;
        }
        world.settle().await;
        world.pass(Duration::from_secs(300)).await;
        world.settle().await;

        assert_eq!(network_named(&world, "b")["is_default_network"], json!(true), "{order:?}");
        assert_eq!(network_named(&world, "a")["is_default_network"], json!(false), "{order:?}");
        for name in order {
            let id = format!("VirtualNetwork/{name}");
            assert_eq!(
                world.cluster.ready(&id).await,
                "True/Synced",
                "{order:?}: {}",
                world.cluster.message(&id).await
            );
        }
        // What became of the former default is seen by the next look at it.
        world.drift_pass().await;
        world.settle().await;
        portolan_testkit_suites::invariants::assert_all(&world, "the default moved").await;
    }
}

#[tokio::test(start_paused = true)]
async fn heldout_f5_a_default_network_that_cannot_go_says_what_to_do_and_goes_once_it_can() {
    for by_object in [true, false] {
        let world = cloudflare_world().start().await;
        world.cluster.apply(&with(m::network("a"), "isDefaultNetwork", json!(true))).await;
        world.cluster.apply(&m::network("b")).await;
        world.settle().await;
        world.forget();

        world.cluster.delete("VirtualNetwork/a").await;
        world.settle().await;

        assert_eq!(world.cluster.ready("VirtualNetwork/a").await, "False/DefaultNetwork");
        let message = world.cluster.message("VirtualNetwork/a").await;
        assert!(message.contains("isDefaultNetwork: true") && message.contains("deletion-policy: Orphan"), "{message}");
        let events = world.cluster.events("VirtualNetwork/a").await;
        assert!(events.iter().any(|event| event.contains("DeleteFailed")), "{events:?}");
        assert_eq!(world.writes(), [""; 0], "what is known to be refused is not sent");

        if by_object {
            world.cluster.apply(&with(m::network("b"), "isDefaultNetwork", json!(true))).await;
        } else {
            let id = network_named(&world, "b")["id"].as_str().expect("it has an id").to_owned();
            let path = format!("accounts/{ACCOUNT}/teamnet/virtual_networks/{id}");
            world.misbehave("PATCH", &path, &json!({ "is_default_network": true })).await;
        }
        world.until_ready("VirtualNetwork/a", "gone").await;
    }
}

#[tokio::test(start_paused = true)]
async fn heldout_f5_a_default_network_can_be_left_at_cloudflare() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&with(m::network("a"), "isDefaultNetwork", json!(true))).await;
    world.settle().await;
    world.cluster.delete("VirtualNetwork/a").await;
    world.settle().await;

    world.cluster.annotate("VirtualNetwork/a", "cloudflare-operator.io/deletion-policy", "Orphan").await;
    world.settle().await;

    assert_eq!(world.cluster.ready("VirtualNetwork/a").await, "gone");
    assert_eq!(network_named(&world, "a")["is_default_network"], json!(true));
}

#[tokio::test(start_paused = true)]
async fn scenario_65_a_route_without_a_network_is_looked_for_in_the_default_one_alone() {
    let world = cloudflare_world().start().await;
    let other = world.cloudflare.plant("virtual_networks", &json!({ "name": "x" }));
    world.cloudflare.plant_foreign(
        "routes",
        &json!({
            "network": "10.1.0.0/16", "tunnel_id": tunnel_id(&world, m::TUNNEL), "virtual_network_id": other,
        }),
    );

    world.cluster.apply(&m::route("office", "10.1.0.0/16")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("NetworkRoute/office").await, "True/Synced");
    assert_eq!(world.cloudflare.all("routes").len(), 2);
    portolan_testkit_suites::invariants::assert_all(&world, "the same network twice").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_66_a_changed_network_never_leaves_a_gap() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::route("office", "10.1.0.0/16")).await;
    world.until_ready("NetworkRoute/office", "True/Synced").await;
    world.forget();

    world.cluster.apply(&m::route("office", "10.2.0.0/16")).await;
    world.settle().await;

    let methods: Vec<String> =
        world.writes().iter().filter_map(|write| write.split(' ').next().map(str::to_owned)).collect();
    assert_eq!(methods, ["POST", "DELETE"]);
    assert_eq!(world.cloudflare.one("routes", |_| true)["network"], json!("10.2.0.0/16"));
}

#[tokio::test(start_paused = true)]
async fn scenario_67_networks_are_checked_when_they_are_applied() {
    let world = cloudflare_world().start().await;

    world.cluster.apply(&m::route("six", "fd00::/48")).await;
    world.settle().await;
    assert_eq!(world.cluster.ready("NetworkRoute/six").await, "True/Synced");

    for wrong in ["10.0.0.1/8", "999.0.0.0/99", "10.0.0.0", "fd00::1/48"] {
        let refused = world.cluster.try_apply(&m::route("wrong", wrong)).await.expect_err(wrong);
        assert!(refused.to_string().contains("network"), "{wrong}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_68_a_network_is_found_by_object_by_id_and_by_name() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::network("corp")).await;
    world.until_ready("VirtualNetwork/corp", "True/Synced").await;
    let corp = network_named(&world, "corp")["id"].clone();

    for (n, reference) in
        [json!({ "name": "corp" }), json!({ "cloudflareId": corp }), json!({ "cloudflareName": "corp" })]
            .into_iter()
            .enumerate()
    {
        let route = with(m::route(&format!("r{n}"), &format!("10.{n}.0.0/16")), "virtualNetworkRef", reference);
        world.cluster.apply(&route).await;
    }
    world.settle().await;

    let routes = world.cloudflare.all("routes");
    assert_eq!(routes.len(), 3);
    assert!(routes.iter().all(|route| route["virtual_network_id"] == corp), "{routes:#?}");
}

#[tokio::test(start_paused = true)]
async fn scenario_70_a_network_stays_while_routes_lie_in_it() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::network("corp")).await;
    world.cluster.apply(&with(m::route("office", "10.1.0.0/16"), "virtualNetworkRef", json!({ "name": "corp" }))).await;
    world.settle().await;
    assert_eq!(world.cluster.ready("NetworkRoute/office").await, "True/Synced");

    world.cluster.delete("VirtualNetwork/corp").await;
    world.settle().await;
    let message = world.cluster.message("VirtualNetwork/corp").await;
    assert!(world.cluster.get("VirtualNetwork/corp").await.is_some() && message.contains("route"), "{message}");

    world.cluster.delete("NetworkRoute/office").await;
    world.until_ready("VirtualNetwork/corp", "gone").await;
    assert_eq!(world.cluster.ready("NetworkRoute/office").await, "gone");
    assert!(world.cloudflare.simulator.objects("routes", ACCOUNT).iter().all(|one| !one["deleted_at"].is_null()));
}
