//! A request as a value: what is asked, apart from who asks and how it is sent.

use std::fmt;

use bytes::Bytes;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Everything but RFC 3986's unreserved characters is escaped, in path segments and in queries.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One call of the API.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Path with placeholders, such as `/zones/{zone_id}/dns_records`: the metrics label.
    pub template: &'static str,
    /// Path below the API's root, placeholders filled in.
    pub path: String,
    /// Query parameters, in order.
    pub query: Vec<(String, String)>,
    /// JSON body.
    pub body: Option<Value>,
    /// The body or the answer carries secrets: neither is ever shown.
    pub masked: bool,
}

impl Request {
    /// Fills the template's placeholders, in order, with escaped segments.
    pub fn new(method: Method, template: &'static str, segments: &[&str]) -> Self {
        Self { method, template, path: fill(template, segments), query: Vec::new(), body: None, masked: false }
    }

    /// A read.
    pub fn get(template: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::GET, template, segments)
    }

    /// The same with one more query parameter.
    pub fn with_query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// The same with a body.
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The same, its body and answer never shown.
    pub fn masked(mut self) -> Self {
        self.masked = true;
        self
    }

    /// Whether it can only read.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    /// Whether repeating it ends in the same state as sending it once.
    pub fn is_idempotent(&self) -> bool {
        self.method != Method::POST
    }

    /// The address below `base`, with its query.
    pub fn url(&self, base: &str) -> String {
        let mut url = format!("{}{}", base.trim_end_matches('/'), self.path);
        for (index, (name, value)) in self.query.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(&escape(name));
            url.push('=');
            url.push_str(&escape(value));
        }
        url
    }

    /// The HTTP request, still without credentials.
    pub fn to_http(&self, base: &str) -> Result<http::Request<Bytes>, http::Error> {
        portolan_core::waypoint!();
        let mut request = http::Request::builder().method(self.method.clone()).uri(self.url(base));
        let body = match &self.body {
            Some(body) => {
                request = request.header(http::header::CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        request.header(http::header::ACCEPT, "application/json").body(body)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Request");
        shown.field("method", &self.method).field("path", &self.path).field("query", &self.query);
        match &self.body {
            Some(_) if self.masked => shown.field("body", &"masked"),
            body => shown.field("body", body),
        };
        shown.finish_non_exhaustive()
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn fill(template: &str, segments: &[&str]) -> String {
    let mut segments = segments.iter();
    let filled: Vec<String> = template
        .split('/')
        .map(|part| {
            let placeholder = part.starts_with('{');
            if placeholder { escape(segments.next().copied().unwrap_or_default()) } else { part.to_owned() }
        })
        .collect();
    filled.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_template_is_filled_in_order_and_segments_are_escaped() {
        let request = Request::get("/accounts/{account_id}/teamnet/routes/network/{cidr}", &["abc", "10.0.0.0/8"]);

        assert_eq!(request.path, "/accounts/abc/teamnet/routes/network/10.0.0.0%2F8");
    }

    #[test]
    fn a_query_is_escaped_and_the_root_may_end_in_a_slash() {
        let request = Request::get("/zones", &[]).with_query("name", "a b&c").with_query("page", "2");

        assert_eq!(request.url("http://api/client/v4/"), "http://api/client/v4/zones?name=a%20b%26c&page=2");
    }

    #[test]
    fn a_masked_body_is_not_shown() {
        let request = Request::new(Method::POST, "/x", &[]).with_body(json!({"secret": "canary"})).masked();

        assert!(!format!("{request:?}").contains("canary"));
    }

    #[test]
    fn a_body_travels_as_json() {
        let request = Request::new(Method::POST, "/x", &[]).with_body(json!({"a": 1}));

        let http = request.to_http("http://api").unwrap();

        assert_eq!(http.headers()["content-type"], "application/json");
        assert_eq!(http.body().as_ref(), br#"{"a":1}"#);
    }
}
