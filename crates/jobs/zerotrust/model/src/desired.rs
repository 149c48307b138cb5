//! A route with its tenant, templates, zone and address → the task that makes its name stand.

use std::net::Ipv4Addr;

use portolan_core::{Hostname, Notice, Problem, allow, text};

use crate::hash::{HashedInputs, hash};
use crate::origin;
use crate::reasons;
use crate::reference::{RouteRef, TenantRef};
use crate::route::RouteInput;
use crate::select::Selected;
use crate::settings::{ACCESS, HTTP_HOST_HEADER, HTTP_REDIRECT, PASSES, PROXIED, Settings, TOKEN, TOKEN_DURATION, TTL};
use crate::target;
use crate::task::{
    CloudflareTaskSpec, CnameOperation, DnsRecordOperation, Operations, RedirectOperation, TaskAction, TokenOperation,
    TunnelOperation,
};

/// What a route asks for, ready to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRoute {
    /// The task, without what is known to stand.
    pub spec: CloudflareTaskSpec,
    /// The hash of all that it was made from.
    pub hash: String,
    /// What the route's owner should be told.
    pub notices: Vec<Notice>,
}

impl WantedRoute {
    /// Whether anybody may come: nothing asks for Access, and the address is none that only the inside can reach.
    pub fn is_open(&self) -> bool {
        let operations = self.spec.operations.as_ref();
        let guarded = operations.and_then(|all| all.access_app.as_ref()?.enabled).unwrap_or(false);
        let record = operations.and_then(|all| all.dns_record.as_ref()).filter(|one| one.enabled.unwrap_or(false));
        let inside = |ip: &String| ip.parse().is_ok_and(target::is_private);
        !guarded && !record.is_some_and(|one| one.ip_address.as_ref().is_some_and(inside))
    }
}

/// What a route asks for. `zone` is the zone that holds its name, `target` the address of a name without a tunnel.
pub fn desired(
    route: &RouteInput,
    selected: &Selected,
    settings: &Settings,
    zone: Option<&str>,
    target: Option<Ipv4Addr>,
) -> Result<WantedRoute, Problem> {
    portolan_core::waypoint!();
    let hostname = route.hostname()?;
    let (operations, origin) = if settings.is_dns_only() {
        (record(route, settings, &hostname, zone, target)?, None)
    } else {
        let origin = origin::resolve(route, settings, &hostname)?;
        protectable(settings, &hostname, zone)?;
        (tunnel(route, settings, &hostname, zone, &origin), Some(origin))
    };
    let resolved = HashedInputs {
        origin: origin.as_deref(),
        zone,
        target: target.filter(|_| settings.is_dns_only()),
        implied: settings.implies_access(),
    };
    Ok(WantedRoute {
        hash: hash(route, selected, resolved),
        notices: notices(route, settings, &hostname, zone),
        spec: spec(route, selected, settings, &hostname, zone, operations),
    })
}

fn spec(
    route: &RouteInput,
    selected: &Selected,
    settings: &Settings,
    hostname: &Hostname,
    zone: Option<&str>,
    operations: Operations,
) -> CloudflareTaskSpec {
    let tenant = &selected.tenant;
    CloudflareTaskSpec {
        action: Some(TaskAction::Reconcile),
        httproute_ref: Some(RouteRef {
            name: route.key.name.clone(),
            namespace: route.key.namespace.clone().unwrap_or_default(),
            uid: Some(route.uid.clone()).filter(|uid| !uid.is_empty()),
        }),
        tenant_ref: Some(TenantRef::to(&tenant.key())),
        credential_secret_ref: Some(tenant.credential()),
        hostname: Some(hostname.to_string()),
        account_id: Some(tenant.spec.account_id.clone()),
        tunnel_id: Some(settings.tunnel_id().to_owned()),
        zone_id: Some(zone.unwrap_or_default().to_owned()),
        operations: Some(operations),
        existing_ids: None,
        delete_ids: None,
        adopt: route.adopts().then_some(true),
    }
}

/// An Access application needs its name in an active zone of the account, so that a name without one cannot be protected and is
/// not published: <https://github.com/cloudflare/terraform-provider-cloudflare/issues/5181>.
fn protectable(settings: &Settings, hostname: &Hostname, zone: Option<&str>) -> Result<(), Problem> {
    if zone.is_some() || !settings.asks_for_access() {
        return Ok(());
    }
    let message = format!(
        "Access was asked for {hostname}, and no zone of the account holds it, so that it cannot be protected: add the zone at \
         Cloudflare, let the API token see it, or turn Access off"
    );
    Err(Problem::waiting(reasons::ZONE_NOT_FOUND, message))
}

fn tunnel(
    route: &RouteInput,
    settings: &Settings,
    hostname: &Hostname,
    zone: Option<&str>,
    origin: &str,
) -> Operations {
    let redirect = settings.field(&HTTP_REDIRECT);
    let header = settings.text(&HTTP_HOST_HEADER).and_then(|text| origin::name_of(text, hostname));
    Operations {
        tunnel_route: Some(TunnelOperation {
            enabled: Some(true),
            origin_service: Some(origin.to_owned()),
            http_redirect: Some(settings.flag(&HTTP_REDIRECT)),
            http_host_header: header,
            origin_tls: Some(settings.origin_tls(hostname)),
            ..TunnelOperation::default()
        }),
        cname_dns: Some(CnameOperation { enabled: Some(zone.is_some()) }),
        access_app: Some(settings.access()),
        service_token: Some(token(route, settings)),
        dns_record: Some(DnsRecordOperation { enabled: Some(false), ..DnsRecordOperation::default() }),
        http_redirect: (settings.flag(&HTTP_REDIRECT) && redirect.layer.is_deliberate())
            .then_some(RedirectOperation { enabled: Some(true) }),
    }
}

fn token(route: &RouteInput, settings: &Settings) -> TokenOperation {
    let asked = settings.asks_for_token();
    let rotate = |suffix: &str| route.input(suffix).filter(|_| asked).map(str::to_owned);
    TokenOperation {
        enabled: Some(asked),
        duration: settings.text(&TOKEN_DURATION).map(str::to_owned),
        secret_namespace: route.key.namespace.clone(),
        rotate: rotate("serviceToken.rotate"),
        rotate_overlap: rotate("serviceToken.rotateOverlap"),
        secret_present: None,
    }
}

/// A name without a tunnel: neither rule nor Access nor token.
fn record(
    route: &RouteInput,
    settings: &Settings,
    hostname: &Hostname,
    zone: Option<&str>,
    target: Option<Ipv4Addr>,
) -> Result<Operations, Problem> {
    let ip = target.ok_or_else(|| {
        Problem::waiting(reasons::NO_LOAD_BALANCER_IP, format!("the address of {hostname} is not known yet"))
    })?;
    if settings.asks_for_access() && !target::is_private(ip) {
        let message = format!(
            "Access was asked for {hostname}, but requests to {ip} would not pass through it: \
             publish it through a tunnel, give it a private address, or turn Access off"
        );
        return Err(Problem::invalid(reasons::PROTECTION_IMPOSSIBLE, message));
    }
    if zone.is_none() {
        let message = format!("no zone of the account holds {hostname}; add the zone at Cloudflare");
        return Err(Problem::waiting(reasons::ZONE_NOT_FOUND, message));
    }
    let proxied = settings.flag(&PROXIED);
    Ok(Operations {
        tunnel_route: Some(TunnelOperation { enabled: Some(false), ..TunnelOperation::default() }),
        cname_dns: Some(CnameOperation { enabled: Some(false) }),
        access_app: Some(crate::template::AccessSettings { enabled: Some(false), ..Default::default() }),
        service_token: Some(TokenOperation {
            enabled: Some(false),
            secret_namespace: route.key.namespace.clone(),
            ..TokenOperation::default()
        }),
        dns_record: Some(DnsRecordOperation {
            enabled: Some(true),
            ip_address: Some(ip.to_string()),
            ip: None,
            proxied: Some(proxied),
            ttl: if proxied { Some(1) } else { settings.number(&TTL) },
        }),
        http_redirect: None,
    })
}

fn notices(route: &RouteInput, settings: &Settings, hostname: &Hostname, zone: Option<&str>) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut warn = |reason, message: String| notices.push(Notice::warning(reason, message));
    let (access, token) = (settings.asks_for_access(), settings.asks_for_token());
    if settings.is_dns_only() && (access || token) {
        let what = if access { "Access" } else { "a service token" };
        warn(reasons::PROTECTION_IGNORED, format!("{hostname} has no tunnel, so {what} has no effect on it"));
    }
    if !settings.is_dns_only() && zone.is_none() {
        let message = format!("no zone of the account holds {hostname}: its rule stands, but it has no DNS record");
        warn(reasons::DNS_SKIPPED, message);
    }
    if !settings.is_dns_only() && access && !token && !settings.lets_somebody_pass() {
        let message =
            format!("Access is on for {hostname} and lets nobody pass: set allowEmails, allowGroups or policies");
        warn(reasons::NO_ACCESS_POLICY, message);
    }
    let mut said: Vec<&str> = PASSES
        .iter()
        .filter(|setting| settings.field(setting).layer.is_route() && !settings.list(setting).is_empty())
        .map(|setting| setting.name)
        .collect();
    if token {
        said.push(TOKEN.name);
    }
    if !access && !said.is_empty() && !settings.is_dns_only() {
        let message = format!(
            "{} protects nothing: access.enabled is \"false\" ({}), and {hostname} is public",
            text::join_and(said),
            settings.field(&ACCESS).layer
        );
        warn(reasons::ACCESS_NOT_ENABLED, message);
    }
    if let Some(message) = hostnames_differ(route, hostname) {
        warn(reasons::HOSTNAMES_DIFFER, message);
    }
    notices
}

/// What of the route's own hostnames is not what is published.
fn hostnames_differ(route: &RouteInput, hostname: &Hostname) -> Option<String> {
    let others: Vec<&String> =
        route.hostnames.iter().filter(|one| !one.eq_ignore_ascii_case(hostname.as_str())).collect();
    if route.hostnames.is_empty() || others.is_empty() {
        return None;
    }
    let patterns: Vec<&str> = route.hostnames.iter().map(String::as_str).collect();
    if !allow::names_hostname(&patterns, hostname) {
        let message = format!(
            "{hostname} is published, but the route's spec.hostnames do not hold it: a gateway behind it answers for {} only",
            text::join_some(others, 5)
        );
        return Some(message);
    }
    let others: Vec<&&String> = others.iter().filter(|one| !one.starts_with("*.")).collect();
    let message = format!(
        "only {hostname} is published, not {}: each further name needs a route of its own",
        text::join_some(&others, 5)
    );
    (!others.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests;
