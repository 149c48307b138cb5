//! A request as the edge sees it.

use std::net::IpAddr;

use http::{HeaderMap, Method, Uri, header::HOST};

/// Stands for a visitor who has logged in with this address.
pub const EMAIL_HEADER: &str = "cf-access-test-email";
/// Stands for the address a visitor comes from.
pub const IP_HEADER: &str = "cf-access-test-ip";
/// Stands for the country a visitor comes from, as two letters.
pub const COUNTRY_HEADER: &str = "cf-access-test-country";

const SCHEME_HEADER: &str = "x-forwarded-proto";

/// What a visitor asks for, and what they show.
#[derive(Clone, Debug)]
pub struct EdgeRequest {
    /// HTTP method.
    pub method: Method,
    /// Name that is asked for, in lower case and without a port.
    pub host: String,
    /// Path, beginning with a slash.
    pub path: String,
    /// Query without the question mark.
    pub query: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
}

impl EdgeRequest {
    /// `GET https://{host}{path}` with some headers; those that are none are left out.
    pub fn get(host: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) = (name.parse::<http::HeaderName>(), value.parse()) {
                map.append(name, value);
            }
        }
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        Self::new(Method::GET, host, path, query, map)
    }

    /// From an HTTP request; `None` when it names no host.
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let header = || headers.get(HOST).and_then(|value| value.to_str().ok());
        let host = uri.authority().map(http::uri::Authority::as_str).or_else(header)?;
        Some(Self::new(method.clone(), host, uri.path(), uri.query(), headers.clone()))
    }

    fn new(method: Method, host: &str, path: &str, query: Option<&str>, headers: HeaderMap) -> Self {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Self { method, host: bare(host), path, query: query.map(str::to_owned), headers }
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Whether the visitor came by HTTPS.
    pub fn is_secure(&self) -> bool {
        !self.header(SCHEME_HEADER).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }

    /// Path and query, as a URL has them.
    pub(super) fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    pub(super) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme(), self.host, self.target())
    }

    /// Who the visitor has logged in as.
    pub(super) fn email(&self) -> Option<&str> {
        self.header(EMAIL_HEADER)
    }

    pub(super) fn ip(&self) -> Option<IpAddr> {
        self.header(IP_HEADER)?.parse().ok()
    }

    pub(super) fn country(&self) -> Option<&str> {
        self.header(COUNTRY_HEADER)
    }

    /// Client id and secret of a service token.
    pub(super) fn service_token(&self) -> Option<(&str, &str)> {
        Some((self.header("cf-access-client-id")?, self.header("cf-access-client-secret")?))
    }
}

/// A host without port and trailing dot, in lower case.
fn bare(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_port_case_and_trailing_dot() {
        for host in ["App.Example.com", "app.example.com:8788", "app.example.com."] {
            assert_eq!(EdgeRequest::get(host, "/", &[]).host, "app.example.com");
        }
    }

    #[test]
    fn requests_count_as_https_unless_a_header_says_http() {
        assert!(EdgeRequest::get("a.b", "/", &[]).is_secure());
        assert!(EdgeRequest::get("a.b", "/", &[("X-Forwarded-Proto", "https")]).is_secure());
        assert!(!EdgeRequest::get("a.b", "/", &[("X-Forwarded-Proto", "http")]).is_secure());
    }

    #[test]
    fn the_url_has_path_and_query() {
        assert_eq!(EdgeRequest::get("a.b", "/x?y=1", &[]).url(), "https://a.b/x?y=1");
    }
}
