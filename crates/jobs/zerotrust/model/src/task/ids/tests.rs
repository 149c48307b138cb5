use portolan_core::OwnerId;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixture::footprint as full;
use crate::task::CloudflareTaskSpec;

#[test]
fn nothing_that_is_recorded_is_lost_in_a_task() {
    let through = |json: serde_json::Value| json;

    let existing: ExistingIds = serde_json::from_value(through(json!(ExistingIds::from(&full())))).unwrap();
    let delete: DeleteIds = serde_json::from_value(through(json!(DeleteIds::from(&full())))).unwrap();
    let result: TaskResult = serde_json::from_value(through(json!(TaskResult::from(&full())))).unwrap();

    assert_eq!(existing.footprint(), full());
    assert_eq!(delete.footprint(), full());
    assert_eq!(result.footprint(), full());
}

#[test]
fn the_names_in_tasks_are_those_that_were_specified() {
    let existing = json!(ExistingIds::from(&full()));
    let result = json!(TaskResult::from(&full()));

    assert_eq!((&existing["hostnameRouteId"], &existing["accessPolicyIds"]), (&json!("t1"), &json!("p1,p2")));
    assert_eq!((&existing["accessAppId"], &existing["cnameRecordId"]), (&json!("app1"), &json!("r1")));
    assert_eq!((&result["hostnameRouteId"], &result["accessPolicyIds"]), (&json!("t1"), &json!(["p1", "p2"])));
    assert_eq!((&result["resolvedZoneId"], &result["dnsRecordIp"]), (&json!("z1"), &json!("10.0.0.7")));
    assert_eq!(result["adopted"], json!(["record", "app"]));
}

#[test]
fn a_name_without_a_rule_shows_no_rule() {
    let footprint = Footprint { has_rule: false, ..full() };

    assert_eq!(json!(TaskResult::from(&footprint)).get("hostnameRouteId"), None);
    assert_eq!(TaskResult::from(&footprint).footprint(), footprint);
}

fn spec(fields: serde_json::Value) -> CloudflareTaskSpec {
    serde_json::from_value(fields).unwrap()
}

#[test]
fn tasks_of_older_operators_say_where_things_are_beside_the_ids() {
    let task = spec(json!({
        "hostname": "app.example.com", "accountId": "a1", "tunnelId": "t1", "zoneId": "z1",
        "existingIds": { "hostnameRouteId": "", "cnameRecordId": "r1", "accessAppId": "", "accessPolicyIds": "" },
    }));

    let found = task.existing();

    assert_eq!((found.tunnel_id.as_deref(), found.zone_id.as_deref()), (Some("t1"), Some("z1")));
    assert_eq!((found.cname_record_id.as_deref(), found.access_app_id), (Some("r1"), None));
    assert_eq!((found.hostname.as_deref(), found.has_rule), (Some("app.example.com"), false));
}

#[test]
fn a_deletion_of_a_name_in_a_tunnel_means_its_rule() {
    let task = spec(json!({
        "action": "delete", "accountId": "a1",
        "deleteIds": { "hostname": "app.example.com", "tunnelId": "t1", "zoneId": "z1", "dnsRecordId": "", "cnameRecordId": "r1" },
    }));
    let dns_only = spec(json!({ "deleteIds": { "hostname": "a.example.com", "zoneId": "z1", "dnsRecordId": "r1" } }));

    assert!(task.to_delete().has_rule);
    assert_eq!(task.to_delete().account_id.as_deref(), Some("a1"));
    assert!(!dns_only.to_delete().has_rule);
    assert_eq!(dns_only.to_delete().dns_record_id.as_deref(), Some("r1"));
}

#[test]
fn a_task_without_ids_knows_of_nothing() {
    assert_eq!(spec(json!({ "hostname": "a.example.com", "tunnelId": "t1" })).existing(), Footprint::default());
    assert_eq!(spec(json!({ "existingIds": {} , "tunnelId": "t1" })).existing(), Footprint::default());
    assert_eq!(spec(json!({})).to_delete(), Footprint::default());
}

#[test]
fn bug_3_flat_fields_of_older_tasks_are_read_and_the_nested_ones_win() {
    let operations = |tunnel: serde_json::Value| {
        spec(json!({
            "httprouteRef": { "name": "app", "namespace": "default" }, "hostname": "app.example.com",
            "accountId": "a1", "tunnelId": "t1", "operations": { "tunnelRoute": tunnel },
        }))
    };
    let owner = OwnerId::derive("x");
    let flat = operations(json!({ "originService": "https://a", "noTLSVerify": true, "tlsTimeout": 20 }));
    let both =
        operations(json!({ "originService": "https://a", "noTLSVerify": true, "originTLS": { "noTLSVerify": false } }));
    let request = |task: CloudflareTaskSpec| task.desired(&owner).unwrap().rule.unwrap().origin_request;

    assert_eq!((&request(flat.clone())["noTLSVerify"], &request(flat)["tlsTimeout"]), (&json!(true), &json!(20)));
    assert_eq!(request(both)["noTLSVerify"], json!(false));
}

#[test]
fn bug_3_the_address_of_an_older_task_is_read() {
    let task = |record: serde_json::Value| {
        spec(json!({
            "httprouteRef": { "name": "app", "namespace": "default" }, "hostname": "app.example.com",
            "accountId": "a1", "zoneId": "z1", "operations": { "dnsRecord": record },
        }))
    };
    let owner = OwnerId::derive("x");
    let ip = |task: CloudflareTaskSpec| match task.desired(&owner).unwrap().record {
        Some(portolan_publication::Record::Address { ip, .. }) => ip.to_string(),
        other => format!("{other:?}"),
    };

    assert_eq!(ip(task(json!({ "enabled": true, "ip": "10.0.0.1" }))), "10.0.0.1");
    assert_eq!(ip(task(json!({ "enabled": true, "ip": "10.0.0.1", "ipAddress": "10.0.0.2" }))), "10.0.0.2");
}

#[test]
fn a_task_that_lacks_something_says_what() {
    let owner = OwnerId::derive("x");
    let message = |task: serde_json::Value| spec(task).desired(&owner).unwrap_err().message;

    assert!(message(json!({})).contains("httprouteRef"));
    assert!(message(json!({ "httprouteRef": { "name": "a", "namespace": "b" } })).contains("hostname"));
}

proptest! {
    #[test]
    fn any_footprint_survives(ids in proptest::collection::vec(proptest::option::of("[a-z0-9]{1,12}"), 6), has_rule: bool, policies in proptest::collection::vec("[a-z0-9]{1,8}", 0..4)) {
        let footprint = Footprint {
            account_id: ids[0].clone(), hostname: ids[1].clone(), zone_id: ids[2].clone(),
            tunnel_id: if has_rule { Some("t".to_owned()) } else { ids[3].clone() },
            has_rule, cname_record_id: ids[4].clone(), service_token_id: ids[5].clone(), access_policy_ids: policies,
            ..Footprint::default()
        };

        prop_assert_eq!(&TaskResult::from(&footprint).footprint(), &footprint);
        prop_assert_eq!(&ExistingIds::from(&footprint).footprint(), &footprint);
        prop_assert_eq!(&DeleteIds::from(&footprint).footprint(), &footprint);
    }
}
