//! Patterns of origins, as tenants and the operator's configuration list them.
//!
//! `scheme://host` and `scheme://host:port`, each part `*` for any, a host `*.suffix` for every name below it;
//! `unix:/path`, `http_status:404` and words as they are, with `*` at their end for whatever follows. `{{ namespace }}`
//! stands for the route's namespace. What cannot be read allows nothing.

use super::place::{Host, Origin};

/// Items of a list of origins, as a schema says them.
pub(crate) const PATTERN: &str =
    r"^([a-z*][a-z0-9+.-]*://[^/?#@]+|(unix|unix[+]tls|http_status):.+|bastion|socks-proxy|hello_world|hello-world)$";

/// Whether one of the patterns fits an origin.
pub(crate) fn is_listed(patterns: &[String], origin: &Origin, namespace: &str) -> bool {
    patterns.iter().any(|pattern| fits(&filled_in(pattern.trim(), namespace), origin))
}

fn filled_in(pattern: &str, namespace: &str) -> String {
    pattern.replace("{{ namespace }}", namespace).replace("{{namespace}}", namespace)
}

fn fits(pattern: &str, origin: &Origin) -> bool {
    let Some((scheme, rest)) = pattern.split_once("://") else { return fits_word(pattern, origin) };
    let (host, port) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, port)) => (format!("[{address}]"), port.strip_prefix(':')),
        None => rest.split_once(':').map_or((rest.to_owned(), None), |(host, port)| (host.to_owned(), Some(port))),
    };
    let port = port.filter(|port| *port != "*");
    (scheme == "*" || scheme == origin.scheme)
        && fits_host(&host, origin)
        && port.is_none_or(|port| port.parse().is_ok_and(|port: u16| origin.effective_port() == Some(port)))
}

fn fits_word(pattern: &str, origin: &Origin) -> bool {
    match pattern.strip_suffix('*').filter(|start| start.contains(':')) {
        Some(start) => origin.host.is_none() && origin.text.starts_with(start),
        None => origin.host.is_none() && origin.text == pattern,
    }
}

fn fits_host(pattern: &str, origin: &Origin) -> bool {
    let Some(host) = &origin.host else { return false };
    match (pattern, pattern.strip_prefix("*.")) {
        ("*", _) => true,
        (_, Some(below)) => match (Host::parse(below), host) {
            (Some(Host::Name(below)), Host::Name(name)) => {
                name.strip_suffix(below.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            _ => false,
        },
        (_, None) => Host::parse(pattern).as_ref() == Some(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(pattern: &str, url: &str) -> bool {
        is_listed(&[pattern.to_owned()], &Origin::parse(url).unwrap(), "sandbox")
    }

    #[test]
    fn a_pattern_is_scheme_host_and_port() {
        for (pattern, url) in [
            ("http://web.shop.svc", "http://web.shop.svc.cluster.local:8080"),
            ("http://web.shop.svc.cluster.local", "http://web.shop.svc"),
            ("http://web.shop.svc:80", "http://web.shop.svc"),
            ("*://*.shop.svc", "tcp://db.shop.svc:5432"),
            ("https://*", "https://anything.example.com"),
            ("http://*.{{ namespace }}.svc", "http://web.sandbox.svc:80"),
            ("*://10.0.0.7:*", "http://0xa000007:99"),
            ("http://[fd00::7]:80", "http://[fd00:0::7]"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("unix:/run/apps/*", "unix:/run/apps/a.sock"),
            ("bastion", "bastion"),
        ] {
            assert!(listed(pattern, url), "{pattern} {url}");
        }
    }

    #[test]
    fn what_a_pattern_does_not_say_it_does_not_allow() {
        for (pattern, url) in [
            ("http://web.shop.svc:80", "http://web.shop.svc:8080"),
            ("http://web.shop.svc", "https://web.shop.svc"),
            ("*://*.shop.svc", "http://shop.svc.example.com"),
            ("http://*.example.com", "http://example.com"),
            ("http://*.example.com", "http://notexample.com"),
            ("http://*.{{ namespace }}.svc", "http://web.shop.svc:80"),
            ("unix:/run/app.sock", "unix:/run/docker.sock"),
            ("*", "bastion"),
            ("*://*", "bastion"),
            ("*://*", "unix:/run/x"),
            ("", "hello_world"),
            ("http://", "http://web"),
            ("http://web/path", "http://web"),
            ("http://10.0.0.*", "http://10.0.0.7"),
        ] {
            assert!(!listed(pattern, url), "{pattern} {url}");
        }
    }
}
