//! `CloudflareTaskSpec` → what [`portolan_publication`] is asked to make stand or to take down.

use std::net::Ipv4Addr;
use std::time::Duration;

use portolan_core::{Hostname, Mark, OwnerId, Problem, reasons as core};
use portolan_publication::{Access, Desired, Footprint, Record, Rotate, Rule, Token};
use serde_json::{Map, Value, json};

use super::ids::given;
use super::{CloudflareTaskSpec, DnsRecordOperation, Operations, TokenOperation, TunnelOperation};
use crate::duration;
use crate::origin::{self, OriginRequest};
use crate::origin_tls::OriginTls;
use crate::reasons;
use crate::reference::RouteRef;
use crate::settings::{DEFAULT_SESSION, DEFAULT_TOKEN_LIFETIME, DEFAULT_TTL};
use crate::template::AccessSettings;

/// Kind of the objects that names are published for, as marks write it.
const ROUTE_KIND: &str = "HTTPRoute";
/// How long an old client secret goes on working, where nothing else is said.
const DEFAULT_OVERLAP: Duration = Duration::from_secs(3600);

impl CloudflareTaskSpec {
    /// What shall stand.
    pub fn desired(&self, owner: &OwnerId) -> Result<Desired, Problem> {
        portolan_core::waypoint!();
        let route = self.httproute_ref.as_ref().ok_or_else(|| missing("httprouteRef"))?;
        let hostname = Hostname::parse(&self.required("hostname", self.hostname.as_ref())?)?;
        let operations = self.operations.clone().unwrap_or_default();
        let address = operations.dns_record.as_ref().filter(|record| record.enabled.unwrap_or(false));
        let (rule, record) = match address {
            Some(address) => (None, Some(self.address(address)?)),
            None => (self.rule(&operations, &hostname)?, self.cname(&operations)?),
        };
        let asked = |enabled: Option<bool>| enabled.unwrap_or(false) && address.is_none();
        Ok(Desired {
            mark: self.mark(owner)?,
            account_id: self.required("accountId", self.account_id.as_ref())?,
            rule,
            record,
            access: operations.access_app.as_ref().filter(|app| asked(app.enabled)).map(|app| access(app, route)),
            token: operations.service_token.as_ref().filter(|token| asked(token.enabled)).map(|one| token(one, route)),
            redirect: operations.http_redirect.is_some_and(|redirect| asked(redirect.enabled)),
            adopt: self.adopt.unwrap_or(false),
            hostname,
        })
    }

    /// Whose the objects at Cloudflare are.
    pub fn mark(&self, owner: &OwnerId) -> Result<Mark, Problem> {
        let route = self.httproute_ref.as_ref().ok_or_else(|| missing("httprouteRef"))?;
        Ok(Mark { kind: ROUTE_KIND.to_owned(), key: route.key(), owner: owner.clone(), adopted: false })
    }

    /// What is known to stand for the route. What the task does not say of the place is where it publishes now: tasks
    /// of older operators say no more.
    pub fn existing(&self) -> Footprint {
        let Some(existing) = &self.existing_ids else { return Footprint::default() };
        self.placed(existing.footprint())
    }

    /// What is taken down.
    pub fn to_delete(&self) -> Footprint {
        self.delete_ids.as_ref().map(|ids| self.placed(ids.footprint())).unwrap_or_default()
    }

    fn placed(&self, found: Footprint) -> Footprint {
        if found.is_empty() && found.hostname.is_none() {
            return found;
        }
        Footprint {
            account_id: found.account_id.or_else(|| given(self.account_id.as_ref())),
            hostname: found.hostname.or_else(|| given(self.hostname.as_ref())),
            tunnel_id: found.tunnel_id.or_else(|| given(self.tunnel_id.as_ref())),
            zone_id: found.zone_id.or_else(|| given(self.zone_id.as_ref())),
            ..found
        }
    }

    fn rule(&self, operations: &Operations, hostname: &Hostname) -> Result<Option<Rule>, Problem> {
        let Some(tunnel) = operations.tunnel_route.as_ref().filter(|tunnel| tunnel.enabled.unwrap_or(true)) else {
            return Ok(None);
        };
        let service =
            given(tunnel.origin_service.as_ref()).ok_or_else(|| missing("operations.tunnelRoute.originService"))?;
        let tunnel_id = self.required("tunnelId", self.tunnel_id.as_ref())?;
        let asked = given(tunnel.http_host_header.as_ref());
        let tls = tunnel.tls();
        let origin_request =
            origin::request(&OriginRequest { service: &service, hostname, host_header: asked, tls: &tls });
        Ok(Some(Rule { tunnel_id, service, origin_request }))
    }

    fn cname(&self, operations: &Operations) -> Result<Option<Record>, Problem> {
        let wanted = operations.cname_dns.as_ref().is_some_and(|cname| cname.enabled.unwrap_or(false));
        let Some(zone_id) = given(self.zone_id.as_ref()).filter(|_| wanted) else { return Ok(None) };
        let tunnel_id = self.required("tunnelId", self.tunnel_id.as_ref())?;
        Ok(Some(Record::Cname { zone_id, target: format!("{tunnel_id}.cfargotunnel.com") }))
    }

    fn address(&self, record: &DnsRecordOperation) -> Result<Record, Problem> {
        let text = given(record.ip_address.as_ref()).or_else(|| given(record.ip.as_ref()));
        let text = text.ok_or_else(|| missing("operations.dnsRecord.ipAddress"))?;
        let ip: Ipv4Addr = crate::target::address(&text)?;
        let zone_id = given(self.zone_id.as_ref()).ok_or_else(|| {
            Problem::waiting(
                reasons::ZONE_NOT_FOUND,
                "no zone of the account holds the name; add the zone at Cloudflare",
            )
        })?;
        let proxied = record.proxied.unwrap_or(false);
        let ttl = if proxied { 1 } else { record.ttl.and_then(|ttl| u32::try_from(ttl).ok()).unwrap_or(DEFAULT_TTL) };
        Ok(Record::Address { zone_id, ip, ttl, proxied })
    }

    fn required(&self, field: &str, value: Option<&String>) -> Result<String, Problem> {
        given(value).ok_or_else(|| missing(field))
    }
}

impl TunnelOperation {
    /// How the origin is spoken to: what stands in `originTLS`, else beside it.
    fn tls(&self) -> OriginTls {
        let nested = self.origin_tls.clone().unwrap_or_default();
        let flat = self.flat_tls.clone();
        OriginTls {
            no_tls_verify: nested.no_tls_verify.or(flat.no_tls_verify),
            origin_server_name: given(nested.origin_server_name.as_ref()).or(flat.origin_server_name),
            ca_pool: given(nested.ca_pool.as_ref()).or(flat.ca_pool),
            tls_timeout: nested.tls_timeout.or(flat.tls_timeout),
            http2_origin: nested.http2_origin.or(flat.http2_origin),
            match_sni_to_host: nested.match_sni_to_host.or(flat.match_sni_to_host),
        }
    }
}

fn missing(field: &str) -> Problem {
    Problem::invalid(core::INVALID_CONFIG, format!("the task lacks spec.{field}"))
}

fn access(app: &AccessSettings, route: &RouteRef) -> Access {
    Access {
        name: route.name.clone(),
        settings: settings(app),
        emails: app.allow_emails.clone().unwrap_or_default(),
        groups: app.allow_groups.clone().unwrap_or_default(),
        policy_ids: app.existing_policy_ids.clone().unwrap_or_default(),
        policy_names: app.existing_policy_names.clone().unwrap_or_default(),
        policy_name: format!("{}-allow-policy", route.name),
        service_policy_name: format!("{}-service-auth", route.name),
    }
}

/// The application's fields under the API's names. Texts that are empty are not sent.
fn settings(app: &AccessSettings) -> Map<String, Value> {
    let text = |text: &Option<String>| given(text.as_ref());
    let always = [
        ("session_duration", json!(text(&app.session_duration).unwrap_or_else(|| DEFAULT_SESSION.to_owned()))),
        ("auto_redirect_to_identity", json!(app.auto_redirect_to_identity.unwrap_or(false))),
        ("enable_binding_cookie", json!(app.enable_binding_cookie.unwrap_or(false))),
        ("http_only_cookie_attribute", json!(app.http_only_cookie_attribute.unwrap_or(true))),
        (
            "same_site_cookie_attribute",
            json!(text(&app.same_site_cookie_attribute).unwrap_or_else(|| "lax".to_owned())),
        ),
        ("skip_interstitial", json!(app.skip_interstitial.unwrap_or(false))),
        ("app_launcher_visible", json!(app.app_launcher_visible.unwrap_or(true))),
        ("service_auth_401_redirect", json!(app.service_auth_401_redirect.unwrap_or(false))),
    ];
    let where_given = [
        ("logo_url", text(&app.logo_url)),
        ("custom_deny_message", text(&app.custom_deny_message)),
        ("custom_deny_url", text(&app.custom_deny_url)),
        ("custom_non_identity_deny_url", text(&app.custom_non_identity_deny_url)),
    ];
    let given = where_given.into_iter().filter_map(|(name, value)| Some((name, json!(value?))));
    always.into_iter().chain(given).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn token(token: &TokenOperation, route: &RouteRef) -> Token {
    let overlap = given(token.rotate_overlap.as_ref()).and_then(|text| duration::parse(&text));
    let rotate = given(token.rotate.as_ref());
    Token {
        name: format!("{}-service-token", route.name),
        duration: given(token.duration.as_ref()).unwrap_or_else(|| DEFAULT_TOKEN_LIFETIME.to_owned()),
        rotate: rotate.map(|request| Rotate { request, overlap: overlap.unwrap_or(DEFAULT_OVERLAP) }),
    }
}
