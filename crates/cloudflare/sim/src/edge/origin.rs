//! From a rule to its origin: over HTTP or HTTPS, with the rule's settings.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use serde_json::Value;

use super::{
    decision::{EdgeAccess, EdgeRule},
    request::{COUNTRY_HEADER, EMAIL_HEADER, EdgeRequest, IP_HEADER},
};

/// How long a connection may take, where a rule does not say.
const CONNECT: Duration = Duration::from_secs(30);

/// Headers that end at the edge: those of one connection, secrets, and what a visitor could use to pose as somebody.
const KEPT_BACK: [&str; 14] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "cf-access-client-secret",
    "cf-access-authenticated-user-email",
    EMAIL_HEADER,
    IP_HEADER,
    COUNTRY_HEADER,
];

/// Where an origin's name leads: `HOST=ADDRESS:PORT`, `HOST:PORT=…` for one port of it, `*=…` for all others;
/// `…=echo` lets the edge answer in the origin's place, with what the origin would have been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginAddress {
    /// Name in rules, with a port where only that one is meant.
    pub host: String,
    /// Where it is.
    pub place: OriginPlace,
}

/// Where an origin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginPlace {
    /// At this address.
    At(SocketAddr),
    /// Nowhere: the edge answers 200 and says what it would have sent.
    Echo,
}

impl FromStr for OriginAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is not of the form HOST=ADDRESS:PORT, like traefik.traefik.svc=127.0.0.1:8000, or HOST=echo"
            )
        };
        let (host, place) = text.split_once('=').ok_or_else(wrong)?;
        let place = match place.trim() {
            "echo" => OriginPlace::Echo,
            address => OriginPlace::At(address.parse().map_err(|_| wrong())?),
        };
        let host = host.trim().to_ascii_lowercase();
        if host.is_empty() { Err(wrong()) } else { Ok(Self { host, place }) }
    }
}

/// Addresses of origins, and connections to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    places: BTreeMap<String, OriginPlace>,
    clients: Arc<Mutex<HashMap<Manner, reqwest::Client>>>,
}

/// Everything that a connection depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Manner {
    /// Name in the TLS handshake and in the URL.
    name: String,
    address: Option<SocketAddr>,
    is_verified: bool,
    ca_pool: String,
    http2: bool,
    connect: Duration,
}

/// A service, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct ServiceAddress {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl Origins {
    pub(super) fn add(&mut self, origin: OriginAddress) {
        self.places.insert(origin.host, origin.place);
    }

    /// Sends a request to the origin of a rule. An error says why the origin cannot be reached.
    pub(super) async fn send(
        &self,
        rule: &EdgeRule,
        request: &EdgeRequest,
        access: &EdgeAccess,
        body: Bytes,
    ) -> Result<Response<reqwest::Body>, String> {
        let place = ServiceAddress::parse(&rule.service)?;
        let headers = headers(rule, request, access);
        let address = match self.place(&place) {
            Some(OriginPlace::Echo) => return Ok(echo(rule, request, &headers)),
            Some(OriginPlace::At(address)) => Some(address),
            None => None,
        };
        let manner = Manner::of(rule, &place, request, address);
        let port = address.map_or(place.port, |address| address.port());
        let url = format!("{}://{}:{port}{}", place.scheme, manner.name, request.target());
        let sent = self.client(&manner)?.request(request.method.clone(), url).headers(headers).body(body);
        let answer = sent.send().await.map_err(|error| describe(&rule.service, address.is_some(), &error))?;
        Ok(Response::from(answer))
    }

    fn place(&self, place: &ServiceAddress) -> Option<OriginPlace> {
        let names = [format!("{}:{}", place.host, place.port), place.host.clone(), "*".to_owned()];
        names.iter().find_map(|name| self.places.get(name)).copied()
    }

    fn client(&self, manner: &Manner) -> Result<reqwest::Client, String> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(manner) {
            return Ok(client.clone());
        }
        let client = manner.client()?;
        clients.insert(manner.clone(), client.clone());
        Ok(client)
    }
}

impl ServiceAddress {
    fn parse(service: &str) -> Result<Self, String> {
        let foreign = || format!("the edge of the simulator speaks HTTP and HTTPS to origins, not {service}");
        let (scheme, rest) = service.split_once("://").ok_or_else(foreign)?;
        let (scheme, usual) = match scheme {
            "http" | "ws" => ("http", 80),
            "https" | "wss" => ("https", 443),
            _ => return Err(foreign()),
        };
        let authority = rest.split('/').next().unwrap_or(rest).to_ascii_lowercase();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host.to_owned(), port.parse().map_err(|_| foreign())?),
            _ => (authority, usual),
        };
        Ok(Self { scheme, host, port })
    }
}

impl Manner {
    fn of(rule: &EdgeRule, place: &ServiceAddress, request: &EdgeRequest, address: Option<SocketAddr>) -> Self {
        let text = |name: &str| rule.settings.get(name).and_then(Value::as_str).unwrap_or_default();
        let is = |name: &str| rule.settings.get(name).and_then(Value::as_bool).unwrap_or_default();
        let name = match text("originServerName") {
            "" if is("matchSNItoHost") => &request.host,
            "" => &place.host,
            name => name,
        };
        let seconds = rule.settings.get("connectTimeout").and_then(Value::as_u64).filter(|seconds| *seconds > 0);
        Self {
            name: if place.scheme == "https" { name.to_owned() } else { place.host.clone() },
            address,
            is_verified: !is("noTLSVerify"),
            ca_pool: text("caPool").to_owned(),
            http2: is("http2Origin") && place.scheme == "https",
            connect: seconds.map_or(CONNECT, Duration::from_secs),
        }
        .resolving(place)
    }

    /// Where the handshake names another host than the service, the service's own address is needed beforehand.
    fn resolving(mut self, place: &ServiceAddress) -> Self {
        if self.address.is_none() && self.name != place.host {
            use std::net::ToSocketAddrs;
            self.address =
                (place.host.trim_matches(['[', ']']), place.port).to_socket_addrs().ok().and_then(|mut all| all.next());
        }
        self
    }

    fn client(&self) -> Result<reqwest::Client, String> {
        // Whoever runs the edge may have chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(self.connect)
            .tls_danger_accept_invalid_certs(!self.is_verified);
        if !self.http2 {
            builder = builder.http1_only();
        }
        if let Some(address) = self.address {
            builder = builder.resolve(&self.name, address);
        }
        if !self.ca_pool.is_empty() {
            builder = builder.tls_certs_merge(certificates(&self.ca_pool)?);
        }
        builder.build().map_err(|error| format!("cannot prepare a connection: {error}"))
    }
}

fn certificates(path: &str) -> Result<Vec<reqwest::Certificate>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read caPool {path}: {error}"))?;
    reqwest::Certificate::from_pem_bundle(&bytes).map_err(|error| format!("caPool {path} is not valid: {error}"))
}

fn headers(rule: &EdgeRule, request: &EdgeRequest, access: &EdgeAccess) -> HeaderMap {
    let mut headers = request.headers.clone();
    for name in KEPT_BACK {
        headers.remove(name);
    }
    let host = rule.settings.get("httpHostHeader").and_then(Value::as_str).filter(|host| !host.is_empty());
    set(&mut headers, header::HOST, host.unwrap_or(&request.host));
    headers.remove(header::CONTENT_LENGTH);
    let visitor = request.ip().map_or_else(|| "127.0.0.1".to_owned(), |ip| ip.to_string());
    set(&mut headers, HeaderName::from_static("cf-connecting-ip"), &visitor);
    set(&mut headers, HeaderName::from_static("x-forwarded-for"), &visitor);
    set(&mut headers, HeaderName::from_static("x-forwarded-proto"), request.scheme());
    set(&mut headers, HeaderName::from_static("cdn-loop"), "cloudflare");
    if let (EdgeAccess::Granted { identity: Some(_), .. }, Some(email)) = (access, request.email()) {
        set(&mut headers, HeaderName::from_static("cf-access-authenticated-user-email"), email);
    }
    headers
}

/// An answer in the origin's place: what it would have been sent.
fn echo(rule: &EdgeRule, request: &EdgeRequest, headers: &HeaderMap) -> Response<reqwest::Body> {
    let mut text = format!("{} would have been sent:\n\n{} {}\n", rule.service, request.method, request.target());
    for (name, value) in headers {
        text.extend([name.as_str(), ": ", value.to_str().unwrap_or("?"), "\n"]);
    }
    let mut response = Response::new(reqwest::Body::from(text));
    let plain = HeaderValue::from_static("text/plain; charset=UTF-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn describe(service: &str, is_mapped: bool, error: &reqwest::Error) -> String {
    let mut text = format!("the origin {service} cannot be reached: {}", innermost(error));
    if !is_mapped && error.is_connect() {
        text.push_str("; names that only a cluster knows need --edge-origin HOST=ADDRESS:PORT");
    }
    text
}

fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_a_scheme_a_host_and_a_port() {
        let place = |service: &str| ServiceAddress::parse(service).map(|place| (place.scheme, place.host, place.port));

        assert_eq!(place("http://traefik.traefik.svc:80").unwrap(), ("http", "traefik.traefik.svc".into(), 80));
        assert_eq!(place("https://Traefik/").unwrap(), ("https", "traefik".into(), 443));
        assert_eq!(place("http://[::1]:8080").unwrap(), ("http", "[::1]".into(), 8080));
        assert!(place("tcp://x:1").is_err());
        assert!(place("unix:/run/x").is_err());
    }

    #[test]
    fn addresses_of_origins_are_a_name_and_a_socket() {
        let parsed: OriginAddress = "Traefik.traefik.svc:80=127.0.0.1:9000".parse().unwrap();

        assert_eq!(parsed.host, "traefik.traefik.svc:80");
        assert_eq!(parsed.place, OriginPlace::At("127.0.0.1:9000".parse().unwrap()));
        assert_eq!("*=echo".parse(), Ok(OriginAddress { host: "*".into(), place: OriginPlace::Echo }));
        assert!("traefik".parse::<OriginAddress>().is_err());
        assert!("traefik=somewhere".parse::<OriginAddress>().is_err());
    }

    #[test]
    fn visitors_cannot_pose_as_somebody_and_secrets_end_at_the_edge() {
        let rule = EdgeRule {
            index: 0,
            hostname: String::new(),
            path: String::new(),
            service: "http://x".into(),
            settings: serde_json::Map::new(),
        };
        let request = EdgeRequest::get(
            "a.b",
            "/",
            &[("Cf-Access-Authenticated-User-Email", "boss@a.b"), ("CF-Access-Client-Secret", "s"), ("X-Own", "1")],
        );

        let headers = headers(&rule, &request, &EdgeAccess::Unprotected);

        assert!(headers.get("cf-access-authenticated-user-email").is_none());
        assert!(headers.get("cf-access-client-secret").is_none());
        assert_eq!(
            (&headers["x-own"], &headers["host"]),
            (&HeaderValue::from_static("1"), &HeaderValue::from_static("a.b"))
        );
    }
}
