//! Whom an object serves: namespaces by name, hostnames by pattern. What cannot be read allows nothing.

use crate::Hostname;

/// Stands for every namespace in a list of them.
pub const ANY_NAMESPACE: &str = "*";
/// Items of a list of namespaces, as a schema says them.
pub const NAMESPACE_PATTERN: &str = r"^([*]|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$";
/// Items of a list of hostname patterns, as a schema says them.
pub const HOSTNAME_PATTERN: &str =
    r"^([*][.])?[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$";

/// Whether a list of namespaces names one; `*` names all, a list without items none.
pub fn names_namespace(allowed: &[impl AsRef<str>], namespace: &str) -> bool {
    let names = |one: &str| one == ANY_NAMESPACE || one == namespace;
    !namespace.is_empty() && allowed.iter().any(|one| names(one.as_ref().trim()))
}

/// Whether a hostname fits one of the patterns: `example.com` is that name alone, `*.example.com` every name below it,
/// at any depth and wildcards included.
pub fn names_hostname(patterns: &[impl AsRef<str>], hostname: &Hostname) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_ref().trim(), hostname))
}

fn fits(pattern: &str, hostname: &Hostname) -> bool {
    let Ok(pattern) = Hostname::parse(pattern) else { return false };
    match pattern.as_str().strip_prefix('*') {
        Some(suffix) => hostname.as_str().strip_suffix(suffix).is_some_and(|rest| !rest.is_empty()),
        None => pattern == *hostname,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allowed(patterns: &[&str], hostname: &str) -> bool {
        names_hostname(patterns, &Hostname::parse(hostname).unwrap())
    }

    #[test]
    fn a_list_names_its_namespaces_and_a_star_all() {
        assert!(names_namespace(&["shop", "blog"], "blog"));
        assert!(names_namespace(&["*"], "anything"));
        for list in [&["shop"][..], &[], &["sho*"], &["Blog"], &[""]] {
            assert!(!names_namespace(list, "blog"), "{list:?}");
        }
        assert!(!names_namespace(&["*"], ""), "an object without a namespace is in none");
    }

    #[test]
    fn a_plain_pattern_is_that_name_alone() {
        assert!(allowed(&["Example.COM."], "example.com"));
        for other in ["a.example.com", "*.example.com", "example.com.evil.net", "notexample.com"] {
            assert!(!allowed(&["example.com"], other), "{other}");
        }
    }

    #[test]
    fn a_wildcard_pattern_is_every_name_below() {
        for name in ["a.example.com", "a.b.c.example.com", "*.example.com", "*.a.example.com", "_acme.example.com"] {
            assert!(allowed(&["*.example.com"], name), "{name}");
        }
        for other in ["example.com", "notexample.com", "a.example.com.evil.net", "*.com", "com"] {
            assert!(!allowed(&["*.example.com"], other), "{other}");
        }
    }

    #[test]
    fn what_is_no_pattern_allows_nothing() {
        for pattern in ["", "*", "*.", "*.*.example.com", "a.*.example.com", "*example.com", "https://example.com"] {
            assert!(!allowed(&[pattern], "a.example.com"), "{pattern}");
        }
        assert!(!allowed(&[], "a.example.com"));
    }

    proptest! {
        #[test]
        fn whatever_a_wildcard_lets_in_lies_below_its_domain(name in "([a-c]{1,2}[.]){0,3}(example[.]com|ample[.]com|com)") {
            prop_assert_eq!(allowed(&["*.example.com"], &name), name.ends_with(".example.com"));
        }
    }
}
