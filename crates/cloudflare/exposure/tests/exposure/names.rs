//! Names come, change and go against the simulator: which requests are sent, in which order, and what is left alone.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![allow(clippy::panic, reason = "a run that ends otherwise is a failed test")]

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::{ACCOUNT, Ended, Hit, World, ZONE, all, emails, is_published, mark, redirects, token};
use http::Method;
use portolan_cloudflare_api::{Lane, Request};
use portolan_cloudflare_sim::{EMAIL_HEADER, EdgeRequest, Effect, Fault, Simulator};
use portolan_core::{Class, Severity};
use portolan_exposure::{Desired, Footprint, Fresh, Part, Record, Rotate, Token, gather, plan};
use serde_json::{Value, json};

fn address(hostname: &str, desired: Desired, ip: [u8; 4]) -> Desired {
    let record = Record::Address {
        zone_id: crate::support::zone_of(hostname).to_owned(),
        ip: Ipv4Addr::from(ip),
        ttl: 120,
        proxied: false,
    };
    Desired { rule: None, access: None, token: None, record: Some(record), ..desired }
}

fn protected(world: &World, hostname: &str, addresses: &[&str]) -> Desired {
    Desired { access: Some(emails(addresses)), ..world.plain(hostname) }
}

fn of_another(mut desired: Desired) -> Desired {
    "another".clone_into(&mut desired.mark.key.name);
    desired
}

#[tokio::test(start_paused = true)]
async fn a_plain_name_costs_three_calls_when_the_world_is_known() {
    let mut world = World::new().await;
    world.run(Some(&of_another(world.plain("b.x.com"))), None).await.applied();
    world.take_lines();
    world.diary_reset();

    let applied = world.run(Some(&world.plain("a.x.com")), None).await.applied();

    assert_eq!(
        world.take_lines(),
        ["GET /cfd_tunnel/*/configurations", "PUT /cfd_tunnel/*/configurations", "POST /dns_records"]
    );
    let footprint = applied.footprint;
    assert!(footprint.has_rule && footprint.cname_record_id.is_some() && footprint.adopted.is_empty());
    assert_eq!(applied.changes.changes.len(), 2);
    let record = world.sim.object("dns_records", &footprint.cname_record_id.unwrap()).unwrap();
    assert_eq!((&record["proxied"], &record["ttl"], &record["type"]), (&json!(true), &json!(1), &json!("CNAME")));
    assert!(record["comment"].as_str().unwrap().starts_with("[managed:HTTPRoute/shop/web#"));
    world.assert_theirs_untouched();
}

#[tokio::test(start_paused = true)]
async fn a_protected_name_is_protected_first_with_one_call_more() {
    let mut world = World::new().await;
    world.run(Some(&of_another(protected(&world, "b.x.com", &["a@x.com"]))), None).await.applied();
    world.take_lines();
    world.diary_reset();
    world.guard(["a.x.com".to_owned()]);

    let applied = world.run(Some(&protected(&world, "a.x.com", &["a@x.com", "b@x.com"])), None).await.applied();

    assert_eq!(
        world.take_lines(),
        [
            "POST /access/apps",
            "GET /cfd_tunnel/*/configurations",
            "PUT /cfd_tunnel/*/configurations",
            "POST /dns_records"
        ]
    );
    assert_eq!(applied.footprint.access_policy_ids.len(), 1);
    let app = world.sim.object("access_apps", applied.footprint.access_app_id.as_ref().unwrap()).unwrap();
    assert_eq!(
        (&app["name"], &app["domain"], &app["session_duration"]),
        (&json!("web"), &json!("a.x.com"), &json!("24h"))
    );
    assert_eq!(
        app["policies"][0]["include"],
        json!([{"email": {"email": "a@x.com"}}, {"email": {"email": "b@x.com"}}])
    );
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[tokio::test(start_paused = true)]
async fn an_address_more_is_one_write_and_keeps_both_ids() {
    let mut world = World::new().await;
    let before = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied().footprint;
    world.take_lines();

    let desired = protected(&world, "a.x.com", &["a@x.com", "b@x.com"]);
    let after = world.run(Some(&desired), None).await.applied().footprint;

    assert_eq!(world.take_writes(), ["PUT /access/apps/*/policies/*"]);
    assert_eq!(after, before);
    assert_eq!(world.ours("access_apps")[0]["policies"][0]["include"].as_array().unwrap().len(), 2);
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_settled_name_costs_nothing() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), redirect: true, ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.run(Some(&desired), None).await.applied();
    world.take_lines();

    world.run(Some(&Desired { redirect: false, ..desired.clone() }), None).await.applied();
    world.take_lines();
    let again = world.run(Some(&Desired { redirect: false, ..desired }), None).await.applied();

    assert_eq!(world.take_lines(), Vec::<String>::new());
    assert!(again.changes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_token_comes_before_the_application_that_lets_it_pass_and_goes_after_it() {
    let mut world = World::new().await;
    let mut access = emails(&[]);
    access.groups = vec!["Engineering".to_owned()];
    let desired = Desired { access: Some(access), token: Some(token()), ..world.plain("a.x.com") };
    world.guard(["a.x.com".to_owned()]);

    let applied = world.run(Some(&desired), None).await.applied();

    assert!(applied.token_created);
    let writes = world.take_writes();
    assert_eq!(writes[..2], ["POST /access/service_tokens", "POST /access/apps"]);
    let id = applied.footprint.service_token_id.clone().unwrap();
    let app = world.ours("access_apps").remove(0);
    let group = world.all("access_groups")[0]["id"].clone();
    assert_eq!(app["policies"][0]["include"], json!([{"group": {"id": group}}]));
    assert_eq!(
        (&app["policies"][1]["decision"], &app["policies"][1]["name"]),
        (&json!("non_identity"), &json!("web-service-auth"))
    );
    assert_eq!(app["policies"][1]["include"], json!([{"service_token": {"token_id": id}}]));
    assert!(world.persisted().credentials.contains_key(&id));
    assert_eq!(world.persisted().operations[0], "createServiceToken");

    world.run(Some(&Desired { token: None, ..desired }), None).await.applied();

    assert_eq!(world.take_writes(), ["PUT /access/apps/*", "DELETE /access/service_tokens/*"]);
    assert!(world.ours("service_tokens").is_empty());
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[tokio::test(start_paused = true)]
async fn withdrawing_goes_from_what_publishes_to_what_protects_and_leaves_the_world_as_it_was() {
    let mut world = World::new().await;
    let mut access = emails(&["a@x.com"]);
    access.policy_names = vec!["Contractors".to_owned()];
    let desired = Desired { access: Some(access), token: Some(token()), redirect: true, ..world.plain("a.x.com") };
    world.run(Some(&desired), None).await.applied();
    world.take_lines();
    world.guard(["a.x.com".to_owned()]);

    let applied = world.run(None, None).await.applied();

    assert!(applied.footprint.is_empty());
    assert_eq!(
        world.take_writes(),
        [
            "DELETE /dns_records/*",
            "PUT /cfd_tunnel/*/configurations",
            "DELETE /rulesets/*/rules/*",
            "DELETE /access/apps/*",
            "DELETE /access/policies/*",
            "DELETE /access/policies/*",
            "DELETE /access/service_tokens/*"
        ]
    );
    for collection in ["dns_records", "access_apps", "access_policies", "service_tokens"] {
        assert_eq!(world.state()[collection], world.seeded[collection], "{collection}");
    }
    assert_eq!(world.redirects(), redirects(&world.seeded));
    world.assert_theirs_untouched();
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[tokio::test(start_paused = true)]
async fn a_protected_name_that_moves_leaves_its_old_place_before_it_takes_the_new_one() {
    let mut world = World::new().await;
    let before = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied().footprint;
    world.take_lines();
    world.guard(["a.x.com".to_owned(), "c.y.org".to_owned()]);

    let after = world.run(Some(&protected(&world, "c.y.org", &["a@x.com"])), None).await.applied().footprint;

    assert_eq!(
        world.take_writes(),
        [
            "DELETE /dns_records/*",
            "PUT /cfd_tunnel/*/configurations",
            "PUT /access/apps/*",
            "PUT /cfd_tunnel/*/configurations",
            "POST /dns_records"
        ]
    );
    assert_eq!((&after.access_app_id, &after.access_policy_ids), (&before.access_app_id, &before.access_policy_ids));
    assert_eq!((after.hostname.as_deref(), after.former.len()), (Some("c.y.org"), 0));
    assert!(!is_published(&world.state(), "a.x.com") && is_published(&world.state(), "c.y.org"));
    assert!(world.violations().is_empty(), "{:?}", world.violations());
    world.assert_theirs_untouched();
}

#[tokio::test(start_paused = true)]
async fn an_open_name_that_moves_is_there_before_the_old_one_goes() {
    let mut world = World::new().await;
    world.run(Some(&world.plain("a.x.com")), None).await.applied();
    world.take_lines();

    world.run(Some(&world.plain("b.x.com")), None).await.applied();

    assert_eq!(
        world.take_writes(),
        [
            "PUT /cfd_tunnel/*/configurations",
            "POST /dns_records",
            "DELETE /dns_records/*",
            "PUT /cfd_tunnel/*/configurations"
        ]
    );
    assert!(!is_published(&world.state(), "a.x.com") && is_published(&world.state(), "b.x.com"));
}

#[tokio::test(start_paused = true)]
async fn another_tunnel_gets_the_rule_then_the_record_follows_then_the_old_rule_goes() {
    let mut world = World::new().await;
    let before = world.run(Some(&world.plain("a.x.com")), None).await.applied().footprint;
    world.take_lines();

    let after = world.run(Some(&world.through("a.x.com", 1)), None).await.applied().footprint;

    assert_eq!(
        world.take_writes(),
        ["PUT /cfd_tunnel/*/configurations", "PATCH /dns_records/*", "PUT /cfd_tunnel/*/configurations"]
    );
    assert_eq!(after.cname_record_id, before.cname_record_id);
    assert_eq!((world.hosts(0).contains(&"a.x.com".to_owned()), world.hosts(1)), (false, vec!["a.x.com".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn from_tunnel_to_address_and_back_there_is_always_one_record() {
    let mut world = World::new().await;
    let plain = world.plain("a.x.com");
    world.run(Some(&plain), None).await.applied();
    world.take_lines();

    let there = world.run(Some(&address("a.x.com", plain.clone(), [10, 0, 0, 1])), None).await.applied().footprint;

    assert_eq!(world.take_writes(), ["POST /dns_records/batch", "PUT /cfd_tunnel/*/configurations"]);
    assert_eq!((there.dns_record_ip.as_deref(), there.cname_record_id), (Some("10.0.0.1"), None));
    let back = world.run(Some(&plain), None).await.applied().footprint;
    assert_eq!(world.take_writes(), ["PUT /cfd_tunnel/*/configurations", "POST /dns_records/batch"]);
    assert_eq!((back.dns_record_id, back.dns_record_ip, world.ours("dns_records").len()), (None, None, 1));
}

#[tokio::test(start_paused = true)]
async fn protection_that_is_switched_off_goes_last() {
    let mut world = World::new().await;
    world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied();
    world.take_lines();

    let mut open = world.plain("a.x.com");
    open.rule = Some(world.rule(0, "http://new.shop.svc:80"));
    world.run(Some(&open), None).await.applied();

    assert_eq!(world.take_writes(), ["PUT /cfd_tunnel/*/configurations", "DELETE /access/apps/*"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_open_is_closed_before_its_token_is_made() {
    let mut world = World::new().await;
    world.run(Some(&world.plain("a.x.com")), None).await.applied();
    world.take_lines();
    world.guard(["a.x.com".to_owned()]);

    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.run(Some(&desired), None).await.applied();

    let closed = ["POST /access/apps", "POST /access/service_tokens", "PUT /access/apps/*"];
    assert_eq!(
        world.take_writes(),
        [&closed[..], &["PUT /cfd_tunnel/*/configurations", "PUT /access/service_tokens/*"]].concat()
    );
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[tokio::test(start_paused = true)]
async fn what_stands_at_the_name_and_is_not_ours_is_refused() {
    let mut world = World::new().await;
    world.put("dns_records", ZONE, json!({"type": "A", "name": "b.x.com", "content": "10.9.9.9", "ttl": 300}));
    world.put("access_apps", ACCOUNT, json!({"name": "theirs", "domain": "d.x.com", "type": "self_hosted"}));
    world.seeded = world.state();

    let record = world.run(Some(&world.plain("b.x.com")), None).await.problem();
    let app = world.run(Some(&protected(&world, "d.x.com", &["a@x.com"])), None).await.problem();
    let rule = world.run(Some(&world.plain("other.x.com")), None).await.problem();

    assert_eq!((record.reason, record.class), ("DNSRecordConflict", Class::Denied));
    assert_eq!(app.reason, "AccessAppConflict");
    assert!(matches!(rule.reason, "DNSRecordConflict" | "TunnelRuleConflict"));
    assert_eq!(world.take_writes(), Vec::<String>::new());
    world.assert_theirs_untouched();
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_somebody_else_is_refused_and_nothing_is_published() {
    let mut world = World::new().await;
    let mut config = world.config(0);
    config["ingress"].as_array_mut().unwrap().insert(0, json!({"hostname": "b.x.com", "service": "http://theirs"}));
    world.write_config(0, config).await;
    world.take_lines();

    let problem = world.run(Some(&world.plain("b.x.com")), None).await.problem();
    let again = world.run(Some(&world.plain("b.x.com")), None).await.problem();

    assert_eq!((problem.reason, again.reason), ("TunnelRuleConflict", "TunnelRuleConflict"));
    assert_eq!(world.take_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_was_adopted_is_used_and_stays_when_the_name_goes() {
    let mut world = World::new().await;
    let record = world.put(
        "dns_records",
        ZONE,
        json!({"type": "A", "name": "b.x.com", "content": "10.9.9.9", "ttl": 300, "comment": "by hand"}),
    );
    let app = world.put(
        "access_apps",
        ACCOUNT,
        json!({"name": "theirs", "domain": "b.x.com", "type": "self_hosted", "allowed_idps": []}),
    );
    world.adopt = true;
    let desired = Desired { token: Some(token()), ..protected(&world, "b.x.com", &["a@x.com"]) };

    let footprint = world.run(Some(&desired), None).await.applied().footprint;

    assert_eq!((footprint.cname_record_id.as_ref(), footprint.access_app_id.as_ref()), (Some(&record), Some(&app)));
    assert_eq!(footprint.adopted, [Part::Record, Part::App].into());
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
    let applied = world.run(None, None).await.applied();
    assert!(applied.footprint.is_empty());
    let left = world.sim.object("dns_records", &record).unwrap();
    assert_eq!((&left["type"], &left["comment"]), (&json!("CNAME"), &json!("by hand")));
    let requests: Vec<_> = world.sim.requests().iter().map(portolan_cloudflare_sim::RecordedRequest::to_json).collect();
    let release = requests.iter().rfind(|request| request["method"] == "PATCH").unwrap();
    assert_eq!((&release["body"]["type"], &release["body"]["name"]), (&json!("CNAME"), &json!("b.x.com")));
    assert!(world.sim.object("access_apps", &app).is_some());
    assert!(world.ours("service_tokens").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_application_of_another_cluster_stays_with_its_name_when_ours_moves_on() {
    let mut world = World::new().await;
    let theirs = json!({"name": "theirs", "domain": "b.x.com", "type": "self_hosted", "allowed_idps": []});
    let app = world.put("access_apps", ACCOUNT, theirs);
    world.adopt = true;
    let footprint = world.run(Some(&protected(&world, "b.x.com", &["a@x.com"])), None).await.applied().footprint;
    assert_eq!((footprint.access_app_id.as_ref(), footprint.is_adopted(Part::App)), (Some(&app), true));

    let moved = world.run(Some(&protected(&world, "c.x.com", &["a@x.com"])), None).await.applied().footprint;

    let domain = |id: &str| world.sim.object("access_apps", id).unwrap()["domain"].clone();
    assert_eq!(domain(&app), "b.x.com", "whoever made it protects that name with it");
    let own = moved.access_app_id.clone().unwrap();
    assert_eq!((domain(&own), moved.is_adopted(Part::App)), (json!("c.x.com"), false));
}

#[tokio::test(start_paused = true)]
async fn an_application_that_another_process_moved_is_not_given_up_for_an_old_list() {
    let mut world = World::new().await;
    world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied();
    let with_an_old_list = world.client.clone();
    world.restart();
    world.run(Some(&protected(&world, "b.x.com", &["a@x.com"])), None).await.applied();
    world.client = with_an_old_list;

    let applied = world.run(Some(&protected(&world, "c.x.com", &["a@x.com"])), None).await.applied();

    assert!(applied.notices.iter().all(|notice| notice.reason != "Released"), "{:?}", applied.notices);
    let domains: Vec<_> = world.ours("access_apps").iter().map(|app| app["domain"].clone()).collect();
    assert_eq!(domains, ["c.x.com"], "none is left behind");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_leads_to_the_same_place_is_taken_over_silently() {
    let mut world = World::new().await;
    let target = format!("{}.cfargotunnel.com", world.tunnels[0]);
    let id = world.put(
        "dns_records",
        ZONE,
        json!({"type": "CNAME", "name": "b.x.com", "content": target, "ttl": 1, "proxied": true}),
    );
    world.take_lines();

    let footprint = world.run(Some(&world.plain("b.x.com")), None).await.applied().footprint;

    assert_eq!(footprint.cname_record_id.as_ref(), Some(&id));
    assert!(footprint.is_adopted(Part::Record) && !footprint.is_adopted(Part::Rule));
    assert_eq!(world.take_writes(), ["PUT /cfd_tunnel/*/configurations"]);
    world.run(None, None).await.applied();
    assert!(world.sim.object("dns_records", &id).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_missing_group_or_policy_publishes_nothing_and_is_found_as_soon_as_it_is_there() {
    let mut world = World::new().await;
    let mut access = emails(&["a@x.com"]);
    access.groups = vec!["Enginering".to_owned()];
    access.policy_names = vec!["Contractors".to_owned()];
    let desired = Desired { access: Some(access), ..world.plain("a.x.com") };

    let problem = world.run(Some(&desired), None).await.problem();

    assert_eq!((problem.reason, problem.class), ("GroupNotFound", Class::Waiting));
    assert!(problem.message.contains("\"Enginering\""), "{}", problem.message);
    assert_eq!(world.take_writes(), Vec::<String>::new());
    world.put("access_groups", ACCOUNT, json!({"name": "Enginering", "include": [{"everyone": {}}]}));
    tokio::time::advance(Duration::from_secs(5)).await;
    world.run(Some(&desired), None).await.applied();
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_reusable_policy_is_linked_never_changed_and_left_for_addresses_in_the_same_application() {
    let mut world = World::new().await;
    let mut access = emails(&[]);
    access.policy_names = vec!["Contractors".to_owned()];
    let linked = Desired { access: Some(access.clone()), ..world.plain("a.x.com") };
    let before = world.run(Some(&linked), None).await.applied().footprint;
    assert!(before.access_policy_ids.is_empty(), "somebody else's policies are not ours");

    let both = Desired {
        access: Some(portolan_exposure::Access { emails: vec!["a@x.com".to_owned()], ..access }),
        ..linked.clone()
    };
    let middle = world.run(Some(&both), None).await.applied().footprint;
    let after = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied().footprint;

    assert_eq!((middle.reusable_policy_ids.len(), after.reusable_policy_ids.len()), (1, 0));
    assert_eq!(before.access_app_id, after.access_app_id);
    assert_eq!(world.ours("access_policies"), Vec::<serde_json::Value>::new());
    world.assert_theirs_untouched();
}

#[tokio::test(start_paused = true)]
async fn failing_protection_publishes_nothing() {
    let mut world = World::new().await;
    world.guard(["a.x.com".to_owned()]);
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.sim.fault(Fault::on("POST", "access/apps$", Effect::status(403)));

    let ended = world.run(Some(&desired), None).await;

    assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
    assert!(!is_published(&world.state(), "a.x.com"));
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_in_the_dashboard_is_made_again() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    let before = world.run(Some(&desired), None).await.applied().footprint;
    world.sim.remove("access_apps", before.access_app_id.as_ref().unwrap());
    world.sim.remove("dns_records", before.cname_record_id.as_ref().unwrap());
    world.sim.remove("service_tokens", before.service_token_id.as_ref().unwrap());
    tokio::time::advance(Duration::from_secs(3_600)).await;

    let after = world.run_looking(Some(&desired), None, Fresh::within(Duration::from_secs(60))).await.applied();

    assert!(after.token_created);
    assert_ne!(after.footprint.access_app_id, before.access_app_id);
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_since_the_last_look_is_noticed_by_the_refusal() {
    let mut world = World::new().await;
    let before = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied().footprint;
    world.sim.remove("access_apps", before.access_app_id.as_ref().unwrap());

    let desired = protected(&world, "a.x.com", &["b@x.com"]);
    let after = world.run(Some(&desired), None).await.applied().footprint;

    assert_ne!(after.access_app_id, before.access_app_id);
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_lost_secret_is_renewed_not_doubled_and_a_request_for_a_new_one_is_carried_out_once() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    let before = world.run(Some(&desired), None).await.applied().footprint;
    let id = before.service_token_id.clone().unwrap();
    let first = world.persisted().credentials.remove(&id).unwrap();
    world.take_lines();

    world.run(Some(&desired), None).await.applied();

    assert_eq!(world.take_writes(), ["POST /access/service_tokens/*/rotate"]);
    let second = world.persisted().credentials[&id].clone();
    assert_eq!((first.0 == second.0, first.1 == second.1), (true, false));
    let rotate = Rotate { request: "2026-11".to_owned(), overlap: Duration::from_secs(3_600) };
    let asked = Desired { token: Some(Token { rotate: Some(rotate), ..token() }), ..desired };
    let applied = world.run(Some(&asked), None).await.applied();
    assert_eq!(applied.footprint.service_token_rotation.as_deref(), Some("2026-11"));
    assert_eq!(world.take_writes(), ["POST /access/service_tokens/*/rotate"]);
    world.run(Some(&asked), None).await.applied();
    assert_eq!(world.take_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_token_is_given_another_life_when_it_should_live_longer_or_ends_soon() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.run(Some(&desired), None).await.applied();
    world.take_lines();

    let longer = Desired { token: Some(Token { duration: "17520h".to_owned(), ..token() }), ..desired };
    world.run(Some(&longer), None).await.applied();

    assert_eq!(world.take_writes(), ["PUT /access/service_tokens/*"]);
    let id = world.ours("service_tokens")[0]["id"].as_str().unwrap().to_owned();
    world.sim.edit("service_tokens", &id, |token| token["expires_at"] = json!("2026-11-20T00:00:00Z"));
    world.run_looking(Some(&longer), None, Fresh::after_now()).await.applied();
    assert_eq!(world.take_writes(), ["POST /access/service_tokens/*/refresh"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_got_its_name_since_its_plan_was_made_is_not_named_again() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.run(Some(&desired), None).await.applied();
    let made = world.ours("service_tokens").remove(0);
    let (id, name) = (made["id"].as_str().unwrap(), made["name"].clone());
    world.sim.edit("service_tokens", id, |token| token["name"] = json!("not named yet"));
    let (reader, mark, recorded) = (world.client.reader(), mark(), world.footprint());
    let look = || gather(&reader, &mark, Some(&desired), &recorded, Fresh::after_now());
    let exposure = plan(&desired, &recorded, &look().await.unwrap(), &world.notes(None)).unwrap();

    // The worker that made the token gives it its name, and another task here lists tokens.
    world.sim.edit("service_tokens", id, |token| token["name"] = name.clone());
    look().await.unwrap();
    world.take_lines();
    world.carry_out(&exposure).await;

    assert_eq!(world.take_writes(), Vec::<String>::new());
    assert_eq!(world.ours("service_tokens")[0]["name"], name);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_tried_again_where_a_fresh_look_changes_nothing() {
    for text in ["domain does not belong to zone", "tags contain a tag that does not exist"] {
        let mut world = World::new().await;
        let message = format!("access.api.error.invalid_request: {text}");
        let refusal = Effect::Status { status: 400, code: 12130, message };
        world.sim.fault(Fault::on("POST", "/access/apps", refusal));

        let problem = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.problem();

        assert_eq!((problem.class, problem.reason), (Class::Invalid, "InvalidConfig"), "{text}");
        assert!(problem.message.contains(text), "{}", problem.message);
        assert_eq!(world.take_writes(), ["POST /access/apps"], "{text}: a single attempt");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_was_made_anew_since_it_was_listed_is_looked_up_again() {
    let mut world = World::new().await;
    let behind_it = |desired: Desired| {
        let mut desired = desired;
        desired.access.as_mut().unwrap().policy_names = vec!["Contractors".to_owned()];
        desired
    };
    world.run(Some(&of_another(behind_it(protected(&world, "b.x.com", &[])))), None).await.applied();
    let old = world.state()["access_policies"][ACCOUNT][0]["id"].as_str().unwrap().to_owned();
    world.sim.remove("access_policies", &old);
    let again = json!({"name": "Contractors", "decision": "allow", "include": [{"email": {"email": "c@x.com"}}]});
    let new = world.put("access_policies", ACCOUNT, again);
    world.take_lines();
    world.diary_reset();

    world.run(Some(&behind_it(protected(&world, "a.x.com", &[]))), None).await.applied();

    let writes = world.take_writes();
    assert_eq!(writes.iter().filter(|line| *line == "POST /access/apps").count(), 2, "{writes:?}");
    let apps = world.state()["access_apps"][ACCOUNT].clone();
    let app = apps.as_array().unwrap().iter().find(|app| app["domain"] == "a.x.com").unwrap().clone();
    assert_eq!(app["policies"][0]["id"], json!(new));
}

fn with_quota(applications: usize) -> portolan_cloudflare_sim::Quotas {
    portolan_cloudflare_sim::Quotas { applications, ..portolan_cloudflare_sim::Quotas::default() }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_want_of_room_is_told_to_others_without_a_call_for_five_minutes() {
    let mut world = World::new().await;
    world.sim.set_quotas(with_quota(1));
    let desired = protected(&world, "a.x.com", &["a@x.com"]);

    let first = world.run(Some(&desired), None).await.problem();
    assert_eq!(world.take_writes(), ["POST /access/apps"], "only Cloudflare itself refuses");
    world.sim.set_quotas(with_quota(500));
    let second = world.run(Some(&protected(&world, "b.x.com", &["a@x.com"])), None).await.problem();

    assert_eq!((first.reason, second.reason), ("QuotaExceeded", "QuotaExceeded"));
    assert_eq!(world.take_writes(), Vec::<String>::new());
    assert!(second.message.contains("delete some"), "{}", second.message);
    assert!(second.retry_after.is_some_and(|pause| pause <= Duration::from_secs(300)), "{second:?}");
    tokio::time::advance(Duration::from_secs(300)).await;
    world.run(Some(&desired), None).await.applied();
    assert!(is_published(&world.state(), "a.x.com"));
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_is_missing_or_managed_elsewhere_is_told() {
    let mut world = World::new().await;
    let local = world.put("cfd_tunnel", ACCOUNT, json!({"name": "file", "config_src": "local"}));
    let with = |world: &World, tunnel_id: &str| {
        let mut desired = protected(world, "a.x.com", &["a@x.com"]);
        desired.rule.as_mut().unwrap().tunnel_id = tunnel_id.to_owned();
        desired
    };

    let missing = with(&world, "11111111-2222-3333-4444-555555555555");
    let missing = world.run(Some(&missing), None).await.problem();
    let managed = with(&world, &local);
    let managed = world.run(Some(&managed), None).await.problem();

    assert_eq!((missing.reason, managed.reason), ("TunnelNotFound", "TunnelLocallyManaged"));
    assert_eq!(world.take_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_application_that_was_made_and_never_heard_of_is_found_again_and_is_ours() {
    let calls = calls_of(&protected(&World::new().await, "a.x.com", &["a@x.com"])).await;

    for (at, line) in calls.iter().enumerate().filter(|(_, line)| line.starts_with("POST")) {
        let mut world = World::new().await;
        let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
        let first = world.run(Some(&desired), Some((at + 1, Hit::CrashAfter))).await;
        assert!(matches!(first, Ended::Crashed), "{line}: {first:?}");

        world.run(Some(&desired), None).await.applied();

        let counts = ["access_apps", "service_tokens", "dns_records"].map(|name| world.ours(name).len());
        assert_eq!(counts, [1, 1, 1], "after {line}");
        assert!(world.footprint().adopted.is_empty(), "after {line}");
        assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
    }
}

/// The requests of a run on a new world.
async fn calls_of(desired: &Desired) -> Vec<String> {
    let mut world = World::new().await;
    let rule = Some(world.rule(0, &desired.rule.as_ref().unwrap().service));
    let desired = Desired { rule, token: Some(token()), ..desired.clone() };
    world.run(Some(&desired), None).await.applied();
    world.take_lines()
}

#[tokio::test(start_paused = true)]
async fn an_application_that_somebody_pointed_elsewhere_is_not_deleted() {
    let mut world = World::new().await;
    let footprint = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied().footprint;
    let app = footprint.access_app_id.unwrap();
    world.sim.edit("access_apps", &app, |app| app["domain"] = json!("theirs.x.com"));
    world.restart();

    let applied = world.run(None, None).await.applied();

    assert!(world.sim.object("access_apps", &app).is_some());
    assert!(applied.notices.iter().any(|notice| notice.message.contains("theirs.x.com")));
}

#[tokio::test(start_paused = true)]
async fn withdrawing_what_is_gone_already_succeeds() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    world.sim.remove("access_apps", &footprint.access_app_id.unwrap());
    world.sim.remove("dns_records", &footprint.cname_record_id.unwrap());
    world.sim.remove("service_tokens", &footprint.service_token_id.unwrap());

    let applied = world.run(None, None).await.applied();

    assert!(applied.footprint.is_empty());
    assert!(!is_published(&world.state(), "a.x.com"));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_deleted_keeps_its_protection() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.run(Some(&desired), None).await.applied();
    world.guard(["a.x.com".to_owned()]);
    world.take_lines();
    world.sim.fault(Fault::on("DELETE", "dns_records/", Effect::status(403)));

    let failed = world.run(None, None).await;

    let Ended::Failed(failed) = failed else { panic!("it should fail: {failed:?}") };
    assert!(!world.hosts(0).contains(&"a.x.com".to_owned()), "the rule goes all the same");
    assert!(failed.footprint.cname_record_id.is_some() && failed.footprint.access_app_id.is_some());
    assert!(failed.footprint.service_token_id.is_some() && !failed.footprint.has_rule);
    world.sim.clear_faults();
    world.run(None, None).await.applied();
    assert_eq!(world.state()["access_apps"], world.seeded["access_apps"]);
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_zone_is_unknown_is_published_without_a_record_and_an_older_record_stays() {
    let mut world = World::new().await;
    let desired = world.plain("a.x.com");
    let before = world.run(Some(&desired), None).await.applied().footprint;

    let after = world.run(Some(&Desired { record: None, ..desired }), None).await.applied().footprint;

    assert_eq!(after.cname_record_id, before.cname_record_id);
    assert_eq!(world.ours("dns_records").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_one_rule_of_the_zone_and_no_failure_where_it_is_not_allowed() {
    let mut world = World::new().await;
    let desired = Desired { redirect: true, ..world.plain("a.x.com") };
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    assert!(footprint.redirect_rule_id.is_some());
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());

    world.run(None, None).await.applied();
    world.persisted().footprint = Footprint::default();
    world.sim.fault(Fault::on("*", "rulesets", Effect::status(403)));
    let applied = world.run(Some(&desired), None).await.applied();

    assert_eq!(applied.notices[0].reason, "HTTPRedirectNotManaged");
    assert!(applied.footprint.redirect_rule_id.is_none() && applied.footprint.has_rule);
}

#[tokio::test(start_paused = true)]
async fn finding_19_a_redirect_that_was_refused_is_not_asked_for_again_for_an_hour() {
    let mut world = World::new().await;
    let desired = Desired { redirect: true, ..world.plain("a.x.com") };
    world.sim.fault(Fault::on("POST", "rulesets", Effect::status(400)));
    world.run(Some(&desired), None).await.applied();
    world.take_lines();

    let again = world.run_looking(Some(&desired), None, Fresh::after_now()).await.applied();

    assert_eq!(world.take_writes(), Vec::<String>::new());
    assert_eq!(again.notices[0].reason, "HTTPRedirectNotManaged", "it is still told");
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(world.left_to_do(&desired).await.len(), 1, "limits and rights change without a word");
    let given_up = Desired { redirect: false, ..desired };
    let footprint = world.run(Some(&given_up), None).await.applied().footprint;
    assert_eq!(footprint.redirect_refusal, None);
}

#[tokio::test(start_paused = true)]
async fn a_plan_says_what_would_change_and_holds_no_secret() {
    let mut world = World::new().await;
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    let applied = world.run(Some(&desired), None).await.applied();

    let kinds: Vec<&str> = applied.changes.changes.iter().map(|change| change.target.kind.as_str()).collect();
    assert_eq!(kinds, ["service token", "Access application", "tunnel rule", "DNS record"]);
    let (_, secret) = world.persisted().credentials.values().next().unwrap().clone();
    assert!(!format!("{applied:?}").contains(&secret));
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_vanished_since_it_was_looked_up_is_said_to_be_missing() {
    let mut world = World::new().await;
    let mut access = emails(&[]);
    access.policy_names = vec!["Contractors".to_owned()];
    let desired = Desired { access: Some(access), ..world.plain("a.x.com") };
    world
        .run(Some(&Desired { hostname: "b.x.com".parse().unwrap(), ..of_another(desired.clone()) }), None)
        .await
        .applied();
    world.run(None, None).await.applied();
    world.diary_reset();
    let policy = world.all("access_policies")[0]["id"].as_str().unwrap().to_owned();
    world.sim.remove("access_policies", &policy);

    let problem = world.run(Some(&desired), None).await.problem();

    assert_eq!(problem.reason, "PolicyNotFound");
    assert!(!is_published(&world.state(), "a.x.com"));
}

#[tokio::test(start_paused = true)]
async fn names_that_are_published_together_share_their_writes() {
    let world = World::new().await;
    let names: Vec<Desired> = (0..100)
        .map(|n| {
            let mut desired = world.plain(&format!("n{n}.x.com"));
            desired.mark.key.name = format!("n{n}");
            desired
        })
        .collect();
    let recorded = Footprint::default();
    let notes = world.notes(None);
    world.sim.set_latency(Duration::from_millis(50));

    let all = names.iter().map(|desired| {
        portolan_exposure::expose(&world.client, desired, &recorded, &notes, Fresh::any(), &*world.diary)
    });
    let done = futures::future::join_all(all).await;

    assert!(done.iter().all(Result::is_ok));
    let lines = world.take_lines();
    assert!(lines.len() <= 8, "{lines:?}");
    assert_eq!(world.hosts(0).len(), 102);
    world.assert_theirs_untouched();
}

#[tokio::test(start_paused = true)]
async fn a_protected_wildcard_is_protected_at_every_depth() {
    let mut world = World::new().await;
    let desired = protected(&world, "*.y.org", &["a@x.com"]);
    let before = world.run(Some(&desired), None).await.applied().footprint;

    let app = world.sim.object("access_apps", before.access_app_id.as_ref().unwrap()).unwrap();
    assert_eq!(app["domain"], "*.y.org");
    assert!(app["destinations"].to_string().contains("*.*.*.*.y.org"), "{app}");
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());

    let exact = protected(&world, "c.y.org", &["a@x.com"]);
    let after = world.run(Some(&exact), None).await.applied().footprint;
    assert_eq!(after.access_app_id, before.access_app_id);
    assert!(!world.ours("access_apps")[0].to_string().contains('*'), "{:?}", world.ours("access_apps"));
    assert_eq!(world.left_to_do(&exact).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_set_at_our_application_since_survives_our_next_write() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let app = world.run(Some(&desired), None).await.applied().footprint.access_app_id.unwrap();
    world.sim.edit("access_apps", &app, |app| app["options_preflight_bypass"] = json!(true));

    let mut longer = desired;
    longer.access.as_mut().unwrap().settings.insert("session_duration".to_owned(), json!("8h"));
    world.run(Some(&longer), None).await.applied();

    let app = world.sim.object("access_apps", &app).unwrap();
    assert_eq!((&app["options_preflight_bypass"], &app["session_duration"]), (&json!(true), &json!("8h")));
    assert_eq!(app["policies"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_older_record_without_zone_and_name_is_still_ours() {
    let mut world = World::new().await;
    let desired = world.plain("a.x.com");
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    let id = footprint.cname_record_id.clone().unwrap();
    world.sim.edit("dns_records", &id, |record| record["comment"] = json!(null));
    world.restart();
    let older = Footprint { hostname: None, zone_id: None, account_id: None, ..footprint };
    world.persisted().footprint = older;
    world.take_lines();

    let after = world.run(Some(&desired), None).await.applied().footprint;

    assert_eq!((after.cname_record_id.as_ref(), after.adopted.len()), (Some(&id), 0));
    assert_eq!(world.take_writes(), Vec::<String>::new());
    world.run(None, None).await.applied();
    assert_eq!(world.sim.object("dns_records", &id), None);
}

#[tokio::test(start_paused = true)]
async fn an_application_that_somebody_makes_while_we_do_is_theirs() {
    let mut world = World::new().await;
    world.run(Some(&of_another(protected(&world, "b.x.com", &["a@x.com"]))), None).await.applied();
    world.diary_reset();
    let theirs = json!({"name": "theirs", "domain": "a.x.com", "type": "self_hosted", "policies": []});
    world.put("access_apps", ACCOUNT, theirs);

    let problem = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.problem();
    let again = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.problem();

    assert_eq!((problem.reason, again.reason), ("AccessAppConflict", "AccessAppConflict"));
    assert!(!is_published(&world.state(), "a.x.com"));
    let app = world.ours("access_apps").into_iter().find(|app| app["domain"] == "a.x.com").unwrap();
    assert_eq!((&app["name"], &app["policies"]), (&json!("theirs"), &json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_somebody_makes_while_we_do_is_theirs() {
    let mut world = World::new().await;
    world.run(Some(&of_another(world.plain("b.x.com"))), None).await.applied();
    world.diary_reset();
    let theirs = json!({"type": "CNAME", "name": "a.x.com", "content": "z.y.org", "ttl": 1});
    world.sim.remove("dns_records", world.all("dns_records")[1]["id"].as_str().unwrap());
    let id = world.put("dns_records", ZONE, theirs);

    let problem = world.run(Some(&world.plain("a.x.com")), None).await.problem();

    assert_eq!(problem.reason, "DNSRecordConflict");
    assert_eq!(world.sim.object("dns_records", &id).unwrap()["content"], "z.y.org");
}

#[tokio::test(start_paused = true)]
async fn an_api_that_knows_no_redirects_does_not_hold_a_name_up() {
    for status in [404, 405, 400] {
        let mut world = World::new().await;
        world.sim.fault(Fault::on("*", "rulesets", Effect::status(status)));

        let applied = world.run(Some(&Desired { redirect: true, ..world.plain("a.x.com") }), None).await.applied();

        assert!(applied.footprint.cname_record_id.is_some(), "{status}");
        assert_eq!(applied.notices[0].reason, "HTTPRedirectNotManaged");
        world.run(None, None).await.applied();
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_made_though_the_ruleset_goes_and_comes_meanwhile() {
    for after in (0..400).step_by(10) {
        let world = World::new().await;
        let names = ["n0.x.com", "n1.x.com", "n2.x.com", "n3.x.com"].map(|name| {
            let mut desired = Desired { redirect: true, ..world.plain(name) };
            desired.mark.key.name = name.to_owned();
            desired
        });
        let (recorded, notes, client) = (Footprint::default(), world.notes(None), &world.client);
        let expose = async |desired: &Desired, after: u64| {
            tokio::time::sleep(Duration::from_millis(after)).await;
            let exposed =
                portolan_exposure::expose(client, desired, &recorded, &notes, Fresh::any(), &*world.diary).await;
            exposed.unwrap().footprint
        };
        world.sim.set_latency(Duration::from_millis(20));
        let first = expose(&names[0], 0).await;

        let goes = portolan_exposure::unexpose(client, &names[0].mark, &first, &notes, Fresh::any(), &*world.diary);
        let others = futures::future::join_all([1, 2, 3].map(|n| expose(&names[n], after + 10 * n as u64)));
        let (gone, others) = tokio::join!(goes, others);

        gone.unwrap();
        assert!(others.iter().all(|one| one.redirect_rule_id.is_some()), "{after} ms after: {others:?}");
        assert_eq!(world.redirects().len(), 3, "{after} ms after");
    }
}

#[tokio::test(start_paused = true)]
async fn finding_38_a_rule_that_somebody_adds_while_our_last_redirect_goes_stays() {
    for after in (0..200).step_by(10) {
        let world = World::new().await;
        let desired = Desired { redirect: true, ..world.plain("a.x.com") };
        let (recorded, notes, client) = (Footprint::default(), world.notes(None), &world.client);
        let done = portolan_exposure::expose(client, &desired, &recorded, &notes, Fresh::any(), &*world.diary).await;
        let footprint = done.unwrap().footprint;
        world.sim.set_latency(Duration::from_millis(20));

        let goes = portolan_exposure::unexpose(client, &desired.mark, &footprint, &notes, Fresh::any(), &*world.diary);
        let person = async {
            tokio::time::sleep(Duration::from_millis(after)).await;
            let ruleset = world.all("rulesets")[0]["id"].as_str().unwrap().to_owned();
            let rule = json!({
                "action": "redirect", "expression": "(http.host eq \"theirs.x.com\")", "description": "by hand",
                "action_parameters": {"from_value": {"target_url": {"value": "https://x.org"}}},
            });
            let path = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";
            let request = Request::new(Method::POST, path, &[ZONE, &ruleset]).with_body(rule);
            client.send(Lane::Change, &request).await.unwrap();
        };
        let (gone, ()) = tokio::join!(goes, person);

        gone.unwrap();
        let left: Vec<Value> = world.redirects().into_iter().map(|rule| rule["description"].clone()).collect();
        assert_eq!(left, ["by hand"], "{after} ms after");
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_one_zone_share_its_ruleset_and_each_takes_its_own_rule_away() {
    let mut world = World::new().await;
    let names = ["n0.x.com", "n1.x.com", "n2.x.com"].map(|name| {
        let mut desired = Desired { redirect: true, ..world.plain(name) };
        desired.mark.key.name = name.to_owned();
        desired
    });
    let (recorded, notes) = (Footprint::default(), world.notes(None));
    world.sim.set_latency(Duration::from_millis(20));

    let all = names.iter().map(|desired| {
        portolan_exposure::expose(&world.client, desired, &recorded, &notes, Fresh::any(), &*world.diary)
    });
    let done = futures::future::join_all(all).await;

    let footprints: Vec<Footprint> = done.into_iter().map(|done| done.unwrap().footprint).collect();
    assert!(footprints.iter().all(|footprint| footprint.redirect_rule_id.is_some()), "{footprints:?}");
    assert_eq!((world.all("rulesets").len(), world.redirects().len()), (1, 3));
    world.take_lines();
    let again = Desired { redirect: true, ..names[0].clone() };
    portolan_exposure::expose(&world.client, &again, &footprints[0], &notes, Fresh::any(), &*world.diary)
        .await
        .unwrap();
    assert_eq!(world.take_lines(), Vec::<String>::new(), "a recorded redirect costs nothing");
    for (desired, footprint) in names.iter().zip(&footprints) {
        let client = &world.client;
        portolan_exposure::unexpose(client, &desired.mark, footprint, &notes, Fresh::any(), &*world.diary)
            .await
            .unwrap();
    }
    assert_eq!(world.redirects(), redirects(&world.seeded));
    world.restart();
}

#[tokio::test(start_paused = true)]
async fn an_api_that_shows_applications_without_policies_is_asked_for_them() {
    let mut world = World::new().await;
    world.hide_policies();
    let before = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied().footprint;
    assert_eq!(before.access_policy_ids.len(), 1);
    world.take_lines();

    let desired = protected(&world, "a.x.com", &["a@x.com", "b@x.com"]);
    let after = world.run(Some(&desired), None).await.applied().footprint;

    assert_eq!(world.take_writes(), ["PUT /access/apps/*/policies/*"]);
    assert_eq!(after, before);
    assert!(world.run(Some(&desired), None).await.applied().changes.is_empty());
    assert_eq!(world.take_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_only_its_configuration_shows_is_used() {
    let mut world = World::new().await;
    world.sim.fault(Fault::on("GET", "cfd_tunnel$", Effect::status(404)));
    world.run(Some(&world.plain("a.x.com")), None).await.applied();

    assert!(world.hosts(0).contains(&"a.x.com".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_order_of_what_is_listed_and_of_addresses_changes_no_plan() {
    let mut world = World::new().await;
    let mut access = emails(&["a@x.com", "b@x.com"]);
    access.groups = vec!["Engineering".to_owned()];
    let desired = Desired { access: Some(access.clone()), token: Some(token()), ..world.plain("a.x.com") };
    world.put(
        "dns_records",
        ZONE,
        json!({"type": "MX", "name": "a.x.com", "content": "mx.x.com", "ttl": 300, "priority": 1}),
    );
    let recorded = world.footprint();
    let live = gather(&world.client.reader(), &mark(), Some(&desired), &recorded, Fresh::any()).await.unwrap();
    let mut turned = live.clone();
    turned.records.values_mut().for_each(|records| records.reverse());
    turned.tokens.reverse();
    turned.apps.reverse();
    turned.policies.reverse();

    let notes = world.notes(None);
    let one = plan(&desired, &recorded, &live, &notes).unwrap().changes();
    let other = plan(&desired, &recorded, &turned, &notes).unwrap().changes();

    assert_eq!(one, other);
    world.run(Some(&desired), None).await.applied();
    world.take_lines();
    access.emails.reverse();
    world.run(Some(&Desired { access: Some(access), ..desired }), None).await.applied();
    assert_eq!(world.take_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_by_what_really_differs() {
    let mut world = World::new().await;
    world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied();

    let applied = world.run(Some(&protected(&world, "a.x.com", &["a@x.com", "b@x.com"])), None).await.applied();

    let text = applied.changes.render(portolan_core::Colour::Off);
    let told: Vec<&str> = text.lines().take(2).map(str::trim).collect();
    assert!(told[0].starts_with("~ update Access application a.x.com"), "{text}");
    assert_eq!(told[1], r#"include[1]: {"email":{"email":"b@x.com"}}"#, "{text}");
    assert_eq!(applied.changes.changes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn policies_that_did_not_come_with_the_application_are_made_before_anything_is_published() {
    let mut world = World::new().await;
    world.ignore_policies();
    let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.guard(["a.x.com".to_owned()]);

    let footprint = world.run(Some(&desired), None).await.applied().footprint;

    assert_eq!(
        world.take_writes()[..4],
        [
            "POST /access/service_tokens",
            "POST /access/apps",
            "POST /access/apps/*/policies",
            "POST /access/apps/*/policies"
        ]
    );
    assert_eq!(footprint.access_policy_ids.len(), 2);
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

fn groups(world: &World, groups: &[&str]) -> Desired {
    let mut access = emails(&[]);
    access.groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Desired { access: Some(access), ..world.plain("a.x.com") }
}

#[tokio::test(start_paused = true)]
async fn finding_4_everyone_in_another_case_is_a_group_of_the_account() {
    let mut world = World::new().await;
    let missing = world.run(Some(&groups(&world, &["Everyone"])), None).await.problem();
    assert_eq!(missing.reason, "GroupNotFound");
    assert!(!is_published(&world.state(), "a.x.com"));

    let staff = json!({"name": "Everyone", "include": [{"email_domain": {"domain": "x.com"}}]});
    let id = world.put("access_groups", ACCOUNT, staff);
    tokio::time::advance(Duration::from_secs(5)).await;
    let applied = world.run(Some(&groups(&world, &["Everyone"])), None).await.applied();

    assert_eq!(world.ours("access_apps")[0]["policies"][0]["include"], json!([{"group": {"id": id}}]));
    assert!(applied.notices.iter().all(|notice| notice.reason != "EveryoneAllowed"));
}

#[tokio::test(start_paused = true)]
async fn finding_4_the_literal_lets_all_pass_and_says_so() {
    let mut world = World::new().await;

    let applied = world.run(Some(&groups(&world, &["everyone"])), None).await.applied();

    assert_eq!(world.ours("access_apps")[0]["policies"][0]["include"], json!([{"everyone": {}}]));
    let told: Vec<_> = applied.notices.iter().filter(|notice| notice.reason == "EveryoneAllowed").collect();
    assert!(
        told.len() == 1 && told[0].severity == Severity::Warning && told[0].message.contains("a.x.com"),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn finding_4_a_group_that_is_named_everyone_makes_the_literal_unclear() {
    let mut world = World::new().await;
    let id = world.put("access_groups", ACCOUNT, json!({"name": "everyone", "include": [{"everyone": {}}]}));

    let problem = world.run(Some(&groups(&world, &["everyone"])), None).await.problem();

    assert_eq!(problem.reason, "GroupNotFound");
    assert!(problem.message.contains(&id), "{}", problem.message);
    assert!(!is_published(&world.state(), "a.x.com") && world.ours("access_apps").is_empty());
    world.run(Some(&groups(&world, &[&id])), None).await.applied();
}

#[tokio::test(start_paused = true)]
async fn finding_4_who_may_not_see_groups_may_still_write_the_literal() {
    let mut world = World::new().await;
    world.sim.fault(Fault::on("GET", "access/groups", Effect::status(403)));

    world.run(Some(&groups(&world, &["everyone"])), None).await.applied();
    world.run(None, None).await.applied();

    let problem = world.run(Some(&groups(&world, &["everyone", "Engineering"])), None).await.problem();
    assert!(!is_published(&world.state(), "a.x.com"), "{problem:?}");
}

#[tokio::test(start_paused = true)]
async fn finding_34_what_somebody_demands_besides_survives_our_next_writes() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let app = world.run(Some(&desired), None).await.applied().footprint.access_app_id.unwrap();
    let demands = json!([{"geo": {"country_code": "NL"}}]);
    world.sim.edit("access_apps", &app, |app| {
        app["policies"][0]["require"] = demands.clone();
        app["policies"][0]["exclude"] = json!([{"email": {"email": "b@x.com"}}]);
        app["policies"][0]["approval_required"] = json!(true);
    });
    let stands = |world: &World| {
        let policy = &world.sim.object("access_apps", &app).unwrap()["policies"][0];
        assert_eq!((&policy["require"], &policy["approval_required"]), (&demands, &json!(true)));
        assert_eq!(policy["exclude"][0]["email"]["email"], "b@x.com");
        policy["include"].as_array().unwrap().len()
    };
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());

    // One policy differs, then a member of the application, while only an older look is known.
    let wider = protected(&world, "a.x.com", &["a@x.com", "c@x.com"]);
    world.run(Some(&wider), None).await.applied();
    assert_eq!(stands(&world), 2);
    let mut longer = wider;
    longer.access.as_mut().unwrap().settings.insert("session_duration".to_owned(), json!("8h"));
    world.run(Some(&longer), None).await.applied();
    assert_eq!(stands(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn finding_34_a_reusable_policy_of_ours_keeps_what_somebody_demands_besides() {
    let mut world = World::new().await;
    let with = |world: &World, addresses: &[&str]| {
        let mut desired = protected(world, "a.x.com", addresses);
        desired.access.as_mut().unwrap().policy_names = vec!["Contractors".to_owned()];
        desired
    };
    world.run(Some(&with(&world, &["a@x.com"])), None).await.applied();
    let own = world.ours("access_policies")[0]["id"].as_str().unwrap().to_owned();
    let demands = json!([{"geo": {"country_code": "NL"}}]);
    world.sim.edit("access_policies", &own, |policy| policy["require"] = demands.clone());

    world.run(Some(&with(&world, &["c@x.com"])), None).await.applied();

    let policy = world.sim.object("access_policies", &own).unwrap();
    assert_eq!((&policy["require"], &policy["include"][0]["email"]["email"]), (&demands, &json!("c@x.com")));
}

#[tokio::test(start_paused = true)]
async fn finding_35_an_application_that_leads_elsewhere_is_not_as_wanted() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let app = world.run(Some(&desired), None).await.applied().footprint.access_app_id.unwrap();
    world.sim.edit("access_apps", &app, |app| {
        app["destinations"] =
            json!([{"type": "public", "uri": "else.x.com"}, {"type": "public", "uri": "a.x.com/admin"}]);
        app["self_hosted_domains"] = json!(["else.x.com", "a.x.com/admin"]);
    });
    assert!(!world.left_to_do(&desired).await.is_empty());

    world.run_looking(Some(&desired), None, Fresh::after_now()).await.applied();

    let found = world.sim.object("access_apps", &app).unwrap();
    assert!(found["destinations"].to_string().contains("\"uri\":\"a.x.com\""), "{found}");
    assert!(found["destinations"].to_string().contains("else.x.com"), "{found}");
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
}

impl World {
    fn app_of(&self, footprint: &Footprint) -> serde_json::Value {
        self.sim.object("access_apps", footprint.access_app_id.as_ref().unwrap()).unwrap()
    }

    /// What the rule of a name asks of requests.
    fn wall(&self, name: &str) -> serde_json::Value {
        let config = self.config(0);
        let mut rules = config["ingress"].as_array().unwrap().iter().filter(|rule| rule["path"].is_null());
        let rule = rules.find(|rule| rule["hostname"] == name);
        rule.unwrap()["originRequest"]["access"].clone()
    }

    /// The status that a stranger gets at the edge.
    fn stranger_gets(&self, host: &str) -> Option<u16> {
        self.sim.decide(&EdgeRequest::get(host, "/", &[])).status()
    }

    fn member_gets(&self, host: &str, address: &str) -> Option<u16> {
        self.sim.decide(&EdgeRequest::get(host, "/", &[(EMAIL_HEADER, address)])).status()
    }
}

/// Answers by itself, so that the edge needs no origin.
fn answering(mut desired: Desired) -> Desired {
    "http_status:200".clone_into(&mut desired.rule.as_mut().unwrap().service);
    desired
}

/// An application with just the content of this one.
fn copied(app: &serde_json::Value) -> serde_json::Value {
    let picked = |from: &serde_json::Value, members: &[&str]| -> serde_json::Value {
        members.iter().map(|member| ((*member).to_owned(), from[member].clone())).collect()
    };
    let mut copy = picked(app, &["name", "domain", "type", "session_duration", "http_only_cookie_attribute"]);
    copy["policies"] = json!([picked(&app["policies"][0], &["name", "decision", "include", "precedence"])]);
    copy
}

#[tokio::test(start_paused = true)]
async fn finding_1_an_application_that_is_gone_since_it_was_listed_is_made_before_the_name_goes_out() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    let app = world.app_of(&footprint);
    world.run(None, None).await.applied();
    // Another cluster has the name, just so; its application is listed here for the sake of another name, and then goes.
    let theirs = world.put("access_apps", ACCOUNT, copied(&app));
    world.restart();
    world.diary_reset();
    let other = of_another(protected(&world, "b.x.com", &["a@x.com"]));
    world.run(Some(&other), None).await.applied();
    world.sim.remove("access_apps", &theirs);
    world.diary_reset();
    world.guard(["a.x.com".to_owned()]);
    world.take_lines();

    let applied = world.run_looking(Some(&desired), None, Fresh::any()).await.applied();

    assert_eq!(world.violations(), Vec::<String>::new());
    let lines = world.take_lines();
    assert_eq!(lines[0], "GET /access/apps/*", "{lines:?}");
    let writes: Vec<_> = lines.iter().filter(|line| !line.starts_with("GET")).collect();
    assert_eq!(writes[0], "POST /access/apps", "{lines:?}");
    assert!(applied.notices.iter().all(|notice| notice.reason != "Adopted"), "{:?}", applied.notices);
    assert!(!applied.footprint.is_adopted(Part::App));
    assert_eq!(world.app_of(&applied.footprint)["domain"], "a.x.com");
}

#[tokio::test(start_paused = true)]
async fn finding_1_a_recorded_application_that_an_old_look_still_shows_is_read_before_a_record_goes_out() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    world.sim.remove("access_apps", footprint.access_app_id.as_ref().unwrap());
    world.guard(["a.x.com".to_owned()]);
    world.take_lines();

    // The name moves to another origin: its rule is written.
    let mut moved = desired.clone();
    "http://other.shop.svc:80".clone_into(&mut moved.rule.as_mut().unwrap().service);
    let after = world.run(Some(&moved), None).await.applied().footprint;

    let writes = world.take_writes();
    assert_eq!(writes, ["POST /access/apps", "PUT /cfd_tunnel/*/configurations"]);
    assert_ne!(after.access_app_id, footprint.access_app_id);
    assert_eq!(world.wall("a.x.com")["audTag"], json!([world.app_of(&after)["aud"]]));
}

#[tokio::test(start_paused = true)]
async fn finding_1_an_application_that_somebody_pointed_elsewhere_is_neither_trusted_nor_pointed_back() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    let theirs = footprint.access_app_id.clone().unwrap();
    world.sim.edit("access_apps", &theirs, |app| {
        app["domain"] = json!("else.x.com");
        app["destinations"] = json!([{"type": "public", "uri": "else.x.com"}]);
        app["self_hosted_domains"] = json!(["else.x.com"]);
    });
    let mut moved = desired.clone();
    "http://other.shop.svc:80".clone_into(&mut moved.rule.as_mut().unwrap().service);

    let after = world.run(Some(&moved), None).await.applied().footprint;

    assert_ne!(after.access_app_id.as_ref(), Some(&theirs));
    assert_eq!(world.sim.object("access_apps", &theirs).unwrap()["domain"], "else.x.com");
    assert_eq!(world.app_of(&after)["domain"], "a.x.com");
}

/// Somebody deletes the application of a name, after so long.
async fn lose_the_app_of(sim: &Simulator, name: &str, after: Duration) {
    tokio::time::sleep(after).await;
    let apps = all(&sim.state(), "access_apps");
    let app = apps.iter().find(|app| app["domain"] == name).expect("it stands by then");
    sim.remove("access_apps", app["id"].as_str().unwrap());
}

#[tokio::test(start_paused = true)]
async fn finding_1_an_application_that_goes_while_the_rule_waits_is_made_again_before_the_name_goes_out() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    world.guard(["a.x.com".to_owned()]);
    world.take_lines();
    // The rule is kept waiting for 75 seconds; after thirty of them somebody deletes the application that was made for it.
    let busy = Fault::on("PUT", "configurations", Effect::status(503)).times(3);
    world.sim.fault(busy.retry_after(Duration::from_secs(25)));
    let sim = world.sim.clone();
    let somebody = lose_the_app_of(&sim, "a.x.com", Duration::from_secs(30));

    let (ended, ()) = tokio::join!(world.run(Some(&desired), None), somebody);

    let footprint = ended.applied().footprint;
    assert_eq!(world.violations(), Vec::<String>::new());
    let writes = world.take_writes();
    let (refused, rest) = writes.split_at(4);
    let put = "PUT /cfd_tunnel/*/configurations";
    assert_eq!(refused, ["POST /access/apps", put, put, put], "{writes:?}");
    assert_eq!(rest, ["POST /access/apps", put, "POST /dns_records"], "{writes:?}");
    assert_eq!(world.wall("a.x.com")["audTag"], json!([world.app_of(&footprint)["aud"]]));
}

#[tokio::test(start_paused = true)]
async fn finding_1_an_application_that_goes_while_the_record_waits_is_made_again_before_the_name_goes_out() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    world.guard(["a.x.com".to_owned()]);
    world.take_lines();
    let busy = Fault::on("POST", "dns_records", Effect::status(429)).times(3);
    world.sim.fault(busy.retry_after(Duration::from_secs(25)));
    let sim = world.sim.clone();
    let somebody = lose_the_app_of(&sim, "a.x.com", Duration::from_secs(30));

    let (ended, ()) = tokio::join!(world.run(Some(&desired), None), somebody);

    let footprint = ended.applied().footprint;
    let writes = world.take_writes();
    let made = writes.iter().rposition(|line| line == "POST /access/apps").expect("it was made again");
    let record = writes.iter().rposition(|line| line == "POST /dns_records").expect("the record was made");
    assert!(made > 0 && made < record, "{writes:?}");
    assert_eq!(world.wall("a.x.com")["audTag"], json!([world.app_of(&footprint)["aud"]]));
}

#[tokio::test(start_paused = true)]
async fn finding_1_one_look_more_where_it_is_needed_and_none_for_a_settled_name() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    world.run(Some(&desired), None).await.applied();
    world.take_lines();

    world.run(Some(&desired), None).await.applied();
    assert_eq!(world.take_lines(), Vec::<String>::new(), "settled");

    let mut moved = desired.clone();
    "http://other.shop.svc:80".clone_into(&mut moved.rule.as_mut().unwrap().service);
    world.run(Some(&moved), None).await.applied();
    let lines = world.take_lines();
    let looks = lines.iter().filter(|line| *line == "GET /access/apps/*").count();
    assert_eq!((looks, lines[0].as_str()), (1, "GET /access/apps/*"), "{lines:?}");

    let wider = Desired { rule: moved.rule.clone(), ..protected(&world, "a.x.com", &["a@x.com", "b@x.com"]) };
    world.run(Some(&wider), None).await.applied();
    assert_eq!(world.take_lines(), ["GET /access/apps/*", "PUT /access/apps/*/policies/*"]);
}

#[tokio::test(start_paused = true)]
async fn finding_3_a_protected_wildcard_is_closed_at_any_depth() {
    let mut world = World::new().await;
    let desired = answering(protected(&world, "*.y.org", &["a@x.com"]));
    let footprint = world.run(Some(&desired), None).await.applied().footprint;

    for depth in 1..=12 {
        let host = format!("{}y.org", "a.".repeat(depth));
        assert_ne!(world.stranger_gets(&host), Some(200), "{host}");
    }
    assert_eq!(world.stranger_gets("a.b.c.d.e.y.org"), Some(403));
    assert_eq!(world.member_gets("a.y.org", "a@x.com"), Some(200));
    let asked = json!({"required": true, "teamName": "test", "audTag": [world.app_of(&footprint)["aud"]]});
    assert_eq!(world.wall("*.y.org"), asked);
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn finding_3_a_protected_wildcard_keeps_its_rule_until_its_record_is_gone() {
    let mut world = World::new().await;
    let desired = answering(protected(&world, "*.y.org", &["a@x.com"]));
    world.run(Some(&desired), None).await.applied();
    world.take_lines();
    world.sim.fault(Fault::on("DELETE", "dns_records", Effect::status(403)));

    world.run(None, None).await.problem();

    assert_eq!(world.take_writes(), ["DELETE /dns_records/*"]);
    assert_eq!(world.stranger_gets("a.b.c.d.e.y.org"), Some(403));
    world.sim.clear_faults();
    assert!(world.run(None, None).await.applied().footprint.is_empty());
    assert_eq!((world.ours("dns_records").len(), world.ours("access_apps").len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_from_the_tunnel_though_its_record_cannot_be_deleted() {
    for access in [false, true] {
        let mut world = World::new().await;
        let desired = if access { protected(&world, "a.x.com", &["a@x.com"]) } else { world.plain("a.x.com") };
        world.run(Some(&answering(desired)), None).await.applied();
        world.sim.fault(Fault::on("DELETE", "dns_records", Effect::status(403)));

        world.run(None, None).await.problem();

        assert_eq!(world.hosts(0).iter().filter(|host| *host == "a.x.com").count(), 0);
        assert_eq!(world.ours("access_apps").len(), usize::from(access), "what protects stays");
    }
}

#[tokio::test(start_paused = true)]
async fn finding_3_a_name_stays_closed_when_somebody_deletes_its_application() {
    let mut world = World::new().await;
    let desired = answering(protected(&world, "a.x.com", &["a@x.com"]));
    let footprint = world.run(Some(&desired), None).await.applied().footprint;

    world.sim.remove("access_apps", footprint.access_app_id.as_ref().unwrap());
    assert_eq!((world.stranger_gets("a.x.com"), world.member_gets("a.x.com", "a@x.com")), (Some(403), Some(403)));

    world.take_lines();
    let after = world.run_looking(Some(&desired), None, Fresh::after_now()).await.applied().footprint;
    assert_eq!(world.take_writes(), ["POST /access/apps", "PUT /cfd_tunnel/*/configurations"]);
    assert_eq!(world.wall("a.x.com")["audTag"], json!([world.app_of(&after)["aud"]]));
    assert_eq!((world.stranger_gets("a.x.com"), world.member_gets("a.x.com", "a@x.com")), (Some(302), Some(200)));
}

#[tokio::test(start_paused = true)]
async fn finding_3_the_new_audience_is_in_the_rule_before_the_record_goes_out() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let footprint = world.run(Some(&desired), None).await.applied().footprint;
    world.sim.remove("access_apps", footprint.access_app_id.as_ref().unwrap());
    world.sim.remove("dns_records", footprint.cname_record_id.as_ref().unwrap());
    world.take_lines();

    world.run_looking(Some(&desired), None, Fresh::after_now()).await.applied();

    assert_eq!(world.take_writes(), ["POST /access/apps", "PUT /cfd_tunnel/*/configurations", "POST /dns_records"]);
}

#[tokio::test(start_paused = true)]
async fn finding_3_an_open_name_asks_for_nothing_and_edits_of_the_wall_are_drift() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    world.run(Some(&desired), None).await.applied();
    let wall = world.wall("a.x.com");
    for edit in [json!({}), json!({"access": {"required": false, "teamName": "test", "audTag": ["x"]}})] {
        let mut config = world.config(0);
        let rules = config["ingress"].as_array_mut().unwrap();
        let rule = rules.iter_mut().find(|rule| rule["hostname"] == "a.x.com" && rule["path"].is_null()).unwrap();
        rule["originRequest"] = edit.clone();
        world.write_config(0, config).await;
        assert_eq!(world.left_to_do(&desired).await.len(), 1, "{edit}");
        world.take_lines();
        world.run_looking(Some(&desired), None, Fresh::after_now()).await.applied();
        let looks = world.take_lines().iter().filter(|line| *line == "GET /access/apps/*").count();
        assert_eq!(
            (world.wall("a.x.com"), looks),
            (wall.clone(), 0),
            "a rule that only asks for more publishes nothing"
        );
    }

    let open = world.plain("a.x.com");
    world.run(Some(&open), None).await.applied();
    assert_eq!(world.wall("a.x.com"), json!(null));
    assert_eq!(world.left_to_do(&open).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn finding_3_who_passes_unasked_makes_the_second_wall_impossible() {
    let mut world = World::new().await;
    let bypass = json!({"name": "Office", "decision": "bypass", "include": [{"ip": {"ip": "10.0.0.0/8"}}]});
    world.put("access_policies", ACCOUNT, bypass);
    let mut desired = protected(&world, "a.x.com", &["a@x.com"]);
    desired.access.as_mut().unwrap().policy_names = vec!["Office".to_owned()];

    let applied = world.run(Some(&desired), None).await.applied();

    assert_eq!(world.wall("a.x.com"), json!(null));
    let told: Vec<_> = applied.notices.iter().map(|notice| (notice.reason, notice.severity)).collect();
    assert_eq!(told, [("SecondWallImpossible", Severity::Warning)]);
    assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());

    // Without the policy the rule asks; with preflights that pass it stops again.
    let plain = protected(&world, "a.x.com", &["a@x.com"]);
    let footprint = world.run(Some(&plain), None).await.applied().footprint;
    assert_eq!(world.wall("a.x.com")["required"], json!(true));
    let app = footprint.access_app_id.unwrap();
    world.sim.edit("access_apps", &app, |app| app["options_preflight_bypass"] = json!(true));
    let applied = world.run_looking(Some(&plain), None, Fresh::after_now()).await.applied();
    assert_eq!((world.wall("a.x.com"), applied.notices[0].reason), (json!(null), "SecondWallImpossible"));
}

#[tokio::test(start_paused = true)]
async fn finding_3_without_the_team_new_wildcards_are_refused_and_what_stands_stays() {
    let mut world = World::new().await;
    let standing = protected(&world, "*.y.org", &["a@x.com"]);
    world.run(Some(&standing), None).await.applied();
    let wall = world.wall("*.y.org");
    world.restart();
    world.sim.fault(Fault::on("GET", "access/organizations", Effect::status(403)));

    assert_eq!(world.left_to_do(&standing).await, Vec::<String>::new());
    let wider = protected(&world, "*.y.org", &["a@x.com", "b@x.com"]);
    let applied = world.run(Some(&wider), None).await.applied();
    assert_eq!((world.wall("*.y.org"), applied.notices[0].reason), (wall, "SecondWallUnavailable"));
    // A new application is asked for though the team cannot be read: the rule still names it.
    world.sim.remove("access_apps", applied.footprint.access_app_id.as_ref().unwrap());
    let after = world.run_looking(Some(&wider), None, Fresh::after_now()).await.applied().footprint;
    assert_eq!(world.wall("*.y.org")["audTag"], json!([world.app_of(&after)["aud"]]));

    world.run(None, None).await.applied();
    world.diary_reset();
    let problem = world.run(Some(&standing), None).await.problem();
    assert_eq!((problem.reason, problem.class), ("ProtectionImpossible", Class::Denied));
    assert!(!is_published(&world.state(), "*.y.org") && world.ours("access_apps").is_empty());

    let exact = world.run(Some(&protected(&world, "a.x.com", &["a@x.com"])), None).await.applied();
    assert_eq!((world.wall("a.x.com"), exact.notices[0].reason), (json!(null), "SecondWallUnavailable"));
}

#[tokio::test(start_paused = true)]
async fn finding_3_rules_from_before_get_the_wall_in_one_write() {
    let mut world = World::new().await;
    let names: Vec<Desired> = (0..20)
        .map(|n| {
            let mut desired = protected(&world, &format!("n{n}.x.com"), &["a@x.com"]);
            desired.mark.key.name = format!("n{n}");
            desired
        })
        .collect();
    let mut footprints = Vec::new();
    for desired in &names {
        footprints.push(world.run(Some(desired), None).await.applied().footprint);
        world.diary_reset();
    }
    let mut config = world.config(0);
    for rule in config["ingress"].as_array_mut().unwrap() {
        if rule["hostname"].as_str().is_some_and(|name| name.starts_with('n')) {
            rule.as_object_mut().unwrap().remove("originRequest");
        }
    }
    world.write_config(0, config).await;
    world.take_lines();
    world.sim.set_latency(Duration::from_millis(50));

    let (notes, fresh) = (world.notes(None), Fresh::after_now());
    let all = names.iter().zip(&footprints).map(|(desired, recorded)| {
        portolan_exposure::expose(&world.client, desired, recorded, &notes, fresh, &*world.diary)
    });
    let done = futures::future::join_all(all).await;

    assert!(done.iter().all(Result::is_ok));
    assert_eq!(world.take_writes(), ["PUT /cfd_tunnel/*/configurations"]);
    assert!((0..20).all(|n| world.wall(&format!("n{n}.x.com"))["required"] == json!(true)));
}

#[tokio::test(start_paused = true)]
async fn finding_3_a_rule_that_was_written_before_a_crash_is_ours_though_it_asks_for_a_token() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    for n in 1..20 {
        if !matches!(world.run(Some(&desired), Some((n, Hit::CrashAfter))).await, Ended::Crashed) {
            break;
        }
        world.run(Some(&desired), None).await.applied();
        assert!(world.footprint().adopted.is_empty(), "after a crash at request {n}: {:?}", world.footprint());
        assert_eq!(world.wall("a.x.com")["required"], json!(true));
        world.run(None, None).await.applied();
        world.assert_theirs_untouched();
        world.diary_reset();
    }
}

/// The same wish of another cluster.
fn of_another_cluster(mut desired: Desired) -> Desired {
    desired.mark.owner = portolan_core::OwnerId::derive("blue");
    desired
}

#[tokio::test(start_paused = true)]
async fn finding_10_the_token_of_another_cluster_is_never_taken_nor_rotated() {
    let mut world = World::new().await;
    let green = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    // The first attempt ends before its token is made, for whatever reason, and is tried again much later.
    let token_path = "/accounts/{account_id}/access/service_tokens";
    world.sim.fault(Fault::on("POST", token_path, Effect::status(400)).times(1));
    world.run(Some(&green), None).await.problem();
    let persisted = world.persisted().clone();
    world.diary_reset();
    let blue = of_another_cluster(Desired { token: Some(token()), ..protected(&world, "b.x.com", &["a@x.com"]) });
    let theirs = world.run(Some(&blue), None).await.applied().footprint.service_token_id.unwrap();
    let before = world.sim.object("service_tokens", &theirs);
    *world.persisted() = persisted;
    world.restart();

    let applied = world.run(Some(&green), None).await.applied();

    assert_ne!(applied.footprint.service_token_id.as_ref(), Some(&theirs));
    assert_eq!(world.sim.object("service_tokens", &theirs), before, "as it was");
    assert_eq!(applied.notices.iter().filter(|notice| notice.reason == "ServiceTokenUnclaimed").count(), 1);
    world.run(None, None).await.applied();
    assert!(world.sim.object("service_tokens", &theirs).is_some());
}

#[tokio::test(start_paused = true)]
async fn finding_10_a_token_of_another_cluster_that_is_being_made_is_not_taken_either() {
    let mut world = World::new().await;
    let blue = of_another_cluster(Desired { token: Some(token()), ..protected(&world, "b.x.com", &["a@x.com"]) });
    let mut n = 0;
    // It stops right after its token was made, and has recorded nothing.
    while world.ours("service_tokens").is_empty() {
        n += 1;
        world.run(Some(&blue), Some((n, Hit::CrashAfter))).await;
    }
    let theirs = world.ours("service_tokens")[0].clone();
    world.diary_reset();
    let green = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
    world.run(Some(&green), Some((1, Hit::FailBefore))).await;
    let ours = world.run(Some(&green), None).await.applied().footprint.service_token_id.unwrap();

    assert_ne!(theirs["id"], json!(ours));
    assert_eq!(world.sim.object("service_tokens", theirs["id"].as_str().unwrap()), Some(theirs));
}

#[tokio::test(start_paused = true)]
async fn finding_10_clocks_that_differ_double_neither_tokens_nor_applications() {
    for skew in [-3600, -60, -6, 6, 60, 3600] {
        for n in 1..20 {
            let mut world = World::new().await;
            world.skew(skew).await;
            let desired = Desired { token: Some(token()), ..protected(&world, "a.x.com", &["a@x.com"]) };
            if !matches!(world.run(Some(&desired), Some((n, Hit::CrashAfter))).await, Ended::Crashed) {
                assert!(n > 8, "only {n} requests");
                break;
            }

            let footprint = world.run(Some(&desired), None).await.applied().footprint;

            let tokens = world.ours("service_tokens");
            assert_eq!((tokens.len(), &tokens[0]["name"]), (1, &json!("web-service-token")), "{skew} s, request {n}");
            assert!(world.ours("access_apps").len() == 1 && footprint.adopted.is_empty(), "{skew} s, request {n}");
            assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new(), "{skew} s, request {n}");
            world.run(None, None).await.applied();
            assert!(world.ours("service_tokens").is_empty() && world.ours("access_apps").is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn finding_1_an_open_name_is_not_called_protected_by_an_application_that_is_gone() {
    let mut world = World::new().await;
    let desired = protected(&world, "a.x.com", &["a@x.com"]);
    let app = world.run(Some(&desired), None).await.applied().footprint;
    let app = world.app_of(&app);
    world.run(None, None).await.applied();
    world.restart();
    world.sim.fault(Fault::on("GET", "access/organizations", Effect::status(403)));
    let open = world.run(Some(&world.plain("a.x.com")), None).await.applied().footprint;
    let theirs = world.put("access_apps", ACCOUNT, copied(&app));
    world.diary_reset();
    world.run(Some(&of_another(protected(&world, "b.x.com", &["a@x.com"]))), None).await.applied();
    world.sim.remove("access_apps", &theirs);
    world.diary_reset();
    world.persisted().footprint = open;

    let applied = world.run(Some(&desired), None).await.applied();

    assert_eq!(world.app_of(&applied.footprint)["domain"], "a.x.com");
    assert!(!applied.footprint.is_adopted(Part::App));
}
