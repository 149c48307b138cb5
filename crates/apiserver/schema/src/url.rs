//! Absolute URIs and absolute paths, taken apart as Go's `net/url` does it.

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `https`; empty for a bare path.
    pub scheme: String,
    /// Host and port as written.
    pub host: String,
    /// The path, still escaped.
    pub escaped_path: String,
    /// The query without its `?`.
    pub query: String,
    text: String,
}

impl Url {
    /// Reads an absolute URI or an absolute path; fragments are part of what stands before them.
    pub fn parse_request(text: &str) -> Option<Self> {
        if text.is_empty() || text.chars().any(|c| c.is_ascii_control()) {
            return None;
        }
        let (scheme, rest) = split_scheme(text)?;
        if scheme.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match before_query.strip_prefix("//") {
            Some(after) if !scheme.is_empty() || !before_query.starts_with("///") => {
                after.split_at(after.find('/').unwrap_or(after.len()))
            }
            _ => ("", before_query),
        };
        let valid = is_host(host) && is_escaped(path);
        valid.then(|| Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.rsplit_once('@').map_or(host, |(_, host)| host).to_owned(),
            escaped_path: path.to_owned(),
            query: query.to_owned(),
            text: text.to_owned(),
        })
    }

    /// The host without its port and brackets.
    pub fn hostname(&self) -> &str {
        let host = self.port_start().map_or(self.host.as_str(), |at| &self.host[..at]);
        host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
    }

    /// The port; empty where none is given.
    pub fn port(&self) -> &str {
        self.port_start().map_or("", |at| &self.host[at + 1..])
    }

    /// The whole as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn port_start(&self) -> Option<usize> {
        let after_brackets = self.host.rfind(']').unwrap_or(0);
        self.host[after_brackets..].rfind(':').map(|at| at + after_brackets)
    }

    /// The values of each key of the query, unescaped.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        pairs
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((unescape(key)?, unescape(value)?))
            })
            .collect()
    }
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return None,
            ':' => return Some((&text[..at], &text[at + 1..])),
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_host(host: &str) -> bool {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let port_ok =
        |port: &str| port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|c| c.is_ascii_digit()));
    if let Some(rest) = host.strip_prefix('[') {
        return rest.rsplit_once(']').is_some_and(|(address, port)| {
            let address = address.split_once("%25").map_or(address, |(address, _)| address);
            address.parse::<std::net::Ipv6Addr>().is_ok() && port_ok(port)
        });
    }
    let port = host.rfind(':').map_or("", |at| &host[at..]);
    port_ok(port) && !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}', '[', ']']) && is_escaped(host)
}

fn is_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .all(|(at, c)| *c != b'%' || bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(c) = rest.next() {
        match c {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
            }
            c => bytes.push(c),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let url = Url::parse_request("https://me@[::1]:8443/a%20b?k=v&k=w%20x").unwrap();

        assert_eq!(
            (url.scheme.as_str(), url.host.as_str(), url.hostname(), url.port()),
            ("https", "[::1]:8443", "::1", "8443")
        );
        assert_eq!(url.escaped_path, "/a%20b");
        assert_eq!(url.query_pairs(), [("k".to_owned(), "v".to_owned()), ("k".to_owned(), "w x".to_owned())]);
    }

    #[test]
    fn relative_and_broken_urls_are_refused() {
        for text in ["", "a/b", "example.com", ":x", "http://a b/", "http://a:b/", "/a%zz"] {
            assert_eq!(Url::parse_request(text), None, "{text}");
        }
        assert!(Url::parse_request("/path").is_some() && Url::parse_request("mailto:x").is_some());
    }
}
