//! What an object made goes with it, by what its status recorded, whatever has become of its spec, zone or credential.

use portolan_cloudflare_sim::Grant;
use portolan_testkit_suites::manifests::{self as m, ACCOUNT, CANARY, NAMESPACE, OPERATOR_NAMESPACE, ZONE_ID, with};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

const WWW: &str = "DNSRecord/apps/www";
const OTHER_TOKEN: &str = "canary-other-token";

fn in_cloudflare(mut object: Value, details: Value) -> Value {
    object["spec"]["cloudflare"] = details;
    object
}

/// A world with a published record, made with the credentials `extra`.
async fn published(world: &World) {
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "extra", CANARY)).await;
    world.cluster.apply(&m::credentials("extra", "extra")).await;
    let details = json!({ "credentialsRef": { "name": "extra" } });
    world.cluster.apply(&in_cloudflare(m::record("www", "192.0.2.1"), details)).await;
    world.until_ready(WWW, "True/Synced").await;
}

async fn assert_removed(world: &World, case: &str) {
    world.settle().await;
    let message = world.cluster.message(WWW).await;
    assert_eq!(world.cluster.ready(WWW).await, "gone", "{case}: {message}");
    assert_eq!(world.cloudflare.all("dns_records"), [Value::Null; 0], "{case}");
}

/// A second account with a zone, and credentials that see nothing else.
async fn another_account(world: &World) -> String {
    let other = "b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";
    world.cloudflare.simulator.add_account_with_id(other, "Other");
    let zone = world.cloudflare.simulator.add_zone("other.net", other, "free").expect("the zone is new");
    world.cloudflare.simulator.add_zone("third.net", other, "free").expect("the zone is new");
    world.cloudflare.simulator.add_token(OTHER_TOKEN, Grant::all().account(other));
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "other", OTHER_TOKEN)).await;
    world.cluster.apply(&with(m::credentials("other", "other"), "accountId", json!(other))).await;
    world.settle().await;
    zone
}

#[tokio::test(start_paused = true)]
async fn heldout_f3_a_published_record_goes_whatever_its_name_has_become() {
    for name in ["good", "@", "-bad-.example.com", "www.other.net", "a..b"] {
        let world = cloudflare_world().start().await;
        world.cluster.apply(&m::record("www", "192.0.2.1")).await;
        world.until_ready(WWW, "True/Synced").await;

        world.cluster.patch(WWW, &json!({ "spec": { "name": name } })).await;
        world.settle().await;
        assert_eq!(world.cloudflare.all("dns_records").len(), 1, "{name}: what stands is kept");
        assert!(world.cluster.ready(WWW).await.starts_with("False/"), "{name}");
        world.cluster.delete(WWW).await;

        assert_removed(&world, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn finding_26_a_record_is_deleted_with_the_credential_and_in_the_zone_that_made_it() {
    let elsewhere = [
        ("other credentials", json!({ "credentialsRef": { "name": "other" } })),
        (
            "another zone",
            json!({ "credentialsRef": { "name": "other" }, "zoneId": "ffffffffffffffffffffffffffffffff" }),
        ),
        ("no such credentials", json!({ "credentialsRef": { "name": "none" }, "zoneId": ZONE_ID })),
        ("no such Secret", json!({ "secret": "none" })),
        ("an id that is none", json!({ "zoneId": "no id/at all" })),
    ];
    for (case, details) in elsewhere {
        let world = cloudflare_world().start().await;
        another_account(&world).await;
        published(&world).await;

        world.cluster.apply(&in_cloudflare(m::record("www", "192.0.2.1"), details)).await;
        world.settle().await;
        assert_eq!(world.cloudflare.all("dns_records").len(), 1, "{case}");
        world.cluster.delete(WWW).await;

        assert_removed(&world, case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn finding_26_a_record_that_moved_to_another_credential_leaves_the_old_zone_with_the_old_one() {
    let world = cloudflare_world().start().await;
    let zone = another_account(&world).await;
    published(&world).await;

    let mut moved = m::record("www", "192.0.2.1");
    moved["spec"]["name"] = json!("www.other.net");
    world.cluster.apply(&in_cloudflare(moved, json!({ "credentialsRef": { "name": "other" }, "zoneId": zone }))).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced", "{}", world.cluster.message(WWW).await);
    assert_eq!(world.cloudflare.simulator.objects("dns_records", ZONE_ID), [Value::Null; 0]);
    assert_eq!(world.cloudflare.simulator.objects("dns_records", &zone).len(), 1);
    let used = world.cluster.get(WWW).await.expect("it exists")["status"]["usedCredentials"]["name"].clone();
    assert_eq!(used, "other");
}

#[tokio::test(start_paused = true)]
async fn finding_26_another_credential_takes_the_place_of_one_that_is_gone_for_what_carries_our_mark_only() {
    for marked in [true, false] {
        let world = cloudflare_world().start().await;
        published(&world).await;
        let record = world.cloudflare.all("dns_records").remove(0);
        let id = record["id"].as_str().expect("it has an id").to_owned();
        world.stop().await;
        if !marked {
            world.cloudflare.edit("dns_records", &id, |one| one["comment"] = json!("somebody's"));
        }
        // The credentials went with whoever made them go by force.
        world.cluster.patch("CloudflareCredentials/extra", &json!({ "metadata": { "finalizers": null } })).await;
        world.cluster.delete("CloudflareCredentials/extra").await;
        world.cluster.delete(&format!("Secret/{OPERATOR_NAMESPACE}/extra")).await;
        world.cluster.patch(WWW, &json!({ "spec": { "cloudflare": { "credentialsRef": { "name": "main" } } } })).await;
        world.cluster.delete(WWW).await;

        world.restart().await;
        world.settle().await;

        if marked {
            assert_removed(&world, "a mark of ours").await;
        } else {
            let message = world.cluster.message(WWW).await;
            assert!(message.contains("carries no mark") && message.contains("force-delete"), "{message}");
            assert_eq!(world.cloudflare.all("dns_records").len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s12_a_zone_that_is_gone_holds_nothing_by_either_answer_of_the_api() {
    for hides in [false, true] {
        for restarted in [false, true] {
            let world = cloudflare_world().hides_vanished_zones(hides).start().await;
            let zone = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
            let spec = json!({ "name": "www", "type": "A", "content": "192.0.2.1", "cloudflare": { "zoneId": zone } });
            world.cluster.apply(&m::object("DNSRecord", "www", spec)).await;
            world.until_ready(WWW, "True/Synced").await;

            world.cloudflare.remove("zones", &zone);
            if restarted {
                world.restart().await;
                world.settle().await;
            }
            world.cluster.delete(WWW).await;
            world.settle().await;

            let case = format!("hides {hides}, restarted {restarted}");
            assert_eq!(world.cluster.ready(WWW).await, "gone", "{case}: {}", world.cluster.message(WWW).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s12_a_token_that_lost_its_right_to_a_zone_proves_nothing() {
    type Case = (&'static str, fn(&str) -> Grant);
    let cases: [Case; 2] = [
        ("it sees no zone any more", |_| Grant::all().account("c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2")),
        ("another credential sees the zone", |neighbour| Grant::all().zone(neighbour)),
    ];
    for (case, grant) in cases {
        let world = cloudflare_world().start().await;
        let neighbour = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
        world.cloudflare.simulator.add_token(OTHER_TOKEN, Grant::all());
        world.cluster.apply(&m::token_secret(NAMESPACE, "own", OTHER_TOKEN)).await;
        let details = json!({ "secret": "own", "zoneId": ZONE_ID });
        world.cluster.apply(&in_cloudflare(m::record("www", "192.0.2.1"), details)).await;
        world.until_ready(WWW, "True/Synced").await;

        world.cloudflare.simulator.revoke_token(OTHER_TOKEN);
        world.cloudflare.simulator.add_token(OTHER_TOKEN, grant(&neighbour));
        world.cluster.delete(WWW).await;
        world.settle().await;

        assert_eq!(world.cloudflare.all("dns_records").len(), 1, "{case}: the record stands");
        assert_eq!(world.cluster.ready(WWW).await, "False/CredentialsDenied", "{case}");
        let message = world.cluster.message(WWW).await;
        assert!(message.contains("force-delete"), "{case}: {message}");

        world.cloudflare.simulator.revoke_token(OTHER_TOKEN);
        world.cloudflare.simulator.add_token(OTHER_TOKEN, Grant::all());
        world.restart().await;
        assert_removed(&world, case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn finding_5_deleting_everything_at_once_ends_and_leaves_nothing_whatever_goes_first() {
    let all = [
        "Secret/shop/own",
        "CloudflareCredentials/extra",
        "Secret/cloudflare-operator-system/extra",
        "CloudflareDomain/example-com",
    ];
    for first in 0..all.len() {
        let world = cloudflare_world().start().await;
        world.cluster.apply(&m::namespace("shop")).await;
        world.cluster.apply(&m::token_secret("shop", "own", CANARY)).await;
        world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "extra", CANARY)).await;
        world.cluster.apply(&m::credentials("extra", "extra")).await;
        for (name, details) in
            [("inline", json!({ "secret": "own" })), ("named", json!({ "credentialsRef": { "name": "extra" } }))]
        {
            let mut record = in_cloudflare(m::record(name, "192.0.2.1"), details);
            record["metadata"]["namespace"] = json!("shop");
            world.cluster.apply(&record).await;
        }
        world.settle().await;
        assert_eq!(world.cloudflare.marked("dns_records").len(), 2);

        // Nothing lets the operator look between one deletion and the next.
        world.cluster.delete(all[first]).await;
        world.cluster.delete("Namespace/shop").await;
        for id in all.iter().enumerate().filter(|(at, _)| *at != first).map(|(_, id)| *id) {
            if world.cluster.get(id).await.is_some() {
                world.cluster.delete(id).await;
            }
        }
        world.pass(std::time::Duration::from_secs(120)).await;
        world.settle().await;

        assert_eq!(world.cloudflare.all("dns_records"), [Value::Null; 0], "{} first", all[first]);
        for id in all.iter().chain(&["DNSRecord/shop/inline", "DNSRecord/shop/named", "Namespace/shop"]) {
            assert!(world.cluster.get(id).await.is_none(), "{id} is gone, {} first", all[first]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn finding_5_a_secret_is_kept_while_something_was_made_with_it_and_no_longer() {
    let world = cloudflare_world().start().await;
    published(&world).await;
    world.settle().await;
    let held = async |world: &World| {
        let secret = world.cluster.get(&format!("Secret/{OPERATOR_NAMESPACE}/extra")).await.expect("it exists");
        secret["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
    };
    assert!(held(&world).await);

    world.cluster.delete(WWW).await;
    world.settle().await;
    world.pass(std::time::Duration::from_secs(120)).await;
    world.settle().await;

    assert!(!held(&world).await);
}
