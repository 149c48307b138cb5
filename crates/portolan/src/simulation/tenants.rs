//! Tenants and annotated routes → what they take for granted at Cloudflare. Pure.
//!
//! A tenant names its account, its tunnel and the Secret with its token; its zones are those of the names that routes
//! ask for. Access groups and policies are not made: a misspelt one must be told, here as there.

use std::collections::BTreeMap;

use portolan_zerotrust::model;
use serde_json::Value;

use super::wanted::{SecretUse, WantedAtCloudflare, WantedTunnel, WantedZone, kind, name, namespace, text};

/// The group of the zerotrust job's kinds.
const GROUP: &str = "cfzt.cloudflare.com";
const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// Whether an object is a tenant.
fn is_tenant(object: &Value) -> bool {
    group(object) == GROUP && kind(object) == "CloudflareZeroTrustTenant"
}

/// Whether an object is a route that asks to be published.
pub(super) fn is_published_route(object: &Value) -> bool {
    let asks = |object: &Value| !annotation(object, "hostname").is_empty() && !annotation(object, "enabled").is_empty();
    group(object) == GATEWAY_GROUP && kind(object) == "HTTPRoute" && asks(object)
}

fn group(object: &Value) -> &str {
    text(object, "apiVersion").split('/').next().unwrap_or_default()
}

fn annotation<'a>(object: &'a Value, suffix: &str) -> &'a str {
    object["metadata"]["annotations"][format!("{GROUP}/{suffix}")].as_str().unwrap_or_default().trim()
}

/// The Secret with a tenant's token.
pub(super) fn secret_use(object: &Value) -> Option<SecretUse> {
    let reference = &object["spec"]["credentialRef"];
    (is_tenant(object) && !text(reference, "name").is_empty()).then(|| {
        let key = match text(reference, "key") {
            "" => "token",
            key => key,
        };
        SecretUse::token(namespace(object), text(reference, "name"), key)
    })
}

/// Adds everything that tenants and routes name.
pub(super) fn add(wanted: &mut WantedAtCloudflare, objects: &[Value]) {
    let tenants: Vec<&Value> = objects.iter().filter(|object| is_tenant(object)).collect();
    for tenant in &tenants {
        let account = text(&tenant["spec"], "accountId");
        wanted.accounts.entry(account.to_owned()).or_default();
        add_tunnel(wanted, account, text(&tenant["spec"], "tunnelId"));
    }
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for route in objects.iter().filter(|object| is_published_route(object)) {
        let Some(tenant) = tenant_of(route, &tenants, objects) else { continue };
        let account = text(&tenant["spec"], "accountId");
        add_tunnel(wanted, account, annotation(route, "tunnelId"));
        // A name that is not valid is told on the route; there is nothing to make for it.
        let Ok(hostname) = model::hostname(annotation(route, "hostname")) else { continue };
        let zone = zone_name(hostname.as_str());
        // A tenant's zone id is that of the first zone its routes are in.
        let id = text(&tenant["spec"], "zoneId");
        let is_first = !id.is_empty() && *named.entry(id).or_insert_with(|| zone.clone()) == zone;
        let id = is_first.then(|| id.to_owned());
        let entry = wanted.zones.entry(zone).or_insert(WantedZone { id: None, account: account.to_owned() });
        entry.id = entry.id.take().or(id);
    }
}

fn add_tunnel(wanted: &mut WantedAtCloudflare, account: &str, id: &str) {
    if !id.is_empty() {
        let name = format!("tunnel-{}", id.split('-').next().unwrap_or(id));
        wanted.tunnels.insert(WantedTunnel { account: account.to_owned(), id: Some(id.to_owned()), name });
    }
}

/// The tenant that a route or its template names, else one of its namespace, else any.
fn tenant_of<'a>(route: &Value, tenants: &[&'a Value], objects: &[Value]) -> Option<&'a Value> {
    let named = match annotation(route, "tenant") {
        "" => hint(route, objects)?,
        named => named,
    };
    let (place, wanted) = named.split_once('/').unwrap_or((namespace(route), named));
    let fits = |tenant: &Value| wanted.is_empty() || name(tenant) == wanted;
    let near = tenants.iter().find(|tenant| namespace(tenant) == place && fits(tenant));
    near.or_else(|| tenants.iter().find(|tenant| fits(tenant))).copied()
}

/// The tenant that the template of a route names, or an empty text. None while the template that the route names is not
/// there: until then nothing is published.
fn hint<'a>(route: &Value, objects: &'a [Value]) -> Option<&'a str> {
    let (wanted, named) = match annotation(route, "template") {
        "" => (model::DEFAULT_TEMPLATE, false),
        wanted => (wanted, wanted != model::NO_TEMPLATE),
    };
    let is_one = |object: &&Value| group(object) == GROUP && kind(object) == "CloudflareZeroTrustTemplate";
    let mut templates = objects.iter().filter(is_one).filter(|template| name(template) == wanted);
    let near = templates.clone().find(|template| namespace(template) == namespace(route));
    match near.or_else(|| templates.next()) {
        Some(template) => Some(text(&template["spec"], "tenantRef").trim()),
        None => (!named).then_some(""),
    }
}

/// The last two labels of a name: the zone it is most likely in.
fn zone_name(hostname: &str) -> String {
    let start = hostname.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    hostname[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    const TENANT: &str = "apiVersion: cfzt.cloudflare.com/v1alpha1\nkind: CloudflareZeroTrustTenant\n\
        metadata: {name: prod, namespace: apps}\nspec:\n  accountId: acc\n  tunnelId: 11111111-2222-3333-4444-555555555555\n  \
        credentialRef: {name: token}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: apps}\n\
        stringData: {token: t1}\n---\n";

    fn route(hostname: &str, more: &str) -> String {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: web\n  namespace: apps\n  \
             annotations: {{cfzt.cloudflare.com/enabled: \"true\", cfzt.cloudflare.com/hostname: \"{hostname}\"{more}}}\nspec: {{}}\n---\n"
        )
    }

    fn wanted(yaml: &str) -> WantedAtCloudflare {
        let objects: Vec<Value> =
            crate::manifest::parse("test", yaml).unwrap().into_iter().map(|manifest| manifest.object).collect();
        WantedAtCloudflare::by(&objects)
    }

    #[test]
    fn a_tenant_brings_its_account_its_tunnel_and_its_token() {
        let wanted = wanted(TENANT);

        assert!(wanted.accounts.contains_key("acc"));
        assert_eq!(wanted.tunnels.first().unwrap().id.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
        assert_eq!(wanted.tokens[0].expose_secret(), "t1");
    }

    #[test]
    fn routes_bring_the_zones_of_their_names() {
        let text = format!("{TENANT}{}{}", route("a.example.com", ""), route("*.b.example.org", ""));

        let wanted = wanted(&text);

        let zones: Vec<&str> = wanted.zones.keys().map(String::as_str).collect();
        assert_eq!(zones, ["example.com", "example.org"]);
        assert_eq!(wanted.zones["example.com"].account, "acc");
    }

    #[test]
    fn the_zone_of_a_name_is_in_the_account_of_the_tenant_that_its_template_names() {
        let other = TENANT.replace("name: prod", "name: staging").replace("accountId: acc", "accountId: other");
        let template = "apiVersion: cfzt.cloudflare.com/v1alpha1\nkind: CloudflareZeroTrustTemplate\n\
            metadata: {name: web, namespace: apps}\nspec: {tenantRef: staging}\n---\n";
        let named = route("a.example.com", ", cfzt.cloudflare.com/template: web");

        let wanted = wanted(&format!("{TENANT}{other}{template}{named}"));

        assert_eq!(wanted.zones["example.com"].account, "other");
    }

    #[test]
    fn a_tenants_zone_id_is_that_of_its_zone() {
        let tenant = TENANT.replace("accountId: acc\n", "accountId: acc\n  zoneId: z1\n");

        let wanted = wanted(&format!("{tenant}{}", route("a.example.com", "")));

        assert_eq!(wanted.zones["example.com"].id.as_deref(), Some("z1"));
    }

    #[test]
    fn routes_that_do_not_ask_bring_nothing() {
        let quiet = route("a.example.com", "").replace("cfzt.cloudflare.com/enabled: \"true\", ", "");

        assert!(wanted(&format!("{TENANT}{quiet}")).zones.is_empty());
    }

    #[test]
    fn names_that_are_not_valid_bring_no_zone() {
        for hostname in ["https://x.y/", "a..b", "localhost", "10.0.0.1"] {
            assert!(wanted(&format!("{TENANT}{}", route(hostname, ""))).zones.is_empty(), "{hostname}");
        }
    }

    #[test]
    fn a_route_may_name_another_tunnel() {
        let other = ", cfzt.cloudflare.com/tunnelId: 99999999-2222-3333-4444-555555555555";

        let wanted = wanted(&format!("{TENANT}{}", route("a.example.com", other)));

        assert_eq!(wanted.tunnels.len(), 2);
    }
}
