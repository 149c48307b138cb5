//! A string → what is wrong with it as a DNS label, label value, qualified name and the like, in Kubernetes' words.

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_WORDS: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// Labels are measured by a newer rule, which counts bytes and says so.
fn too_many_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// The sentence about a pattern that a value does not match, with examples of values that do.
pub(crate) fn pattern(words: &str, regex: &str, examples: &[&str]) -> String {
    let mut text = words.to_owned();
    text.push_str(" (");
    if !examples.is_empty() {
        let quoted: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
        text.push_str("e.g. ");
        text.push_str(&quoted.join(" or "));
    }
    text.push_str("regex used for validation is '");
    text.push_str(regex);
    text.push_str("')");
    text
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn matches_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    lower_or_digit(first) && lower_or_digit(last) && bytes.iter().all(|&b| lower_or_digit(b) || b == b'-')
}

fn matches_subdomain(value: &str) -> bool {
    value.split('.').all(matches_label)
}

fn matches_qualified(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(inner)
}

/// RFC 1123 label: at most 63 characters, no dots.
pub fn dns_label(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push(too_long(63));
    }
    if !matches_label(value) {
        problems.push(if matches_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                         start and end with an alphanumeric character";
            pattern(words, DNS_LABEL, &["my-name", "123-abc"])
        });
    }
    problems
}

/// RFC 1123 subdomain: labels joined by dots, at most 253 characters.
pub fn dns_subdomain(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 253 {
        problems.push(too_long(253));
    }
    if !matches_subdomain(value) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                     must start and end with an alphanumeric character";
        problems.push(pattern(words, DNS_SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// A subdomain whose labels may have underscores, as search domains do.
pub(crate) fn underscored_subdomain(value: &str) -> Vec<String> {
    const LABEL: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let label = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        let (Some(first), Some(last)) = (part.bytes().next(), part.bytes().last()) else {
            return false;
        };
        lower_or_digit(first)
            && lower_or_digit(last)
            && part.bytes().all(|b| lower_or_digit(b) || matches!(b, b'-' | b'_'))
    };
    let mut problems = Vec::new();
    if value.len() > 253 {
        problems.push(too_long(253));
    }
    if !value.split('.').all(label) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
                     and must start and end with an alphanumeric character";
        problems.push(pattern(words, &format!(r"{LABEL}(\.{LABEL})*"), &["example.com"]));
    }
    problems
}

/// The name of an HTTP header.
pub(crate) fn header_name(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern(words, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// `*.` and a subdomain.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 253 {
        problems.push(too_long(253));
    }
    if !value.strip_prefix("*.").is_some_and(matches_subdomain) {
        let words = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                     consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        problems.push(pattern(words, &format!(r"\*\.{DNS_SUBDOMAIN}"), &["*.example.com"]));
    }
    problems
}

/// A label key, annotation key or finalizer: an optional subdomain with a slash, and a name.
pub fn qualified_name(value: &str) -> Vec<String> {
    let examples = &["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        ["", name] => {
            problems.push("prefix part must be non-empty".to_owned());
            *name
        }
        [prefix, name] => {
            // Keys are measured by the newer rule, which counts bytes.
            let bytes = |problem: String| problem.replace(&too_long(253), &too_many_bytes(253));
            let problems_of_prefix = dns_subdomain(prefix).into_iter().map(bytes);
            problems.extend(problems_of_prefix.map(|problem| format!("prefix part {problem}")));
            *name
        }
        _ => {
            let words = pattern(QUALIFIED_WORDS, QUALIFIED, examples);
            let hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {words} {hint}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_many_bytes(63)));
    }
    if !matches_qualified(name) {
        problems.push(format!("name part {}", pattern(QUALIFIED_WORDS, QUALIFIED, examples)));
    }
    problems
}

/// A label's value: empty, or up to 63 characters that start and end alphanumeric.
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push(too_many_bytes(63));
    }
    if !value.is_empty() && !matches_qualified(value) {
        let words = format!("a valid label must be an empty string or {}", QUALIFIED_WORDS.trim_start_matches("must "));
        problems.push(pattern(&words, &format!("({QUALIFIED})?"), &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// A key of a `ConfigMap` or Secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 253 {
        problems.push(too_long(253));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if value.is_empty() || !value.bytes().all(allowed) {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        problems.push(pattern(words, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match value {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        dots if dots.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// A name that can stand as one segment of a URL path.
pub fn path_segment(value: &str) -> Vec<String> {
    if matches!(value, "." | "..") {
        return vec![format!("may not be '{value}'")];
    }
    path_segment_prefix(value)
}

/// The beginning of a [`path_segment`].
pub fn path_segment_prefix(value: &str) -> Vec<String> {
    ["/", "%"].iter().filter(|part| value.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// A port's name: up to 15 lower case letters, digits and single hyphens.
pub fn port_name(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 15 {
        problems.push(too_long(15));
    }
    if value.is_empty() || !value.bytes().all(|b| lower_or_digit(b) || b == b'-') {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|b| b.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// A port's number: 1 to 65535.
pub fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// An environment variable's name: printable ASCII without `=`.
pub fn environment_name(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.is_empty() {
        problems.push("environment variable name must be non-empty".to_owned());
    }
    if value.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
        let words = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        problems.push(words.to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_with_dots_is_told_so() {
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert!(dns_label("a-b").is_empty());
    }

    #[test]
    fn a_bad_subdomain_gets_an_example_and_the_pattern() {
        assert_eq!(
            dns_subdomain("A_b"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
              and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
    }

    #[test]
    fn a_label_key_is_judged_by_its_prefix_and_its_name() {
        assert!(qualified_name("example.com/Name_1").is_empty());
        assert_eq!(qualified_name("/name"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("a/").len(), 2);
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist of"));
    }

    #[test]
    fn a_label_value_may_be_empty_but_not_end_with_a_dash() {
        assert!(label_value("").is_empty());
        assert!(label_value("a-")[0].starts_with("a valid label must be an empty string or consist of"));
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    }

    #[test]
    fn config_keys_refuse_path_traversal() {
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert!(config_key(".a").is_empty());
    }
}
