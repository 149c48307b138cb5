//! Routes, tenants and templates for tests.

use std::sync::Arc;

use portolan_core::{ObjectKey, Problem};
use portolan_publication::{Footprint, Part};
use serde_json::{Value, from_value, json};

use crate::gateway::HttpRoute;
use crate::select::{Catalogue, Selected, Sought, select};
use crate::settings::{Settings, settings};
use crate::template::CloudflareZeroTrustTemplate as Template;
use crate::tenant::CloudflareZeroTrustTenant as Tenant;
use crate::{RouteInput, WantedRoute, desired};

pub(crate) const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const ZONE: &str = "fedcba9876543210fedcba9876543210";
pub(crate) const OPERATOR: &str = "cloudflare-zero-trust";

/// A route `default/app` with these annotations and a backend.
pub(crate) fn http_route(annotations: &[(&str, &str)]) -> HttpRoute {
    let annotations: Value = annotations.iter().map(|(name, value)| (crate::annotations::name(name), *value)).collect();
    from_value(json!({
        "metadata": {
            "namespace": "default", "name": "app", "uid": "u1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations,
        },
        "spec": { "rules": [{ "backendRefs": [{ "name": "web", "port": 8080 }] }] },
    }))
    .unwrap()
}

/// What such a route asks for; enabled and named.
pub(crate) fn route(annotations: &[(&str, &str)]) -> RouteInput {
    let all = [&[("enabled", "true"), ("hostname", "app.example.com")], annotations].concat();
    RouteInput::read(&http_route(&all))
}

pub(crate) fn tenant(key: &str, spec: Value) -> Arc<Tenant> {
    let mut all = json!({ "accountId": ACCOUNT, "tunnelId": TUNNEL, "credentialRef": { "name": "token" } });
    merge(&mut all, spec);
    Arc::new(from_value(object("CloudflareZeroTrustTenant", key, all)).unwrap())
}

pub(crate) fn template(key: &str, spec: Value) -> Arc<Template> {
    Arc::new(from_value(object("CloudflareZeroTrustTemplate", key, spec)).unwrap())
}

fn object(kind: &str, key: &str, spec: Value) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    let metadata = json!({ "namespace": namespace, "name": name });
    json!({ "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec })
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// Some tenants and templates.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) tenants: Vec<Arc<Tenant>>,
    pub(crate) templates: Vec<Arc<Template>>,
    /// Templates that nobody can read.
    pub(crate) broken: Vec<String>,
}

impl Shelf {
    /// With the tenant `default/prod`.
    pub(crate) fn with_tenant(spec: Value) -> Self {
        Self { tenants: vec![tenant("default/prod", spec)], ..Self::default() }
    }

    pub(crate) fn and_template(mut self, key: &str, spec: Value) -> Self {
        self.templates.push(template(key, spec));
        self
    }

    pub(crate) fn and_tenant(mut self, key: &str, spec: Value) -> Self {
        self.tenants.push(tenant(key, spec));
        self
    }

    pub(crate) fn select(&self, route: &RouteInput) -> Result<Selected, Problem> {
        select(route, self, OPERATOR)
    }

    pub(crate) fn settings(&self, route: &RouteInput) -> Result<Settings, Problem> {
        settings(route, &self.select(route)?)
    }

    /// What the route asks for, in a zone, with the address that was given.
    pub(crate) fn wanted(&self, route: &RouteInput) -> Result<WantedRoute, Problem> {
        self.wanted_in(route, Some(ZONE))
    }

    pub(crate) fn wanted_in(&self, route: &RouteInput, zone: Option<&str>) -> Result<WantedRoute, Problem> {
        let selected = self.select(route)?;
        let settings = settings(route, &selected)?;
        let target = match settings.target()? {
            crate::AddressSource::Static(ip) => Some(ip),
            crate::AddressSource::Service(_) => Some([10, 0, 0, 9].into()),
            crate::AddressSource::None => None,
        };
        desired(route, &selected, &settings, zone, target)
    }
}

impl Catalogue for Shelf {
    fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.tenants.clone()
    }

    fn tenant(&self, key: &ObjectKey) -> Option<Arc<Tenant>> {
        self.tenants.iter().find(|tenant| tenant.key() == *key).cloned()
    }

    fn template(&self, key: &ObjectKey) -> Sought {
        if self.broken.contains(&key.to_string()) {
            return Sought::Unknown("it does not fit its definition");
        }
        self.templates.iter().find(|template| template.key() == *key).cloned().into()
    }
}

/// The reason of a failure, or `fine`.
pub(crate) fn reason<T>(result: Result<T, Problem>) -> &'static str {
    result.map_or_else(|problem| problem.reason, |_| "fine")
}

/// A footprint in which every field says something. A new field has to be added here, and must then survive.
pub(crate) fn footprint() -> Footprint {
    let text = |text: &str| Some(text.to_owned());
    from_value(json!({ "former": [{ "hostname": "old.example.com", "tunnelId": "t0", "adopted": true }] }))
        .map(|former: Footprint| Footprint {
            account_id: text("a1"),
            hostname: text("app.example.com"),
            tunnel_id: text("t1"),
            zone_id: text("z1"),
            has_rule: true,
            cname_record_id: text("r1"),
            dns_record_id: text("r2"),
            dns_record_ip: text("10.0.0.7"),
            access_app_id: text("app1"),
            access_policy_ids: vec!["p1".to_owned(), "p2".to_owned()],
            reusable_policy_ids: vec!["p2".to_owned()],
            service_token_id: text("s1"),
            service_token_client_id: text("c1.access"),
            service_token_rotation: text("2026"),
            redirect_rule_id: text("rr1"),
            redirect_ruleset_id: text("rs1"),
            redirect_refusal: text("d1 2026-11-16T05:00:00Z no more rules"),
            app_hostname: text("older.example.com"),
            adopted: [Part::Record, Part::App].into(),
            former: former.former,
        })
        .unwrap()
}
