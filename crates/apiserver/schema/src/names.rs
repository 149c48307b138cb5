//! The forms of Kubernetes names, and the sentences that say what is wrong with one.

/// Longest DNS label.
const LABEL_LIMIT: usize = 63;
/// Longest DNS subdomain.
const SUBDOMAIN_LIMIT: usize = 253;

const LABEL_FORM: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_FORM: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const DNS1035_FORM: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const QUALIFIED_FORM: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const VALUE_FORM: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn regex_hint(form: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}'")).collect();
    format!("{form} (e.g. {}, regex used for validation is '{pattern}')", examples.join(",  or "))
}

fn is_lower(c: u8) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn has_label_form(name: &str) -> bool {
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&a), Some(&z)) if is_lower(a) && is_lower(z))
        && bytes.iter().all(|&c| is_lower(c) || c == b'-')
}

fn has_qualified_form(name: &str) -> bool {
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(a), Some(z)) if a.is_ascii_alphanumeric() && z.is_ascii_alphanumeric())
        && bytes.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
}

/// What is wrong with an RFC 1123 label.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > LABEL_LIMIT {
        wrong.push(too_long(LABEL_LIMIT));
    }
    if !has_label_form(name) {
        if has_subdomain_form(name) {
            wrong.push("must not contain dots".to_owned());
        } else {
            wrong.push(regex_hint(LABEL_FORM, "[a-z0-9]([-a-z0-9]*[a-z0-9])?", &["my-name", "123-abc"]));
        }
    }
    wrong
}

fn has_subdomain_form(name: &str) -> bool {
    name.split('.').all(has_label_form)
}

/// What is wrong with an RFC 1123 subdomain.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > SUBDOMAIN_LIMIT {
        wrong.push(too_long(SUBDOMAIN_LIMIT));
    }
    if !has_subdomain_form(name) {
        let pattern = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
        wrong.push(regex_hint(SUBDOMAIN_FORM, pattern, &["example.com"]));
    }
    wrong
}

/// What is wrong with an RFC 1035 label.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > LABEL_LIMIT {
        wrong.push(too_long(LABEL_LIMIT));
    }
    if !has_label_form(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        wrong.push(regex_hint(DNS1035_FORM, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    wrong
}

/// What is wrong with a label or annotation key such as `example.com/name`.
pub fn qualified_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<&str> = name.split('/').collect();
    let local = match parts.as_slice() {
        [local] => *local,
        [prefix, local] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(dns1123_subdomain(prefix).into_iter().map(|w| format!("prefix part {w}")));
            }
            *local
        }
        _ => {
            let hint = regex_hint(
                QUALIFIED_FORM,
                "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
                &["MyName", "my.name", "123-abc"],
            );
            return vec![format!(
                "a valid label key {hint} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if local.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if local.len() > LABEL_LIMIT {
        wrong.push(format!("name part {}", too_long(LABEL_LIMIT)));
    }
    if !has_qualified_form(local) {
        let pattern = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
        wrong.push(format!("name part {}", regex_hint(QUALIFIED_FORM, pattern, &["MyName", "my.name", "123-abc"])));
    }
    wrong
}

/// What is wrong with a label's value.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_LIMIT {
        wrong.push(too_long(LABEL_LIMIT));
    }
    if !value.is_empty() && !has_qualified_form(value) {
        let pattern = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
        wrong.push(regex_hint(VALUE_FORM, pattern, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

/// What keeps a name from being one segment of a URL's path.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_have_nothing_wrong_with_them() {
        assert!(dns1123_label("my-name").is_empty() && dns1123_subdomain("a.b-c.d").is_empty());
        assert!(dns1035_label("abc-1").is_empty() && qualified_name("example.com/My_name").is_empty());
        assert!(label_value("").is_empty() && label_value("a_b").is_empty() && path_segment("A b").is_empty());
    }

    #[test]
    fn bad_names_are_told_what_is_wrong() {
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
        assert!(qualified_name("/x")[0].starts_with("prefix part must be non-empty"));
        assert!(dns1035_label("1a")[0].contains("a DNS-1035 label"));
    }
}
