use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, WatchEvent, WatchParams};
use portolan_bind9::model::kinds::DNSZone;
use portolan_bind9_wire::{ResponseCode, TypeCode};
use serde_json::{Value, json};

use crate::servers::{Servers, eventually, servers, tell};

const READY: &str = "True/ReconcileSucceeded";
const PRIMARY: &str = "main-primary-0";
const SECONDARY: &str = "main-secondary-0";

fn zone(name: &str, more: Value) -> Value {
    let mut spec = json!({
        "zoneName": name, "clusterRef": "main",
        "soaRecord": {
            "primaryNs": format!("ns1.{name}."), "adminEmail": format!("admin.{name}."), "serial": 1,
            "refresh": 3600, "retry": 600, "expire": 604_800, "negativeTtl": 300,
        },
        "nameServers": [{"hostname": format!("ns1.{name}."), "ipv4Address": "192.0.2.1"}],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// A cluster of so many secondaries, whose pods run.
async fn cluster(secondaries: u32) -> Option<Servers> {
    let Some(mut servers) = servers().await else {
        tell("there is no named: no zone was served");
        return None;
    };
    let spec = json!({"primary": {"replicas": 1}, "secondary": {"replicas": secondaries}});
    servers.apply("Bind9Cluster", "dns/main", spec).await;
    let names: Vec<String> = (0..secondaries).map(|number| format!("main-secondary-{number}")).collect();
    let all: Vec<&str> = std::iter::once(PRIMARY).chain(names.iter().map(String::as_str)).collect();
    servers.run(&all).await;
    Some(servers)
}

async fn is_gone(servers: &Servers, instance: &str, zone: &str) {
    eventually(&format!("{zone} is gone from {instance}"), async || {
        let (code, _) = servers.answers(instance, zone, TypeCode::SOA).await?;
        (code == ResponseCode::REFUSED).then_some(())
    })
    .await;
}

#[tokio::test]
async fn scenario_1_a_zone_on_one_primary_is_served_whole_costs_nothing_once_it_stands_and_goes() {
    let Some(servers) = cluster(0).await else { return };
    servers.apply("DNSZone", "dns/one", zone("example.com", json!({}))).await;
    servers.until_ready("one", READY).await;

    let (code, ns) = servers.answers(PRIMARY, "example.com", TypeCode::NS).await.unwrap();
    assert_eq!((code, ns), (ResponseCode::NOERROR, vec!["example.com. 300 IN NS ns1.example.com.".to_owned()]));
    let (_, glue) = servers.answers(PRIMARY, "ns1.example.com", TypeCode::A).await.unwrap();
    assert_eq!(glue, ["ns1.example.com. 300 IN A 192.0.2.1"]);
    let id = "DNSZone/dns/one";
    assert_eq!(servers.world.cluster.message(id).await, "Configured on 1 primary server(s) and 0 secondary server(s)");
    let status = servers.status("one").await;
    let serial = servers.serial(PRIMARY, "example.com").await.map(i64::from);
    assert_eq!((status["serial"].as_i64(), status["primaries"][0]["serial"].as_i64()), (serial, serial));

    servers.world.settle_within(Duration::from_secs(60)).await;
    let before = servers.mutations(PRIMARY);
    servers.world.forget();
    for number in 0..20 {
        servers.world.cluster.annotate(id, "portolan.dev/reconcile-at", &number.to_string()).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    servers.world.settle_within(Duration::from_secs(60)).await;
    assert_eq!(servers.world.cluster_writes(), Vec::<String>::new());
    assert_eq!(servers.mutations(PRIMARY), before);

    servers.world.cluster.delete(id).await;
    eventually("the zone is deleted", async || servers.world.cluster.get(id).await.is_none().then_some(())).await;
    is_gone(&servers, PRIMARY, "example.com").await;
    assert_eq!(servers.world.take_refusals(), Vec::<String>::new());
}

#[tokio::test]
async fn scenario_4_to_7_a_secondary_follows_by_its_catalog_and_the_zone_is_degraded_while_it_is_away() {
    let Some(mut servers) = cluster(1).await else { return };
    servers.apply("DNSZone", "dns/one", zone("example.com", json!({}))).await;
    servers.until_ready("one", READY).await;

    let id = "DNSZone/dns/one";
    assert_eq!(servers.world.cluster.message(id).await, "Configured on 1 primary server(s) and 1 secondary server(s)");
    let serial = servers.serial(PRIMARY, "example.com").await;
    assert!(serial.is_some());
    assert_eq!(servers.serial(SECONDARY, "example.com").await, serial);
    let added = |log: Vec<String>| log.iter().filter(|line| line.contains("addzone")).count();
    assert_eq!(added(servers.mutations(SECONDARY)), 0, "what a secondary has it has by its catalog");

    servers.kill(SECONDARY);
    servers.world.cluster.annotate(id, "portolan.dev/reconcile-at", "1").await;
    servers.until_ready("one", "False/ReconcileDegraded").await;
    let said = servers.world.cluster.message(id).await;
    assert!(
        said.starts_with("Configured on 1 primary server(s), but secondary configuration failed: dns/main-secondary-0"),
        "{said}"
    );
    assert_eq!(servers.serial(PRIMARY, "example.com").await, serial, "the primary answers");

    servers.start(SECONDARY).await;
    servers.until_ready("one", READY).await;
    assert_eq!(servers.serial(SECONDARY, "example.com").await, serial);

    servers.world.cluster.delete(id).await;
    is_gone(&servers, PRIMARY, "example.com").await;
    is_gone(&servers, SECONDARY, "example.com").await;
}

#[tokio::test]
async fn scenario_32_and_37_a_zone_that_a_primary_lost_comes_back_complete_and_no_serial_goes_back() {
    let Some(mut servers) = cluster(1).await else { return };
    for name in ["one", "two"] {
        servers.apply("DNSZone", &format!("dns/{name}"), zone(&format!("{name}.example"), json!({}))).await;
    }
    servers.until_ready("one", READY).await;
    servers.until_ready("two", READY).await;
    let before = servers.serial(PRIMARY, "one.example").await.unwrap();

    servers.kill(PRIMARY);
    servers.world.cluster.annotate("DNSZone/dns/one", "portolan.dev/reconcile-at", "1").await;
    servers.until_ready("one", "False/PrimaryFailed").await;
    servers.start(PRIMARY).await;
    servers.until_ready("one", READY).await;
    assert_eq!(servers.serial(PRIMARY, "one.example").await, Some(before), "what is on its disk is served at once");

    servers.kill(PRIMARY);
    servers.lose_disk(PRIMARY);
    assert_eq!(servers.serial(SECONDARY, "one.example").await, Some(before), "the secondary goes on");
    servers.start(PRIMARY).await;
    servers.make_pod(PRIMARY).await;
    for name in ["one.example", "two.example"] {
        eventually("both serve what was seeded anew", async || {
            let (written, followed) = (servers.serial(PRIMARY, name).await, servers.serial(SECONDARY, name).await);
            assert!(
                followed.is_some_and(|serial| serial >= before),
                "the secondary serves {followed:?} after {before}"
            );
            (written == followed && written.is_some_and(|serial| serial > before)).then_some(())
        })
        .await;
    }
    servers.until_ready("one", READY).await;
    servers.until_ready("two", READY).await;
    let (_, glue) = servers.answers(SECONDARY, "ns1.two.example", TypeCode::A).await.unwrap();
    assert_eq!(glue, ["ns1.two.example. 300 IN A 192.0.2.1"]);
}

#[tokio::test]
async fn scenario_28_and_29_name_servers_and_soa_change_in_one_update_on_all_servers() {
    let Some(servers) = cluster(1).await else { return };
    servers.apply("DNSZone", "dns/one", zone("example.com", json!({}))).await;
    servers.until_ready("one", READY).await;
    let before = servers.serial(PRIMARY, "example.com").await.unwrap();
    let updates = |log: Vec<String>| log.iter().filter(|line| line.contains("updating zone 'example.com")).count();
    assert_eq!(updates(servers.mutations(PRIMARY)), 0);

    let more = json!({"nameServers": [
        {"hostname": "ns1.example.com.", "ipv4Address": "192.0.2.1"},
        {"hostname": "ns2.example.com.", "ipv4Address": "192.0.2.2", "ipv6Address": "2001:db8::2"},
    ]});
    let mut spec = zone("example.com", more);
    spec["soaRecord"]["refresh"] = json!(1800);
    servers.apply("DNSZone", "dns/one", spec).await;

    for server in [PRIMARY, SECONDARY] {
        eventually("the new name server and its addresses", async || {
            let (_, ns) = servers.answers(server, "example.com", TypeCode::NS).await?;
            let (_, ipv4) = servers.answers(server, "ns2.example.com", TypeCode::A).await?;
            let (_, ipv6) = servers.answers(server, "ns2.example.com", TypeCode::AAAA).await?;
            let (_, soa) = servers.answers(server, "example.com", TypeCode::SOA).await?;
            (ns.len() == 2 && ipv4.len() == 1 && ipv6.len() == 1 && soa[0].contains(" 1800 600 ")).then_some(())
        })
        .await;
    }
    assert!(servers.serial(PRIMARY, "example.com").await.unwrap() > before);

    let without =
        zone("example.com", json!({"nameServers": [{"hostname": "ns1.example.com.", "ipv4Address": "192.0.2.9"}]}));
    servers.apply("DNSZone", "dns/one", without).await;
    eventually("what is not wanted any more is gone", async || {
        let (_, ns) = servers.answers(SECONDARY, "example.com", TypeCode::NS).await?;
        let (code, _) = servers.answers(SECONDARY, "ns2.example.com", TypeCode::A).await?;
        let (_, glue) = servers.answers(SECONDARY, "ns1.example.com", TypeCode::A).await?;
        (ns.len() == 1 && code == ResponseCode::NXDOMAIN && glue == ["ns1.example.com. 300 IN A 192.0.2.9"])
            .then_some(())
    })
    .await;
    servers.until_ready("one", READY).await;
    servers.world.settle_within(Duration::from_secs(60)).await;
    assert!(servers.log(PRIMARY).contains("updating zone 'example.com"));
}

#[tokio::test]
async fn scenario_19_24_25_and_27_zones_that_nobody_may_serve_are_told_so_and_touch_no_server() {
    let Some(servers) = cluster(0).await else { return };
    servers.apply("DNSZone", "dns/first", zone("example.com", json!({}))).await;
    servers.until_ready("first", READY).await;
    servers.apply("DNSZone", "dns/second", zone("Example.COM", json!({}))).await;
    servers.until_ready("second", "False/DuplicateZone").await;
    let said = servers.world.cluster.message("DNSZone/dns/second").await;
    assert!(said.ends_with("has already been declared in these BIND9 Instances: dns/first"), "{said}");

    let lost = json!({"nameServers": [], "soaRecord": {
        "primaryNs": "ns1.lost.example.", "adminEmail": "admin.lost.example.", "serial": 1,
        "refresh": 3600, "retry": 600, "expire": 604_800, "negativeTtl": 300,
    }});
    servers.apply("DNSZone", "dns/lost", zone("lost.example", lost)).await;
    servers.until_ready("lost", "False/GlueMissing").await;
    servers.apply("DNSZone", "dns/nobody", zone("nobody.example", json!({"clusterRef": "none"}))).await;
    servers.until_ready("nobody", "False/NoInstances").await;

    let labels = json!({"metadata": {"labels": {"tier": "shared"}}});
    servers.world.cluster.patch(&format!("Bind9Instance/dns/{PRIMARY}"), &labels).await;
    let selected =
        json!({"clusterRef": null, "bind9InstancesFrom": [{"selector": {"matchLabels": {"tier": "shared"}}}]});
    let mut spec = zone("team.example", selected);
    spec.as_object_mut().unwrap().remove("clusterRef");
    servers.apply("DNSZone", "team/theirs", spec).await;
    let theirs = "DNSZone/team/theirs";
    eventually("the gate is told of", async || {
        let said = servers.world.cluster.message(theirs).await;
        said.contains("allow-zone-namespaces: team").then_some(())
    })
    .await;
    for name in ["lost.example", "nobody.example", "team.example"] {
        is_gone(&servers, PRIMARY, name).await;
    }

    let allow = ("bindy.firestoned.io/allow-zone-namespaces", "team");
    servers.world.cluster.annotate(&format!("Bind9Instance/dns/{PRIMARY}"), allow.0, allow.1).await;
    eventually("it is let in", async || (servers.world.cluster.ready(theirs).await == READY).then_some(())).await;
    assert!(servers.serial(PRIMARY, "team.example").await.is_some());

    servers.world.cluster.delete("DNSZone/dns/first").await;
    servers.until_ready("second", READY).await;
    assert!(servers.serial(PRIMARY, "example.com").await.is_some(), "the second takes over");
}

/// What a watcher sees of the conditions `Progressing` and `Ready` of zones, each reason once in its order.
fn watched(servers: &Servers) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let resource = ApiResource::erase::<DNSZone>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(servers.world.cluster.client().clone(), "dns", &resource);
    let kept = Arc::clone(&seen);
    tokio::spawn(async move {
        let stream = api.watch(&WatchParams::default(), "0").await.unwrap();
        let mut stream = std::pin::pin!(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (WatchEvent::Added(zone) | WatchEvent::Modified(zone)) = event else { continue };
            let conditions = zone.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let mut kept = kept.lock().unwrap();
            for one in conditions.iter().filter(|one| one["status"] == "True") {
                let said = format!("{}/{}", one["type"], one["reason"]).replace('"', "");
                if !kept.contains(&said) {
                    kept.push(said);
                }
            }
        }
    });
    seen
}

#[tokio::test]
async fn scenario_4_18_and_20_a_watcher_sees_each_phase_and_a_server_that_is_selected_no_longer_loses_the_zone() {
    let Some(mut servers) = servers().await else {
        tell("there is no named: no zone was served");
        return;
    };
    let spec = json!({"primary": {"replicas": 2}, "secondary": {"replicas": 1, "labels": {"tier": "b"}}});
    servers.apply("Bind9Cluster", "dns/main", spec).await;
    let all = [PRIMARY, "main-primary-1", SECONDARY];
    servers.run(&all).await;
    let seen = watched(&servers);
    servers.apply("DNSZone", "dns/one", zone("example.com", json!({}))).await;
    servers.until_ready("one", READY).await;

    let message = servers.world.cluster.message("DNSZone/dns/one").await;
    assert_eq!(message, "Configured on 2 primary server(s) and 1 secondary server(s)");
    let phases = ["PrimaryReconciling", "PrimaryReconciled", "SecondaryReconciling", "SecondaryReconciled"];
    let expected: Vec<String> =
        phases.iter().map(|one| format!("Progressing/{one}")).chain(["Ready/ReconcileSucceeded".to_owned()]).collect();
    let told = || -> Vec<String> {
        let all = seen.lock().unwrap().clone();
        all.into_iter().filter(|one| !one.starts_with("Available")).collect()
    };
    eventually("the watcher sees the end", async || told().contains(&expected[4]).then_some(())).await;
    assert_eq!(told(), expected);
    let serials = [servers.serial(all[0], "example.com").await, servers.serial(all[1], "example.com").await];
    assert!(serials[0].is_some() && serials[0] == serials[1], "{serials:?}");

    let selector = json!([{"selector": {"matchLabels": {"tier": "b"}}}, {"selector": {"matchLabels": {"bindy.firestoned.io/role": "primary"}}}]);
    let mut spec = zone("example.com", json!({"bind9InstancesFrom": selector}));
    spec.as_object_mut().unwrap().remove("clusterRef");
    servers.world.cluster.replace(&crate::world::object("DNSZone", "dns/one", spec.clone())).await;
    spec["bind9InstancesFrom"] = json!([{"selector": {"matchLabels": {"bindy.firestoned.io/role": "primary"}}}]);
    servers.world.cluster.replace(&crate::world::object("DNSZone", "dns/one", spec)).await;
    is_gone(&servers, SECONDARY, "example.com").await;
    eventually("the status has two servers", async || {
        let status = servers.status("one").await;
        (status["bind9Instances"].as_array()?.len() == 2).then_some(())
    })
    .await;
    assert_eq!(servers.serial(all[0], "example.com").await, servers.serial(all[1], "example.com").await);
}

#[tokio::test]
async fn scenario_40_a_server_that_does_not_answer_is_waited_for_unless_the_user_says_otherwise() {
    let Some(mut servers) = cluster(0).await else { return };
    servers.apply("DNSZone", "dns/one", zone("example.com", json!({}))).await;
    servers.until_ready("one", READY).await;
    servers.kill(PRIMARY);
    let id = "DNSZone/dns/one";
    servers.world.cluster.delete(id).await;
    eventually("it says whom it waits for", async || {
        servers.world.cluster.message(id).await.contains("servers do not answer").then_some(())
    })
    .await;

    servers.world.cluster.annotate(id, "bindy.firestoned.io/orphan", "true").await;
    eventually("it is gone", async || servers.world.cluster.get(id).await.is_none().then_some(())).await;
}
