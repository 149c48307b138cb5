//! The domains of an Access application: which requests they cover, and how closely.
//!
//! A `*` in the host stands for letters of one label, in the path for anything. A path covers what is below it.

use serde_json::Value;

/// How closely a domain fits: exact hosts before wildcards, longer hosts before shorter, longer paths before shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Closeness {
    exact: bool,
    host: usize,
    path: usize,
}

/// The domain of an application that fits best.
pub(super) fn best<'a>(app: &'a Value, host: &str, path: &str) -> Option<(Closeness, &'a str)> {
    crate::access::view::domains(app).filter_map(|domain| Some((closeness(domain, host, path)?, domain))).max()
}

fn closeness(domain: &str, host: &str, path: &str) -> Option<Closeness> {
    let domain = domain.split_once("://").map_or(domain, |(_, rest)| rest);
    let (name, below) = domain.split_once('/').map_or((domain, ""), |(name, below)| (name, below));
    let fits = covers_host(&name.to_ascii_lowercase(), host) && covers_path(below, path);
    fits.then(|| Closeness { exact: !name.contains('*'), host: name.len(), path: below.trim_end_matches('*').len() })
}

fn covers_host(pattern: &str, host: &str) -> bool {
    let (patterns, labels) = (pattern.split('.').rev(), host.split('.').rev());
    patterns.clone().count() == labels.clone().count()
        && patterns.zip(labels).all(|(pattern, label)| glob(pattern, label))
}

fn covers_path(pattern: &str, path: &str) -> bool {
    let path = path.trim_start_matches('/');
    let pattern = pattern.trim_end_matches('/');
    if pattern.contains('*') {
        return glob(pattern, path);
    }
    pattern.is_empty() || path == pattern || path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a text fits a pattern in which `*` stands for anything.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    let ends = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
    ends.into_iter().any(|at| glob(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn covers(domain: &str, url: &str) -> bool {
        let (host, path) = url.split_once('/').map_or((url, "/".to_owned()), |(host, path)| (host, format!("/{path}")));
        closeness(domain, host, &path).is_some()
    }

    #[test]
    fn a_domain_covers_all_its_paths_and_no_other_name() {
        assert!(covers("example.com", "example.com"));
        assert!(covers("example.com", "example.com/alpha/beta"));
        assert!(covers("example.com/*", "example.com/alpha"));
        assert!(!covers("example.com", "alpha.example.com"));
        assert!(!covers("alpha.example.com", "example.com"));
    }

    #[test]
    fn a_wildcard_covers_one_label() {
        assert!(covers("*.example.com", "alpha.example.com"));
        assert!(!covers("*.example.com", "example.com"));
        assert!(!covers("*.example.com", "foo.bar.example.com"));
        assert!(covers("*.*.example.com", "foo.bar.example.com"));
        assert!(covers("staging-*.example.com", "staging-1.example.com"));
    }

    #[test]
    fn a_path_covers_what_is_below_it() {
        assert!(covers("example.com/eng", "example.com/eng"));
        assert!(covers("example.com/eng", "example.com/eng/exec"));
        assert!(!covers("example.com/eng", "example.com/engine"));
        assert!(covers("example.com/eng*", "example.com/engine"));
        assert!(covers("example.com/*/admin", "example.com/a/admin"));
        assert!(!covers("example.com/eng", "example.com/"));
    }

    #[test]
    fn the_closest_domain_wins() {
        let app = json!({
            "domain": "*.example.com", "self_hosted_domains": ["*.example.com", "a.example.com", "a.example.com/eng"],
        });
        let best = |path: &str| best(&app, "a.example.com", path).map(|(_, domain)| domain);

        assert_eq!(best("/eng/x"), Some("a.example.com/eng"));
        assert_eq!(best("/"), Some("a.example.com"));
    }
}
