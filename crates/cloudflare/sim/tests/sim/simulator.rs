//! The simulator as its clients and its owner see it.

#![expect(clippy::unwrap_used, reason = "tests stop where something is missing")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use portolan_cloudflare_sim::{Count, Dropped, Effect, Fault, Grant, Options, RightLevel, Simulator};
use serde_json::{Value, json};
use tokio::time::Instant;

struct Lab {
    simulator: Simulator,
    account: String,
    zone: String,
}

fn lab_with(options: Options) -> Lab {
    let simulator = Simulator::new(options);
    let account = simulator.add_account("Lab");
    let zone = simulator.add_zone("example.com", &account, "enterprise").unwrap();
    Lab { simulator, account, zone }
}

fn lab() -> Lab {
    lab_with(Options::default())
}

impl Lab {
    async fn raw(&self, token: &str, method: &str, path: &str, body: Value) -> Result<Response<Bytes>, Dropped> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let path = path.replace("{account}", &self.account).replace("{zone}", &self.zone);
        let request = Request::builder()
            .method(method)
            .uri(format!("http://sim/client/v4{path}"))
            .header("authorization", format!("Bearer {token}"))
            .body(body)
            .unwrap();
        self.simulator.answer(request).await
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let response = self.raw("token", method, path, body).await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(method, path, body).await;
        assert_eq!((status, &answer["success"]), (200, &json!(true)), "{method} {path}: {answer}");
        answer["result"].clone()
    }

    async fn refused(&self, method: &str, path: &str, body: Value) -> (u16, u64) {
        let (status, answer) = self.send(method, path, body).await;
        assert_eq!(answer["success"], false, "{method} {path}: {answer}");
        (status, answer["errors"][0]["code"].as_u64().unwrap())
    }
}

fn record(name: &str) -> Value {
    json!({"type": "A", "name": name, "content": "192.0.2.1", "ttl": 1})
}

const RECORDS: &str = "/zones/{zone}/dns_records";
const TUNNELS: &str = "/accounts/{account}/cfd_tunnel";
const NETWORKS: &str = "/accounts/{account}/teamnet/virtual_networks";
const ROUTES: &str = "/accounts/{account}/teamnet/routes";

#[tokio::test]
async fn unknown_paths_methods_and_ids_are_told_apart() {
    let lab = lab();

    assert_eq!(lab.refused("GET", "/nonsense", json!(null)).await, (404, 7000));
    assert_eq!(lab.refused("PUT", "/zones", json!({})).await, (405, 10405));
    assert_eq!(lab.refused("GET", "/zones/nonsense", json!(null)).await, (404, 7003));
    assert_eq!(lab.refused("GET", &format!("/zones/{}", "0".repeat(32)), json!(null)).await, (404, 1001));
    assert_eq!(lab.refused("GET", "/zones/nonsense/dns_records", json!(null)).await, (404, 7003));
    assert_eq!(lab.refused("GET", "/accounts/nonsense/cfd_tunnel", json!(null)).await, (404, 7003));
    let account = format!("/accounts/{}/cfd_tunnel", "0".repeat(32));
    assert_eq!(lab.refused("GET", &account, json!(null)).await, (403, 10000));
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let lab = lab();
    let request = Request::builder()
        .method("POST")
        .uri(format!("/client/v4/zones/{}/dns_records", lab.zone))
        .header("authorization", "Bearer token")
        .body(Bytes::from_static(b"{"))
        .unwrap();

    let response = lab.simulator.answer(request).await.unwrap();

    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn a_deletion_of_nothing_tells_whether_a_token_may_delete() {
    let lab = lab();
    let nothing = [
        (TUNNELS, "00000000-0000-0000-0000-000000000000"),
        ("/accounts/{account}/access/apps", "00000000-0000-0000-0000-000000000000"),
        ("/accounts/{account}/access/service_tokens", "00000000-0000-0000-0000-000000000000"),
        (RECORDS, "00000000000000000000000000000000"),
        ("/zones/{zone}/rulesets/00000000000000000000000000000000/rules", "00000000000000000000000000000000"),
    ];
    lab.simulator.add_token("token", Grant::all());
    for (path, id) in nothing {
        assert_eq!(lab.refused("DELETE", &format!("{path}/{id}"), json!(null)).await.0, 404, "{path}");
    }

    lab.simulator.add_token("token", Grant::all().only("zone", RightLevel::Read));
    for (path, id) in nothing {
        assert_eq!(lab.refused("DELETE", &format!("{path}/{id}"), json!(null)).await, (403, 10000), "{path}");
    }
}

#[tokio::test]
async fn a_zone_has_a_universal_certificate_and_those_that_were_ordered() {
    let lab = lab();
    let path = "/zones/{zone}/ssl/certificate_packs?status=all";
    lab.simulator.put("certificate_packs", &lab.zone, json!({"hosts": ["*.dev.example.com"]})).unwrap();

    let packs = lab.ok("GET", path, json!(null)).await;

    let shown = packs.as_array().unwrap().iter().map(|pack| json!([pack["type"], pack["status"], pack["hosts"]]));
    let universal = json!(["universal", "active", ["example.com", "*.example.com"]]);
    assert_eq!(shown.collect::<Value>(), json!([universal, ["advanced", "active", ["*.dev.example.com"]]]));
    lab.simulator.add_token("token", Grant::all().only("zone", RightLevel::Edit));
    assert_eq!(lab.refused("GET", path, json!(null)).await, (403, 10000));
}

#[tokio::test]
async fn a_token_tells_its_status_and_its_end_and_seeds_name_only_groups_that_exist() {
    let lab = lab();
    let token = json!({"token": "token", "expires_on": "2999-01-01T00:00:00Z", "permissions": {"dns": "read"}});
    lab.simulator.seed(json!({"tokens": [token]})).unwrap();

    let told = lab.ok("GET", "/user/tokens/verify", json!(null)).await;
    assert_eq!((&told["status"], &told["expires_on"]), (&json!("active"), &json!("2999-01-01T00:00:00Z")));
    assert_eq!(lab.refused("GET", "/zones", json!(null)).await, (403, 0));

    let wrong = lab.simulator.seed(json!({"tokens": [{"token": "x", "permissions": {"DNS": "read"}}]}));
    assert!(wrong.unwrap_err().contains("DNS, which is no group"));
}

#[tokio::test]
async fn a_token_sees_and_does_what_it_was_granted() {
    let lab = lab();
    let other = lab.simulator.add_account("Other");
    lab.simulator.add_zone("example.net", &other, "free").unwrap();
    let grant = Grant::all().account(&lab.account).only("zone", RightLevel::Read).only("dns", RightLevel::Read);
    lab.simulator.add_token("token", grant);

    let hidden = lab.simulator.add_zone("example.edu", &other, "free").unwrap();
    assert_eq!(lab.refused("GET", &format!("/zones/{hidden}"), json!(null)).await, (403, 9109));
    assert_eq!(lab.ok("GET", "/zones", json!(null)).await.as_array().unwrap().len(), 1);
    lab.ok("GET", RECORDS, json!(null)).await;
    assert_eq!(lab.refused("POST", RECORDS, record("x")).await, (403, 10000));
    assert_eq!(lab.refused("GET", TUNNELS, json!(null)).await, (403, 10000));
    assert_eq!(lab.ok("GET", "/user/tokens/verify", json!(null)).await["status"], "active");
    lab.simulator.revoke_token("token");
    assert_eq!(lab.refused("GET", "/zones", json!(null)).await, (403, 9109));
    assert_eq!(lab.refused("GET", "/user/tokens/verify", json!(null)).await, (401, 1000));
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_per_user_and_tells_when_to_come_back() {
    let lab = lab_with(Options { rate_limit: Some((3, Duration::from_secs(300))), ..Options::default() });
    for (token, user) in [("a", "me"), ("mine", "me"), ("b", "you")] {
        lab.simulator.add_token(token, Grant::all().email(user));
    }
    lab.simulator.add_token("c", Grant::all().email("me").of_account());
    let get = async |token: &str| lab.raw(token, "GET", "/zones", json!(null)).await.unwrap();

    let first = get("a").await;
    assert_eq!(first.headers()["ratelimit"], "\"default\";r=2;t=300");
    assert_eq!(first.headers()["ratelimit-policy"], "\"default\";q=3;w=300");
    get("mine").await;
    get("a").await;
    tokio::time::advance(Duration::from_secs(100)).await;
    let refused = get("mine").await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"300".parse().unwrap()));
    assert_eq!(get("b").await.status(), 200, "another user");
    assert_eq!(get("c").await.status(), 200, "a token of an account is counted by itself");
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(get("a").await.status(), 429, "the penalty is longer than the window");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(get("a").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn planted_faults_cost_budget_and_carry_its_headers() {
    let lab = lab_with(Options { rate_limit: Some((3, Duration::from_secs(300))), ..Options::default() });
    let get = async || lab.raw("t", "GET", "/zones", json!(null)).await;

    lab.simulator.fault(Fault::on("GET", "/zones", Effect::status(500)).times(1));
    let failed = get().await.unwrap();
    assert_eq!(
        (failed.status().as_u16(), &failed.headers()["ratelimit"]),
        (500, &"\"default\";r=2;t=300".parse().unwrap())
    );
    lab.simulator.fault(Fault::on("GET", "/zones", Effect::Timeout).times(1));
    assert_eq!(get().await.unwrap_err(), Dropped::Timeout);
    lab.simulator.fault(Fault::on("GET", "/zones", Effect::Refused).times(1));
    assert_eq!(get().await.unwrap_err(), Dropped::Refused);
    assert_eq!(get().await.unwrap().headers()["ratelimit"], "\"default\";r=0;t=200", "what was never sent is free");
    lab.simulator.fault(Fault::on("GET", "/zones", Effect::status(500)).times(1));
    assert_eq!(get().await.unwrap().status(), 429, "the limit comes first");
}

#[tokio::test(start_paused = true)]
async fn listings_lag_behind_writes_and_reads_by_id_do_not() {
    let lab = lab();
    lab.ok("POST", RECORDS, record("before")).await;
    lab.simulator.set_lag("dns_records", Duration::from_secs(5));
    let listed = async || lab.ok("GET", RECORDS, json!(null)).await.as_array().unwrap().len();

    let made = lab.ok("POST", RECORDS, record("new")).await;
    assert_eq!(listed().await, 1);
    assert_eq!(lab.ok("GET", &format!("{RECORDS}/{}", made["id"].as_str().unwrap()), json!(null)).await, made);
    tokio::time::advance(Duration::from_secs(3)).await;
    lab.ok("DELETE", &format!("{RECORDS}/{}", made["id"].as_str().unwrap()), json!(null)).await;
    assert_eq!(listed().await, 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(listed().await, 2, "made, and not yet seen to be gone");
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(listed().await, 1);
}

#[tokio::test]
async fn larger_pages_than_the_largest_are_cut_down_without_a_word() {
    let lab = lab_with(Options { largest_page: Some(2), ..Options::default() });
    for name in ["a", "b", "c"] {
        lab.ok("POST", RECORDS, record(name)).await;
    }

    let (status, page) = lab.send("GET", &format!("{RECORDS}?per_page=1000"), json!(null)).await;

    assert_eq!((status, page["result"].as_array().unwrap().len()), (200, 2));
    assert_eq!((&page["result_info"]["per_page"], &page["result_info"]["total_pages"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn an_account_without_zero_trust_has_no_access_until_somebody_enables_it() {
    let lab = lab();
    lab.simulator.disable_zero_trust(&lab.account);

    for path in ["apps", "policies", "groups", "service_tokens", "organizations", "identity_providers"] {
        let path = format!("/accounts/{}/access/{path}", lab.account);
        let (status, answer) = lab.send("GET", &path, json!(null)).await;
        assert_eq!((status, &answer["errors"][0]["code"]), (403, &json!(9999)), "{path}");
        assert!(answer["errors"][0]["message"].as_str().unwrap().starts_with("access.api.error.not_enabled"));
    }
    lab.ok("GET", TUNNELS, json!(null)).await;
    lab.simulator.enable_zero_trust(&lab.account);
    lab.ok("GET", &format!("/accounts/{}/access/apps", lab.account), json!(null)).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_has_its_effect_in_the_middle_of_its_latency() {
    let lab = lab_with(Options { latency: Duration::from_millis(150), ..Options::default() });
    let start = Instant::now();

    lab.ok("GET", "/zones", json!(null)).await;
    assert_eq!(start.elapsed(), Duration::from_millis(150));
    let lost = tokio::time::timeout(Duration::from_millis(100), lab.ok("POST", RECORDS, record("lost"))).await;
    assert!(lost.is_err());
    assert_eq!(lab.simulator.objects("dns_records", &lab.zone).len(), 1, "made although nobody waited for the answer");
    let never = tokio::time::timeout(Duration::from_millis(50), lab.ok("POST", RECORDS, record("never"))).await;
    assert!(never.is_err());
    assert_eq!(lab.simulator.objects("dns_records", &lab.zone).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn faults_strike_before_or_after_the_write() {
    let lab = lab();
    let count = || lab.simulator.objects("dns_records", &lab.zone).len();
    let template = "/zones/{zone_id}/dns_records";

    lab.simulator.fault(Fault::on("POST", template, Effect::status(500)).times(1));
    assert_eq!(lab.send("POST", RECORDS, record("a")).await.0, 500);
    assert_eq!(count(), 0);
    lab.simulator.fault(Fault::on("POST", template, Effect::Reset).after_write().times(1));
    assert_eq!(lab.raw("t", "POST", RECORDS, record("a")).await.unwrap_err(), Dropped::Reset);
    assert_eq!(count(), 1);
    lab.simulator.fault(Fault::on("*", "dns_records$", Effect::Timeout).count(Count::Nth(2)));
    lab.ok("GET", RECORDS, json!(null)).await;
    assert_eq!(lab.raw("t", "GET", RECORDS, json!(null)).await.unwrap_err(), Dropped::Timeout);
    let slow = Effect::status(429);
    lab.simulator.fault(Fault::on("GET", template, slow).times(1).retry_after(Duration::from_secs(7)));
    let refused = lab.raw("t", "GET", RECORDS, json!(null)).await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    lab.simulator.fault(Fault::on("GET", template, Effect::status(502)).times(1));
    let gateway = lab.raw("t", "GET", RECORDS, json!(null)).await.unwrap();
    assert!(gateway.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    lab.simulator.take_requests();
    lab.simulator.fault(Fault::on("GET", template, Effect::Refused).times(1));
    assert_eq!(lab.raw("t", "GET", RECORDS, json!(null)).await.unwrap_err(), Dropped::Refused);
    assert!(lab.simulator.requests().is_empty(), "what never came is not recorded");
    lab.ok("GET", RECORDS, json!(null)).await;
}

#[tokio::test]
async fn requests_are_recorded_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let lab = lab_with(Options { record: Some(file.clone()), ..Options::default() });

    let secret = &"Y2FuYXJ5".repeat(6);
    let tunnel = lab.ok("POST", TUNNELS, json!({"name": "t", "tunnel_secret": secret})).await;
    let token = lab.ok("GET", &format!("{TUNNELS}/{}/token", tunnel["id"].as_str().unwrap()), json!(null)).await;
    lab.ok("GET", "/zones?name=example.com", json!(null)).await;

    let text = std::fs::read_to_string(&file).unwrap();
    for hidden in [secret, token.as_str().unwrap(), "Bearer"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["at_ms", "body", "credential", "method", "path", "query", "response", "status"]);
    assert_eq!((&lines[2]["path"], &lines[2]["query"]), (&json!("/client/v4/zones"), &json!({"name": "example.com"})));
    assert_eq!(lab.simulator.take_requests().len(), 3);
    assert!(lab.simulator.requests().is_empty());
}

#[tokio::test]
async fn zones_are_made_found_paused_and_deleted_with_their_records() {
    let lab = lab();
    let body = json!({"name": "Example.NET", "account": {"id": lab.account}, "type": "full"});

    let zone = lab.ok("POST", "/zones", body.clone()).await;
    assert_eq!(
        (&zone["name"], &zone["status"], &zone["plan"]["legacy_id"]),
        (&json!("example.net"), &json!("pending"), &json!("free"))
    );
    assert_eq!(lab.refused("POST", "/zones", body).await, (400, 1061));
    assert_eq!(lab.ok("GET", "/zones?name=example.net&account.id={account}", json!(null)).await[0]["id"], zone["id"]);
    assert_eq!(lab.refused("GET", "/zones?per_page=51", json!(null)).await, (400, 1003));
    let path = format!("/zones/{}", zone["id"].as_str().unwrap());
    assert_eq!(lab.ok("PATCH", &path, json!({"paused": true})).await["paused"], true);
    assert_eq!(lab.refused("PATCH", &path, json!({"name": "x.org"})).await, (400, 1004));
    lab.ok("POST", &format!("{path}/dns_records"), record("x")).await;
    assert_eq!(lab.ok("DELETE", &path, json!(null)).await, json!({"id": zone["id"]}));
    assert_eq!(lab.refused("GET", &format!("{path}/dns_records"), json!(null)).await, (404, 7003));
}

#[tokio::test]
async fn s12_a_zone_that_is_gone_is_answered_for_in_either_known_way() {
    for (hides_vanished_zones, itself, below) in [(false, (404, 1001), (404, 7003)), (true, (403, 9109), (403, 9109))] {
        let lab = lab_with(Options { hides_vanished_zones, ..Options::default() });
        lab.ok("DELETE", "/zones/{zone}", json!(null)).await;

        assert_eq!(lab.refused("GET", "/zones/{zone}", json!(null)).await, itself);
        assert_eq!(lab.refused("GET", "/zones/{zone}/dns_records", json!(null)).await, below);
        assert_eq!(lab.refused("GET", "/zones/nonsense/dns_records", json!(null)).await, (404, 7003));
    }
}

#[tokio::test]
async fn tunnels_keep_their_name_until_they_are_deleted() {
    let lab = lab();

    let tunnel = lab.ok("POST", TUNNELS, json!({"name": "t", "config_src": "cloudflare"})).await;
    let path = format!("{TUNNELS}/{}", tunnel["id"].as_str().unwrap());
    assert!(tunnel["credentials_file"]["TunnelSecret"].is_string());
    assert!(lab.ok("GET", &path, json!(null)).await.get("credentials_file").is_none());
    assert_eq!(lab.refused("POST", TUNNELS, json!({"name": "t"})).await, (409, 1013));
    assert_eq!(lab.refused("POST", TUNNELS, json!({"name": "u", "tunnel_secret": "c2hvcnQ="})).await, (400, 1004));
    assert_eq!(lab.ok("PATCH", &path, json!({"name": "renamed"})).await["name"], "renamed");
    lab.ok("DELETE", &path, json!(null)).await;
    assert!(lab.ok("GET", &path, json!(null)).await["deleted_at"].is_string());
    assert_eq!(lab.refused("DELETE", &path, json!(null)).await, (404, 1003));
    lab.ok("POST", TUNNELS, json!({"name": "renamed"})).await;
    assert_eq!(lab.ok("GET", &format!("{TUNNELS}?is_deleted=false"), json!(null)).await.as_array().unwrap().len(), 1);
    assert_eq!(lab.ok("GET", TUNNELS, json!(null)).await.as_array().unwrap().len(), 2);
    assert_eq!(lab.refused("GET", &format!("{TUNNELS}?is_deleted=no"), json!(null)).await, (400, 1003));
}

#[tokio::test]
async fn a_tunnel_in_use_is_deleted_only_with_all_that_uses_it() {
    let lab = lab();
    let tunnel = lab.ok("POST", TUNNELS, json!({"name": "t"})).await["id"].as_str().unwrap().to_owned();
    let path = format!("{TUNNELS}/{tunnel}");

    let client = lab.simulator.connect(&tunnel).unwrap();
    assert_eq!(lab.ok("GET", &format!("{path}/connections"), json!(null)).await[0]["id"], client);
    assert_eq!(lab.ok("GET", &path, json!(null)).await["status"], "healthy");
    assert_eq!(lab.refused("DELETE", &path, json!(null)).await, (400, 1022));
    lab.ok("DELETE", &format!("{path}/connections?client_id={client}"), json!(null)).await;
    assert_eq!(lab.ok("GET", &path, json!(null)).await["status"], "down");
    let route = lab.ok("POST", ROUTES, json!({"network": "10.0.0.0/8", "tunnel_id": tunnel})).await;
    assert_eq!(lab.refused("DELETE", &path, json!(null)).await, (400, 1023));
    lab.ok("DELETE", &format!("{path}?cascade=true"), json!(null)).await;
    let route = format!("{ROUTES}/{}", route["id"].as_str().unwrap());
    assert!(lab.ok("GET", &route, json!(null)).await["deleted_at"].is_string());
}

#[tokio::test]
async fn every_configuration_is_a_new_version() {
    let lab = lab();
    let tunnel = lab.ok("POST", TUNNELS, json!({"name": "t", "config_src": "cloudflare"})).await;
    let path = format!("{TUNNELS}/{}/configurations", tunnel["id"].as_str().unwrap());
    let config = json!({"ingress": [{"service": "http_status:404"}]});

    assert_eq!(lab.ok("GET", &path, json!(null)).await["version"], 0);
    lab.ok("PUT", &path, json!({"config": config})).await;
    lab.ok("PUT", &path, json!({"config": config})).await;
    let read = lab.ok("GET", &path, json!(null)).await;
    assert_eq!((&read["version"], &read["config"]), (&json!(2), &config));
    assert_eq!(lab.refused("PUT", &path, json!({"config": {"ingress": []}})).await, (400, 1056));
    assert_eq!(lab.refused("PUT", &path, config.clone()).await, (400, 1001));
    assert_eq!(lab.ok("GET", &path, json!(null)).await["version"], 2);
}

#[tokio::test]
async fn an_account_always_has_one_default_network() {
    let lab = lab();
    let defaults = async || lab.ok("GET", &format!("{NETWORKS}?is_default=true&is_deleted=false"), json!(null)).await;

    let first = defaults().await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.refused("DELETE", &format!("{NETWORKS}/{first}"), json!(null)).await, (400, 1019));
    let patch = json!({"is_default_network": false});
    assert_eq!(lab.refused("PATCH", &format!("{NETWORKS}/{first}"), patch).await, (400, 1018));
    let second = lab.ok("POST", NETWORKS, json!({"name": "second", "is_default": true})).await;
    assert_eq!(defaults().await, json!([second]));
    lab.ok("DELETE", &format!("{NETWORKS}/{first}"), json!(null)).await;
    assert_eq!(lab.refused("POST", NETWORKS, json!({"name": "second"})).await, (409, 1017));
    assert_eq!(lab.refused("POST", NETWORKS, json!({"name": "x", "virtual": 1})).await, (400, 1004));
}

#[tokio::test]
async fn a_network_has_one_route_in_each_virtual_network() {
    let lab = lab();
    let tunnel = lab.ok("POST", TUNNELS, json!({"name": "t"})).await["id"].clone();
    let other = lab.ok("POST", NETWORKS, json!({"name": "other"})).await["id"].clone();
    let route = |network: &str| json!({"network": network, "tunnel_id": tunnel});
    let mut in_other = route("10.0.0.0/16");
    in_other["virtual_network_id"] = other.clone();

    let made = lab.ok("POST", ROUTES, route("10.0.0.0/16")).await;
    assert!(made["virtual_network_id"].is_string());
    assert_eq!(lab.refused("POST", ROUTES, route("10.0.0.0/16")).await, (409, 1014));
    lab.ok("POST", ROUTES, in_other).await;
    assert_eq!(lab.ok("POST", ROUTES, route("2001:DB8::/32")).await["network"], "2001:db8::/32");
    assert_eq!(lab.refused("POST", ROUTES, route("10.0.0.1/16")).await, (400, 1004));
    assert_eq!(lab.refused("POST", ROUTES, route("10.0.0.0")).await, (400, 1004));
    let nowhere = json!({"network": "10.9.0.0/16", "tunnel_id": "00000000-0000-4000-a000-000000000000"});
    assert_eq!(lab.refused("POST", ROUTES, nowhere).await, (404, 1003));
    let listed = lab.ok("GET", &format!("{ROUTES}?is_deleted=false&network_subset=10.0.0.0/8"), json!(null)).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[0]["tunnel_name"], "t");
    let network = format!("{NETWORKS}/{}", other.as_str().unwrap());
    assert_eq!(lab.refused("DELETE", &network, json!(null)).await, (400, 1020));
}

#[tokio::test]
async fn routes_can_be_named_by_their_network_as_in_the_older_api() {
    let lab = lab();
    let tunnel = lab.ok("POST", TUNNELS, json!({"name": "t"})).await["id"].clone();
    let path = format!("{ROUTES}/network/10.1.0.0%2F16");

    lab.ok("POST", &path, json!({"tunnel_id": tunnel, "comment": "c"})).await;
    assert_eq!(lab.ok("PATCH", &path, json!({"comment": "d"})).await["comment"], "d");
    assert_eq!(lab.ok("GET", &format!("{ROUTES}/ip/10.1.2.3"), json!(null)).await["network"], "10.1.0.0/16");
    lab.ok("DELETE", &path, json!(null)).await;
    assert_eq!(lab.refused("DELETE", &path, json!(null)).await, (404, 1002));
    lab.ok("POST", &path, json!({"tunnel_id": tunnel})).await;
}

#[tokio::test]
async fn every_write_is_audited_also_those_of_others() {
    let lab = lab();
    lab.simulator.add_token("token", Grant::all().email("me@example.com"));
    let id = lab.ok("POST", RECORDS, record("mine")).await["id"].as_str().unwrap().to_owned();
    assert!(lab.simulator.edit("dns_records", &id, |record| record["content"] = json!("192.0.2.9")));
    lab.ok("GET", RECORDS, json!(null)).await;

    let path = "/accounts/{account}/audit_logs?zone.name=example.com";
    let entries = lab.ok("GET", path, json!(null)).await;

    let seen: Vec<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["actor"]["email"].as_str().unwrap(),
                entry["action"]["type"].as_str().unwrap(),
                &entry["resource"]["id"],
            )
        })
        .collect();
    let id = json!(id);
    assert_eq!(seen, [("somebody@example.com", "change", &id), ("me@example.com", "add", &id)]);
}

#[tokio::test]
async fn a_seed_says_what_is_there_at_the_start() {
    let simulator = Simulator::new(Options::default());
    let account = "a".repeat(32);
    let zone = "b".repeat(32);

    simulator
        .seed(json!({
            "accounts": [{"id": account, "name": "Seeded"}],
            "zones": [{"id": zone, "name": "example.com", "account": account, "plan": "pro", "records": [record("www")]}],
            "tokens": [{"token": "seeded", "permissions": {"dns": "edit"}}],
            "tunnels": [{"account": account, "name": "t"}],
        }))
        .unwrap();

    assert_eq!(simulator.objects("dns_records", &zone)[0]["name"], "www.example.com");
    assert_eq!(simulator.state()["cfd_tunnel"][&account][0]["name"], "t");
    assert!(simulator.seed(json!({"acounts": []})).unwrap_err().contains("acounts"));
    assert!(simulator.seed(json!({"zones": [{"id": "x", "name": "x.org", "account": "none"}]})).is_err());
}

#[tokio::test]
async fn objects_change_and_vanish_behind_the_apis_back() {
    let lab = lab();
    let id = lab.simulator.put("dns_records", &lab.zone, record("www")).unwrap();

    assert!(lab.simulator.edit("dns_records", &id, |record| record["name"] = json!("moved.example.com")));
    let found = lab.ok("GET", &format!("{RECORDS}?name=moved.example.com"), json!(null)).await;
    assert_eq!(found[0]["id"], json!(id));
    assert!(lab.simulator.remove("dns_records", &id));
    assert_eq!(lab.refused("GET", &format!("{RECORDS}/{id}"), json!(null)).await, (404, 81044));
    assert!(!lab.simulator.remove("dns_records", &id));
    assert!(lab.simulator.put("dns_records", &lab.zone, json!({"type": "A"})).is_err());
    lab.simulator.reset();
    assert_eq!(lab.simulator.state()["zones"], json!([]));
}

#[tokio::test]
async fn a_protected_name_comes_and_goes_without_a_trace() {
    let lab = lab();
    let access = "/accounts/{account}/access";
    let group = json!({"name": "admins", "include": [{"email_domain": {"domain": "example.com"}}]});
    let group = lab.simulator.put("access_groups", &lab.account, group).unwrap();
    let seeded = lab.simulator.state();
    let made = async |path: &str, body: Value| {
        let (status, answer) = lab.send("POST", path, body).await;
        assert_eq!(status, 201, "{path}: {answer}");
        answer["result"].clone()
    };

    let token = made(&format!("{access}/service_tokens"), json!({"name": "robot"})).await;
    let people = json!({"name": "people", "decision": "allow", "include": [{"group": {"id": group}}]});
    let robots = json!({"name": "robots", "decision": "non_identity", "include": [{"service_token": {"token_id": token["id"]}}]});
    let app = json!({"name": "app", "domain": "app.example.com", "type": "self_hosted", "policies": [people, robots]});
    let app = made(&format!("{access}/apps"), app).await;
    let alias = json!({"type": "CNAME", "name": "app", "content": "t.cfargotunnel.com", "ttl": 1, "proxied": true});
    let record = lab.ok("POST", RECORDS, alias).await;

    let id = |object: &Value| object["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.refused("DELETE", &format!("{access}/service_tokens/{}", id(&token)), json!(null)).await.1, 12139);
    lab.ok("DELETE", &format!("{RECORDS}/{}", id(&record)), json!(null)).await;
    assert_eq!(lab.send("DELETE", &format!("{access}/apps/{}", id(&app)), json!(null)).await.0, 202);
    lab.ok("DELETE", &format!("{access}/service_tokens/{}", id(&token)), json!(null)).await;
    assert_eq!(lab.simulator.state(), seeded);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_ids() {
    let ids = |seed| {
        let lab = lab_with(Options { seed, ..Options::default() });
        (lab.account, lab.zone)
    };

    assert_eq!(ids(1), ids(1));
    assert_ne!(ids(1), ids(2));
}

#[tokio::test]
async fn a_world_can_be_kept_and_taken_up_again() {
    let first = lab();
    first.ok("POST", RECORDS, record("www")).await;
    let tunnel = first.ok("POST", TUNNELS, json!({"name": "t", "config_src": "cloudflare"})).await;
    let token = format!("{TUNNELS}/{}/token", tunnel["id"].as_str().unwrap());
    let kept: Value = serde_json::from_str(&first.simulator.snapshot().to_string()).unwrap();

    let second =
        Lab { simulator: Simulator::new(Options::default()), account: first.account.clone(), zone: first.zone.clone() };
    second.simulator.restore(kept).unwrap();

    assert_eq!(second.simulator.state(), first.simulator.state());
    assert_eq!(second.ok("GET", &token, json!(null)).await, first.ok("GET", &token, json!(null)).await);
    let made = second.ok("POST", RECORDS, record("new")).await;
    assert!(first.simulator.object("dns_records", made["id"].as_str().unwrap()).is_none(), "ids go on elsewhere");
    assert_eq!(second.simulator.objects("dns_records", &second.zone).len(), 2);
    assert!(second.simulator.restore(json!({"objects": {"nonsense": {}}})).is_err());
    assert_eq!(second.simulator.objects("dns_records", &second.zone).len(), 2, "a bad snapshot changes nothing");
}

#[tokio::test]
async fn a_verbatim_simulator_gives_contents_back_as_they_were_sent() {
    let lab = lab_with(Options { verbatim: true, ..Options::default() });

    let text = lab.ok("POST", RECORDS, json!({"type": "TXT", "name": "x", "content": "v=spf1 -all", "ttl": 1})).await;
    assert_eq!(text["content"], "v=spf1 -all");
    let alias = json!({"type": "CNAME", "name": "y", "content": "Target.Example.NET.", "ttl": 1});
    assert_eq!(lab.ok("POST", RECORDS, alias).await["content"], "Target.Example.NET.");
    let wrong = json!({"type": "A", "name": "z", "content": "x", "ttl": 1});
    assert_eq!(lab.refused("POST", RECORDS, wrong).await, (400, 9005));
}
