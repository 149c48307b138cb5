use serde_json::{Value, json};

use super::*;
use crate::fixture::{OPERATOR, Shelf, TUNNEL, http_route, reason, tenant};

const OTHER_TUNNEL: &str = "22222222-2222-3333-4444-555555555555";

/// What becomes of a route of `sandbox` that uses a tenant elsewhere, which takes it.
fn abroad(spec: Value, annotations: &[(&str, &str)]) -> String {
    let mut spec = spec;
    spec["allowedNamespaces"] = json!(["sandbox"]);
    let shelf = Shelf { tenants: vec![tenant("shop/prod", spec)], ..Shelf::default() };
    let all = [&[("tenant", "shop/prod")], annotations].concat();
    judged(&shelf, &route_in("sandbox", &all))
}

/// What becomes of a route of the tenant's own namespace.
fn at_home(spec: Value, annotations: &[(&str, &str)]) -> String {
    judged(&Shelf::with_tenant(spec), &route_in("default", annotations))
}

fn route_in(namespace: &str, annotations: &[(&str, &str)]) -> RouteInput {
    let all = [&[("enabled", "true"), ("hostname", "app.example.com")], annotations].concat();
    let mut route = http_route(&all);
    route.metadata.namespace = Some(namespace.to_owned());
    RouteInput::read(&route)
}

/// The reason of a refusal, or the Services whose namespaces are asked.
fn judged(shelf: &Shelf, route: &RouteInput) -> String {
    judged_by(shelf, route, &Guard { operator_namespace: OPERATOR, ..Guard::default() })
}

fn judged_by(shelf: &Shelf, route: &RouteInput, guard: &Guard<'_>) -> String {
    let permitted = shelf.select(route).and_then(|selected| {
        let settings = crate::settings(route, &selected)?;
        permit(route, &route.hostname()?, &selected, &settings, guard)
    });
    match permitted {
        Err(problem) => problem.reason.to_owned(),
        Ok(references) if references.is_empty() => "fine".to_owned(),
        Ok(references) => {
            let shown = references.iter().map(|one| format!("{}{}", one.service, if one.certain { "" } else { "?" }));
            shown.collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn finding_12_a_tenant_serves_its_own_namespace_and_the_operators_serves_all() {
    let selects = |key: &str, spec: Value, namespace: &str| {
        let shelf = Shelf { tenants: vec![tenant(key, spec)], ..Shelf::default() };
        reason(shelf.select(&route_in(namespace, &[("tenant", key)])))
    };
    let operators = format!("{OPERATOR}/prod");

    assert_eq!(selects("shop/prod", json!({}), "shop"), "fine");
    assert_eq!(selects("shop/prod", json!({}), "sandbox"), "NamespaceNotAllowed");
    assert_eq!(selects("shop/prod", json!({ "allowedNamespaces": ["*"] }), "sandbox"), "fine");
    assert_eq!(selects("shop/prod", json!({ "allowedNamespaces": [] }), "shop"), "fine");
    assert_eq!(selects(&operators, json!({}), "sandbox"), "fine");
    assert_eq!(selects(&operators, json!({ "allowedNamespaces": [] }), "sandbox"), "NamespaceNotAllowed");
    assert_eq!(selects(&operators, json!({ "allowedNamespaces": ["apps"] }), "sandbox"), "NamespaceNotAllowed");
}

#[test]
fn finding_12_hostnames_are_those_that_the_tenant_lists() {
    let list = || json!({ "allowedHostnames": ["*.sandbox.example.com"] });

    assert_eq!(abroad(list(), &[]), "HostnameNotAllowed");
    assert_eq!(abroad(list(), &[("hostname", "a.b.sandbox.example.com")]), "fine");
    assert_eq!(abroad(list(), &[("hostname", "*.sandbox.example.com")]), "fine");
    assert_eq!(abroad(list(), &[("hostname", "*.example.com")]), "HostnameNotAllowed");
    assert_eq!(abroad(json!({ "allowedHostnames": [] }), &[]), "HostnameNotAllowed");
    assert_eq!(at_home(list(), &[]), "HostnameNotAllowed", "a list is for all");
    assert_eq!(at_home(json!({}), &[]), "fine");
}

#[test]
fn finding_12_tunnels_besides_the_tenants_are_for_its_own_namespace_unless_it_lists_them() {
    let other = [("tunnelId", OTHER_TUNNEL)];
    let own = [("tunnelId", TUNNEL)];

    assert_eq!(abroad(json!({}), &other), "TunnelNotAllowed");
    assert_eq!(abroad(json!({}), &own), "fine");
    assert_eq!(abroad(json!({ "allowedTunnels": [OTHER_TUNNEL] }), &other), "fine");
    assert_eq!(at_home(json!({}), &other), "fine");
    assert_eq!(at_home(json!({ "allowedTunnels": [] }), &other), "TunnelNotAllowed");
}

#[test]
fn finding_12_adoption_is_for_the_tenants_own_namespace_unless_it_says_otherwise() {
    let adopt = [("adopt", "true")];

    assert_eq!(abroad(json!({}), &adopt), "AdoptionNotAllowed");
    assert_eq!(abroad(json!({ "allowAdoption": true }), &adopt), "fine");
    assert_eq!(at_home(json!({}), &adopt), "fine");
    assert_eq!(at_home(json!({ "allowAdoption": false }), &adopt), "AdoptionNotAllowed");
}

#[test]
fn finding_12_a_tenant_can_demand_access_of_every_name() {
    let demands = || json!({ "requireAccess": true });

    assert_eq!(at_home(demands(), &[]), "AccessRequired");
    assert_eq!(at_home(demands(), &[("access.enabled", "false")]), "AccessRequired");
    assert_eq!(at_home(demands(), &[("access.enabled", "true")]), "fine");
    assert_eq!(at_home(json!({ "requireAccess": false }), &[]), "fine");
    let dns = [("dnsOnly.enabled", "true"), ("dnsIp", "203.0.113.9")];
    assert_eq!(at_home(demands(), &dns), "AccessRequired");
}

#[test]
fn finding_12_a_route_of_another_namespace_leads_to_its_own_services() {
    for (url, verdict) in [
        ("http://web.sandbox.svc:80", "fine"),
        ("http://web.sandbox.svc.cluster.local", "fine"),
        ("hello_world", "fine"),
        ("http_status:404", "fine"),
        ("http://admin.kube-system.svc", "kube-system/admin"),
        ("http://db.shop.svc", "shop/db"),
        ("http://admin.kube-system", "OriginNotAllowed"),
        ("http://web", "OriginNotAllowed"),
        ("http://localhost:8080", "OriginNotAllowed"),
        ("http://10.0.0.7", "OriginNotAllowed"),
        ("https://evil.example.net", "OriginNotAllowed"),
        ("http://web.sandbox.svc.evil.example.net", "OriginNotAllowed"),
        ("bastion", "OriginRefused"),
        ("unix:/var/run/docker.sock", "OriginRefused"),
        ("http://169.254.169.254", "OriginRefused"),
        ("http://[::ffff:a9fe:a9fe]", "OriginRefused"),
        ("https://kubernetes.default.svc", "OriginRefused"),
        ("http://:80", "OriginUnresolved"),
    ] {
        assert_eq!(abroad(json!({}), &[("origin.url", url)]), verdict, "{url}");
    }
    assert_eq!(abroad(json!({}), &[]), "fine", "its own backend");
}

#[test]
fn finding_12_at_home_machines_are_free_and_services_of_others_are_asked_for() {
    for (url, verdict) in [
        ("http://web:80", "fine"),
        ("http://10.0.0.7", "fine"),
        ("https://nas.home.example.net", "fine"),
        ("http://dashboard.kube-system.svc", "kube-system/dashboard"),
        ("http://dashboard.kube-system", "kube-system/dashboard?"),
        ("http://nas.lan", "lan/nas?"),
        ("socks-proxy", "OriginRefused"),
    ] {
        assert_eq!(at_home(json!({}), &[("origin.url", url)]), verdict, "{url}");
    }
}

#[test]
fn finding_12_a_list_of_origins_is_all_that_routes_may_say() {
    let list = || json!({ "allowedOrigins": ["http://gateway.infra.svc", "http://*.{{ namespace }}.svc", "bastion"] });

    assert_eq!(abroad(list(), &[("origin.url", "http://gateway.infra.svc:80")]), "fine");
    assert_eq!(abroad(list(), &[]), "fine", "its own backend is listed");
    assert_eq!(abroad(list(), &[("origin.url", "https://gateway.infra.svc")]), "OriginNotAllowed");
    assert_eq!(at_home(list(), &[("origin.url", "http://10.0.0.7")]), "OriginNotAllowed");
    assert_eq!(abroad(json!({ "allowedOrigins": [] }), &[]), "OriginNotAllowed");
    assert_eq!(abroad(list(), &[("origin.url", "bastion")]), "OriginRefused", "a tenant narrows and never widens");
}

#[test]
fn finding_12_only_the_operators_configuration_allows_what_protects_the_cluster() {
    let allow = ["bastion".to_owned(), "https://kubernetes.default.svc".to_owned()];
    let api = ["10.96.0.1".parse().unwrap()];
    let guard = Guard { operator_namespace: OPERATOR, allow_origins: &allow, api_server: &api };
    let shelf = |spec| Shelf::with_tenant(spec);
    let judge = |spec: Value, url: &str| judged_by(&shelf(spec), &route_in("default", &[("origin.url", url)]), &guard);

    assert_eq!(judge(json!({}), "bastion"), "fine");
    assert_eq!(judge(json!({ "allowedOrigins": ["http://web"] }), "bastion"), "OriginNotAllowed");
    assert_eq!(judge(json!({}), "socks-proxy"), "OriginRefused");
    assert_eq!(judge(json!({}), "tcp://10.96.0.1:443"), "OriginRefused");
    let defaults = json!({ "defaults": { "originService": "unix:/run/x" } });
    assert_eq!(judged_by(&shelf(defaults), &route_in("default", &[]), &guard), "OriginRefused", "whoever says it");
}

#[test]
fn finding_12_words_of_administrators_are_the_tenants_and_of_templates_beside_it() {
    let origin = |url: &str| json!({ "originService": { "url": url } });
    let shelf = |place: &str| {
        let tenants = vec![tenant("shop/prod", json!({ "allowedNamespaces": ["sandbox"] }))];
        Shelf { tenants, ..Shelf::default() }.and_template(place, origin("http://gateway.infra.svc"))
    };
    let named = [("tenant", "shop/prod"), ("template", "web")];

    assert_eq!(judged(&shelf("shop/web"), &route_in("sandbox", &named)), "fine");
    assert_eq!(judged(&shelf(&format!("{OPERATOR}/web")), &route_in("sandbox", &named)), "fine");
    assert_eq!(judged(&shelf("sandbox/web"), &route_in("sandbox", &named)), "infra/gateway");
    assert_eq!(judged(&shelf("sandbox/base-prod"), &route_in("sandbox", &named[..1])), "infra/gateway");
    let defaults = json!({ "defaults": { "originService": "http://gateway.infra.svc" } });
    assert_eq!(abroad(defaults, &[]), "fine");
}

#[test]
fn finding_12_a_backend_of_another_namespace_is_asked_for_there() {
    let to = |namespace: &str, backend: Value| {
        let mut route = http_route(&[("enabled", "true"), ("hostname", "app.example.com"), ("tenant", "default/prod")]);
        route.metadata.namespace = Some(namespace.to_owned());
        route.spec.rules[0].backend_refs = vec![serde_json::from_value(backend).unwrap()];
        RouteInput::read(&route)
    };
    let shelf = Shelf::with_tenant(json!({ "allowedNamespaces": ["sandbox"] }));
    let other = json!({ "name": "db", "namespace": "shop", "port": 80 });

    assert_eq!(judged(&shelf, &to("sandbox", other.clone())), "shop/db");
    assert_eq!(judged(&shelf, &to("default", other.clone())), "shop/db");
    assert_eq!(judged(&shelf, &to("sandbox", json!({ "name": "web", "port": 80 }))), "fine");
    let api = json!({ "name": "kubernetes", "namespace": "default", "port": 443 });
    assert_eq!(judged(&shelf, &to("sandbox", api)), "OriginRefused");
    let listing = json!({ "allowedNamespaces": ["sandbox"], "allowedOrigins": ["http://*.shop.svc"] });
    assert_eq!(judged(&Shelf::with_tenant(listing), &to("sandbox", other)), "shop/db", "a list is no grant");
}

#[test]
fn finding_12_addresses_of_names_without_a_tunnel_are_asked_for_like_origins() {
    let ip = [("dnsOnly.enabled", "true"), ("dnsIp", "203.0.113.9")];
    assert_eq!(at_home(json!({}), &ip), "fine");
    assert_eq!(abroad(json!({}), &ip), "OriginNotAllowed");
    assert_eq!(abroad(json!({ "allowedOrigins": ["dns://203.0.113.9"] }), &ip), "fine");

    let service =
        json!({ "dnsOnly": { "enabled": true, "ingressServiceRef": { "name": "lb", "namespace": "infra" } } });
    let shelf = |place: &str| {
        let tenants = vec![tenant("shop/prod", json!({ "allowedNamespaces": ["sandbox"] }))];
        Shelf { tenants, ..Shelf::default() }.and_template(place, service.clone())
    };
    let route = route_in("sandbox", &[("tenant", "shop/prod"), ("template", "lan")]);
    assert_eq!(judged(&shelf("sandbox/lan"), &route), "infra/lb");
    assert_eq!(judged(&shelf("shop/lan"), &route), "fine");
}

#[test]
fn finding_12_a_gateway_is_called_by_the_routes_own_name() {
    let gateway = || json!({ "defaults": { "originService": "https://gateway.infra.svc" } });

    assert_eq!(abroad(gateway(), &[("origin.httpHostHeader", "grafana.internal")]), "OriginNotAllowed");
    assert_eq!(abroad(gateway(), &[("origin.originServerName", "grafana.internal")]), "OriginNotAllowed");
    assert_eq!(abroad(gateway(), &[("origin.httpHostHeader", "{{ hostname }}")]), "fine");
    assert_eq!(abroad(json!({}), &[("origin.httpHostHeader", "grafana.internal")]), "fine", "to its own Service");
    assert_eq!(at_home(gateway(), &[("origin.httpHostHeader", "grafana.internal")]), "fine");
    let named = json!({ "defaults": { "originService": "https://gateway.infra.svc", "httpHostHeader": "edge" } });
    assert_eq!(abroad(named, &[]), "fine", "the tenant's word");
}
