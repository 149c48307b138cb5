//! The life of the worked examples at an installed operator: published, changed and taken down, from the files that users
//! read. What must come out is written down in the specification's examples.

use std::collections::BTreeSet;

use base64::Engine as _;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::site::{NAMESPACE, Site};

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
const ORIGIN: &str = "http://traefik.traefik.svc:80";
const PREFIX: &str = "cfzt.cloudflare.com/";
/// Routes through the tunnel: folder of the example, route, hostname.
const TUNNELLED: [(&str, &str, &str); 4] = [
    ("plain", "simple-app", "simple.example.com"),
    ("emails", "admin-panel", "admin.example.com"),
    ("group-and-token", "api-service", "api.example.com"),
    ("update-in-place", "app", "app.example.com"),
];
/// Routes that are an address alone: folder of the example, route, hostname, address.
const ADDRESSED: [(&str, &str, &str, &str); 2] = [
    ("dns-only-static", "printer", "printer.example.com", "10.0.0.53"),
    ("dns-only-loadbalancer", "game", "game.example.com", "203.0.113.10"),
];
const TOKEN_SECRET: &str = "api-service-cfzt-service-token";

/// Publishes, changes and takes down all of them.
pub fn live(site: &mut Site) {
    publish(site);
    assert_tunnelled(site);
    assert_addressed(site);
    assert_protected(site);
    update_in_place(site);
    take_down(site);
}

fn publish(site: &mut Site) {
    site.apply_examples(&["tenant.yaml"]);
    site.apply_examples(&TUNNELLED.map(|(folder, ..)| folder));
    site.apply_examples(&ADDRESSED.map(|(folder, ..)| folder));
    give_address(site);
    let routes: Vec<&str> = TUNNELLED.iter().map(|one| one.1).chain(ADDRESSED.iter().map(|one| one.1)).collect();
    site.eventually("all routes are published", |site| {
        let done = |route: &&str| outputs(site, route).contains("lastReconcile");
        (routes.iter().all(done) && tasks(site) == 0).then_some(())
    });
    site.eventually("the tenant says so", |site| {
        let tenant = site.cluster.get("cloudflarezerotrusttenant", "default", "prod")?;
        let ready = tenant["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready")?.clone();
        (ready["reason"] == "ReconcileSuccess" && tenant["status"]["summary"]["managedHTTPRoutes"] == 6).then_some(())
    });
}

/// A load balancer's controller gives the Service its address.
fn give_address(site: &Site) {
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESSED[1].3}]}}});
    let services: Api<Service> = Api::namespaced(site.cluster.admin().clone(), "default");
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(&status));
    site.cluster.wait(services.patch_status("traefik", &parameters, &patch)).expect("the address is given");
}

fn route(site: &Site, name: &str) -> Option<Value> {
    site.cluster.get("httproute", "default", name)
}

fn tasks(site: &Site) -> usize {
    site.cluster.list("cloudflaretasks", NAMESPACE).len()
}

fn output(site: &Site, name: &str, suffix: &str) -> Option<String> {
    let annotations = route(site, name)?["metadata"]["annotations"].clone();
    annotations[format!("{PREFIX}{suffix}")].as_str().map(str::to_owned)
}

/// The outputs that a route carries: everything that the examples' files do not say.
fn outputs(site: &Site, name: &str) -> BTreeSet<String> {
    const INPUTS: [&str; 9] = [
        "enabled",
        "hostname",
        "accessApp",
        "allowEmails",
        "allowGroups",
        "sessionDuration",
        "serviceToken",
        "template",
        "tenant",
    ];
    let annotations = route(site, name).map(|route| route["metadata"]["annotations"].clone()).unwrap_or_default();
    let names = annotations.as_object().into_iter().flat_map(serde_json::Map::keys);
    let suffixes = names.filter_map(|name| name.strip_prefix(PREFIX)).filter(|suffix| !INPUTS.contains(suffix));
    suffixes.map(str::to_owned).collect()
}

fn objects(state: &Value, collection: &str) -> Vec<Value> {
    let scopes = state[collection].as_object().cloned().unwrap_or_default();
    scopes.values().filter_map(Value::as_array).flatten().cloned().collect()
}

fn record(state: &Value, hostname: &str) -> Value {
    let mut records = objects(state, "dns_records");
    records.retain(|record| record["name"] == hostname);
    assert_eq!(records.len(), 1, "{hostname}: {records:?}");
    records.remove(0)
}

fn rules(state: &Value) -> Vec<Value> {
    state["configurations"][TUNNEL]["config"]["ingress"].as_array().cloned().unwrap_or_default()
}

/// The rule of a name: where an application guards it, the tunnel asks for its token, too.
fn rule(state: &Value, hostname: &str) -> Value {
    let apps = state["access_apps"][ACCOUNT].as_array().into_iter().flatten();
    let audience = apps.into_iter().find(|app| app["domain"] == hostname).map(|app| app["aud"].clone());
    let mut rule = json!({"hostname": hostname, "service": ORIGIN});
    if let Some(audience) = audience {
        rule["originRequest"] = json!({"access": {"required": true, "teamName": "example", "audTag": [audience]}});
    }
    rule
}

fn app(state: &Value, hostname: &str) -> Value {
    let apps = state["access_apps"][ACCOUNT].as_array().cloned().unwrap_or_default();
    let mut apps: Vec<Value> = apps.into_iter().filter(|app| app["domain"] == hostname).collect();
    assert_eq!(apps.len(), 1, "{hostname}: {apps:?}");
    apps.remove(0)
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Rule, record, outputs and state of every route through the tunnel.
fn assert_tunnelled(site: &Site) {
    let state = site.state();
    for (_, route, hostname) in TUNNELLED {
        let rules = rules(&state);
        let place = rules.iter().position(|rule| rule["hostname"] == hostname).expect("there is a rule");
        assert_eq!(rules[place], rule(&state, hostname));
        assert!(place + 1 < rules.len(), "before the catch-all");
        let record = record(&state, hostname);
        assert_eq!((&record["type"], &record["proxied"], &record["ttl"]), (&json!("CNAME"), &json!(true), &json!(1)));
        assert_eq!(record["content"], format!("{TUNNEL}.cfargotunnel.com"));
        assert_eq!(output(site, route, "hostnameRouteId").as_deref(), Some(TUNNEL));
        assert_eq!(output(site, route, "cnameRecordId").as_deref(), record["id"].as_str());
        assert_state(site, route);
    }
    assert_eq!(outputs(site, "simple-app"), set(&["hostnameRouteId", "cnameRecordId", "lastReconcile"]));
}

fn assert_state(site: &Site, route: &str) {
    let name = format!("cfzt-default-{route}");
    let map = site.cluster.get("configmap", NAMESPACE, &name).unwrap_or_else(|| panic!("no state of {route}"));
    for key in ["annotation_hash", "cloudflare_ids", "last_sync_time"] {
        assert!(map["data"][key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {map:#}");
    }
    let identity = (&map["data"]["httproute_namespace"], &map["data"]["httproute_name"]);
    assert_eq!(identity, (&json!("default"), &json!(route)));
}

fn assert_addressed(site: &Site) {
    let state = site.state();
    for (_, route, hostname, address) in ADDRESSED {
        let record = record(&state, hostname);
        assert_eq!((&record["type"], &record["content"]), (&json!("A"), &json!(address)));
        assert_eq!(output(site, route, "dnsRecordId").as_deref(), record["id"].as_str());
        assert_eq!(output(site, route, "dnsRecordIp").as_deref(), Some(address));
        assert_state(site, route);
    }
}

/// Applications, policies and the token, and what visitors are answered.
fn assert_protected(site: &mut Site) {
    let state = site.state();
    let admin = app(&state, "admin.example.com");
    assert_eq!((&admin["name"], &admin["session_duration"]), (&json!("admin-panel"), &json!("8h")));
    let emails = json!([{"email": {"email": "admin@example.com"}}, {"email": {"email": "manager@example.com"}}]);
    assert_eq!(admin["policies"][0]["include"], emails);
    assert_eq!(output(site, "admin-panel", "accessAppId").as_deref(), admin["id"].as_str());

    let (api, tokens) = (app(&state, "api.example.com"), objects(&state, "service_tokens"));
    assert_eq!((tokens.len(), &tokens[0]["name"]), (1, &json!("api-service-service-token")));
    let decisions: BTreeSet<&str> =
        api["policies"].as_array().into_iter().flatten().filter_map(|policy| policy["decision"].as_str()).collect();
    assert_eq!(decisions, BTreeSet::from(["allow", "non_identity"]));
    let wanted = ["hostnameRouteId", "cnameRecordId", "lastReconcile", "accessAppId", "accessPolicyIds"];
    let wanted: Vec<&str> = wanted.into_iter().chain(["serviceTokenId", "serviceTokenSecretName"]).collect();
    assert_eq!(outputs(site, "api-service"), set(&wanted));

    let (id, secret) = (credential(site, "client_id"), credential(site, "client_secret"));
    let token = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", secret.as_str())];
    site.eventually("the token opens the name", |site| site.answers("api.example.com", &token, 200).then_some(()));
    assert!(site.answers("api.example.com", &[], 302), "others are sent to the login");
    assert!(site.answers("simple.example.com", &[], 200), "what asks for no protection is open");
}

fn credential(site: &Site, key: &str) -> String {
    let secret = site.cluster.get("secret", "default", TOKEN_SECRET).expect("the Secret is there");
    let text = secret["data"][key].as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    String::from_utf8(bytes).expect("text")
}

fn update_in_place(site: &mut Site) {
    let (before, writes) = (app(&site.state(), "app.example.com"), site.writes().len());
    site.apply_examples(&["update-in-place/after"]);
    let after = site.eventually("both addresses are in the policy", |site| {
        let app = app(&site.state(), "app.example.com");
        (app["policies"][0]["include"].as_array()?.len() == 2 && tasks(site) == 0).then_some(app)
    });
    assert_eq!((&after["id"], &after["policies"][0]["id"]), (&before["id"], &before["policies"][0]["id"]));
    let written = site.writes().split_off(writes);
    assert!(written.len() == 1 && written[0].contains("/access/apps"), "one write: {written:?}");
}

fn take_down(site: &mut Site) {
    for route in TUNNELLED.iter().map(|one| one.1).chain(ADDRESSED.iter().map(|one| one.1)) {
        site.cluster.run(&["delete", "httproute", route, "-n", "default"]).succeeded();
    }
    site.eventually("nothing is left", |site| is_empty(site).then_some(()));
    site.cluster.run(&["delete", "cloudflarezerotrusttenant", "prod", "-n", "default"]).succeeded();
    site.eventually("the tenant is gone", |site| {
        site.cluster.get("cloudflarezerotrusttenant", "default", "prod").is_none().then_some(())
    });
}

/// Whether routes, states, tasks, Secrets and everything at Cloudflare are gone.
fn is_empty(site: &Site) -> bool {
    let state = site.state();
    let remote = ["dns_records", "access_apps", "service_tokens"].map(|collection| objects(&state, collection).len());
    let rules = rules(&state).iter().filter(|rule| rule["hostname"].is_string()).count();
    let is_state = |map: &Value| map["data"]["httproute_name"].is_string();
    remote.iter().sum::<usize>() + rules == 0
        && site.cluster.list("httproutes", "default").is_empty()
        && tasks(site) == 0
        && !site.cluster.list("configmaps", NAMESPACE).iter().any(is_state)
        && site.cluster.get("secret", "default", TOKEN_SECRET).is_none()
}
