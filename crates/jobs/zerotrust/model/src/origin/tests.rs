use serde_json::json;

use super::*;
use crate::fixture::{Shelf, http_route, reason, route};
use crate::gateway::HttpRouteRule;

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn resolved(annotations: &[(&str, &str)]) -> Result<String, Problem> {
    let route = route(annotations);
    let settings = Shelf::with_tenant(json!({})).settings(&route)?;
    resolve(&route, &settings, &name("app.example.com"))
}

#[test]
fn scenario_13_without_an_origin_the_first_backend_is_taken_with_its_namespace() {
    let with = |backend: serde_json::Value| {
        let mut object = http_route(&[]);
        object.spec.rules[0].backend_refs = vec![serde_json::from_value(backend).unwrap()];
        derive(&RouteInput::read(&object))
    };

    assert_eq!(with(json!({ "name": "web", "port": 80 })).unwrap(), "http://web.default.svc.cluster.local:80");
    let shop = json!({ "name": "web", "namespace": "shop", "port": 443, "kind": "Service", "group": "" });
    assert_eq!(with(shop).unwrap(), "http://web.shop.svc.cluster.local:443");
    assert_eq!(reason(with(json!({ "name": "web" }))), "OriginUnresolved");
    assert_eq!(reason(with(json!({ "name": "b", "port": 1, "kind": "Bucket" }))), "OriginUnresolved");
}

#[test]
fn scenario_13_a_route_without_a_backend_has_no_origin() {
    let mut object = http_route(&[]);
    object.spec.rules = vec![HttpRouteRule::default()];

    let problem = derive(&RouteInput::read(&object)).unwrap_err();

    assert_eq!(problem.reason, "OriginUnresolved");
    assert!(problem.message.contains("origin.url"));
}

#[test]
fn scenario_12_the_hostname_takes_the_place_of_its_braces() {
    let host = name("app.example.com");

    assert_eq!(substitute("{{ hostname }}", &host), "app.example.com");
    assert_eq!(
        substitute("https://{{hostname}}:443/{{  hostname}}", &host),
        "https://app.example.com:443/app.example.com"
    );
    assert_eq!(substitute("{{ name }} {{", &host), "{{ name }} {{");
    assert_eq!(resolved(&[("origin.url", "https://{{ hostname }}.svc")]).unwrap(), "https://app.example.com.svc");
}

#[test]
fn what_is_no_origin_is_refused() {
    for url in ["web:80", "ftp://web", "http://", "http://a b", "nothing"] {
        assert_eq!(reason(resolved(&[("origin.url", url)])), "OriginUnresolved", "{url}");
    }
    for url in ["http://web", "https://web:443", "tcp://db:5432", "unix:/run/x.sock", "http_status:404", "hello_world"]
    {
        assert_eq!(resolved(&[("origin.url", url)]).unwrap(), url);
    }
}

fn asked(service: &str, hostname: &str, header: Option<&str>, tls: serde_json::Value) -> serde_json::Value {
    let tls = serde_json::from_value(tls).unwrap();
    let host_header = header.map(str::to_owned);
    request(&OriginRequest { service, hostname: &name(hostname), host_header, tls: &tls }).into()
}

#[test]
fn bug_18_an_https_origin_gets_whole_seconds_and_its_host() {
    let full = json!({ "noTLSVerify": true, "originServerName": "internal", "caPool": "/ca.pem", "tlsTimeout": 15,
        "http2Origin": true, "matchSNIToHost": true });

    assert_eq!(
        asked("https://web:443", "app.example.com", None, json!({})),
        json!({ "httpHostHeader": "app.example.com", "noTLSVerify": false, "tlsTimeout": 10, "http2Origin": false,
            "keepAliveConnections": 100 })
    );
    assert_eq!(
        asked("https://web:443", "app.example.com", Some("other"), full),
        json!({ "httpHostHeader": "other", "noTLSVerify": true, "originServerName": "internal", "caPool": "/ca.pem",
            "tlsTimeout": 15, "http2Origin": true, "keepAliveConnections": 100, "matchSNItoHost": true })
    );
}

#[test]
fn ux_h7_a_route_of_several_backends_leads_nowhere_unless_somebody_says_where() {
    let mut object = http_route(&[("enabled", "true"), ("hostname", "app.example.com")]);
    let admin =
        json!({ "backendRefs": [{ "name": "admin", "port": 9000 }], "matches": [{ "path": { "value": "/admin" } }] });
    object.spec.rules.insert(0, serde_json::from_value::<HttpRouteRule>(admin).unwrap());
    let route = RouteInput::read(&object);
    let problem = derive(&route).unwrap_err();
    let gateway = Shelf::with_tenant(json!({ "defaults": { "originService": "http://traefik.traefik.svc:80" } }));

    assert_eq!(problem.reason, "RouteTooComplex");
    assert!(problem.message.contains("several backends") && problem.message.contains("defaults.originService"));
    let settings = gateway.settings(&route).unwrap();
    assert_eq!(resolve(&route, &settings, &name("app.example.com")).unwrap(), "http://traefik.traefik.svc:80");
}

#[test]
fn an_http_origin_gets_nothing_unless_a_host_was_asked_for() {
    assert_eq!(asked("http://web:80", "app.example.com", None, json!({ "noTLSVerify": true })), json!({}));
    let header = asked("http://web:80", "app.example.com", Some("web"), json!({}));
    assert_eq!(header, json!({ "httpHostHeader": "web" }));
}

#[test]
fn a_wildcard_is_nobodys_host() {
    let wildcard = asked("https://web:443", "*.example.com", None, json!({}));

    assert_eq!(wildcard.get("httpHostHeader"), None);
    assert_eq!(wildcard.get("originServerName"), None);
    assert_eq!(name_of("{{ hostname }}", &name("*.example.com")), None);
    assert_eq!(name_of("internal", &name("*.example.com")).as_deref(), Some("internal"));
    assert!(!is_origin(&substitute("http://{{ hostname }}:80", &name("*.example.com"))));
}
