//! Where requests for a name go, and how the origin is spoken to.

mod pattern;
mod place;

use portolan_core::{Hostname, Problem, text};
use serde_json::{Map, Value, json};

use crate::gateway::BackendRef;
use crate::origin_tls::OriginTls;
use crate::reasons;
use crate::route::RouteInput;
use crate::settings::{ORIGIN_URL, Settings};

pub(crate) use pattern::{PATTERN, is_listed};
pub(crate) use place::{Origin, Reaches};

/// Schemes of origins that cloudflared speaks to.
const SCHEMES: [&str; 11] =
    ["http", "https", "ws", "wss", "tcp", "ssh", "rdp", "smb", "unix", "unix+tls", "http_status"];
/// Origins that are words of their own.
const WORDS: [&str; 4] = ["hello_world", "hello-world", "bastion", "socks-proxy"];
/// Connections to an `https://` origin that are kept open.
const KEPT_CONNECTIONS: u32 = 100;
/// Seconds that a TLS handshake may take, where nobody says it.
const DEFAULT_TLS_TIMEOUT: i64 = 10;

/// Where requests go: what somebody says, else the route's first backend.
pub(crate) fn resolve(route: &RouteInput, settings: &Settings, hostname: &Hostname) -> Result<String, Problem> {
    let Some(url) = settings.text(&ORIGIN_URL) else { return derive(route) };
    let url = substitute(url, hostname);
    if is_origin(&url) {
        return Ok(url);
    }
    let layer = &settings.field(&ORIGIN_URL).layer;
    let message =
        format!("origin {:?} ({layer}) is no URL; write it as http://web.shop.svc:80", text::shorten(&url, 200));
    Err(Problem::invalid(reasons::ORIGIN_UNRESOLVED, message))
}

/// The route's first backend as an origin.
fn derive(route: &RouteInput) -> Result<String, Problem> {
    let unresolved = |why: &str| {
        let message =
            format!("no origin: {why}; set the annotation origin.url, or a template's or the tenant's origin");
        Problem::invalid(reasons::ORIGIN_UNRESOLVED, message)
    };
    let Some(backend) = &route.backend else { return Err(unresolved("the first rule of the route has no backend")) };
    if let Some(why) = route.beyond_backend {
        let message = format!(
            "all requests would go to the route's first backend, but {why}: let them go to the gateway that carries the \
             route out, by a template's originService.url or the tenant's defaults.originService"
        );
        return Err(Problem::invalid(reasons::ROUTE_TOO_COMPLEX, message));
    }
    let BackendRef { group, kind, name, namespace, port, .. } = backend;
    if kind.as_deref().is_some_and(|kind| kind != "Service") || group.as_deref().is_some_and(|group| !group.is_empty())
    {
        return Err(unresolved("the route's first backend is no Service"));
    }
    let Some(port) = port else { return Err(unresolved("the route's first backend has no port")) };
    let own = route.key.namespace.as_deref().unwrap_or_default();
    let namespace = namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
    Ok(format!("http://{name}.{namespace}.svc.cluster.local:{port}"))
}

fn is_origin(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return WORDS.contains(&url) };
    let rest = rest.trim_start_matches('/');
    SCHEMES.contains(&scheme) && !rest.is_empty() && !url.contains(|c: char| c.is_whitespace() || c == '*')
}

/// Puts the hostname where the text says `{{ hostname }}`, with any blanks inside the braces.
pub(crate) fn substitute(text: &str, hostname: &Hostname) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        result.push_str(before);
        match behind.split_once("}}") {
            Some((name, after)) if name.trim() == "hostname" => {
                result.push_str(hostname.as_str());
                rest = after;
            }
            _ => {
                result.push_str("{{");
                rest = behind;
            }
        }
    }
    result.push_str(rest);
    result
}

/// A name that may stand for the hostname; none where that is a wildcard, which no machine is called.
pub(crate) fn name_of(text: &str, hostname: &Hostname) -> Option<String> {
    let name = substitute(text, hostname);
    Some(name).filter(|name| !hostname.is_wildcard() || name == text)
}

/// What a rule's `originRequest` is made from.
#[derive(Clone, Debug)]
pub(crate) struct OriginRequest<'a> {
    /// Where requests go.
    pub(crate) service: &'a str,
    /// The published name.
    pub(crate) hostname: &'a Hostname,
    /// The Host header that somebody asked for.
    pub(crate) host_header: Option<String>,
    /// How the origin is spoken to.
    pub(crate) tls: &'a OriginTls,
}

/// A rule's `originRequest` under the API's names; empty where it needs none. The name of a wildcard is nobody's Host.
pub(crate) fn request(origin: &OriginRequest<'_>) -> Map<String, Value> {
    let own = Some(origin.hostname.to_string()).filter(|_| is_tls(origin.service) && !origin.hostname.is_wildcard());
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    if let Some(header) = origin.host_header.clone().or(own) {
        set("httpHostHeader", json!(header));
    }
    if !is_tls(origin.service) {
        return fields;
    }
    let tls = origin.tls;
    set("noTLSVerify", json!(tls.no_tls_verify.unwrap_or(false)));
    set("tlsTimeout", json!(tls.tls_timeout.unwrap_or(DEFAULT_TLS_TIMEOUT)));
    set("http2Origin", json!(tls.http2_origin.unwrap_or(false)));
    set("keepAliveConnections", json!(KEPT_CONNECTIONS));
    for (name, text) in [("originServerName", &tls.origin_server_name), ("caPool", &tls.ca_pool)] {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            set(name, json!(text));
        }
    }
    if tls.match_sni_to_host == Some(true) {
        set("matchSNItoHost", json!(true));
    }
    fields
}

fn is_tls(service: &str) -> bool {
    ["https:", "wss:", "unix+tls:"].iter().any(|scheme| service.starts_with(scheme))
}

#[cfg(test)]
mod tests;
