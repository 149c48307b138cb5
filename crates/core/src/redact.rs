//! Secrets out of texts.

/// What stands where a secret stood.
const MASK: &str = "[redacted]";

/// The text with every secret masked, also where it was escaped as in a JSON string. The longest secret goes first, so
/// that one that contains another leaves nothing behind. Empty secrets are passed over.
pub fn redact(text: &str, secrets: &[&str]) -> String {
    let mut forms: Vec<String> = secrets.iter().flat_map(|secret| [(*secret).to_owned(), escaped(secret)]).collect();
    forms.retain(|form| !form.is_empty());
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), MASK))
}

fn escaped(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn code_and_message_survive_without_the_token() {
        let text = "9109: Invalid access token `s3cr3t-value` (request 12)";

        assert_eq!(redact(text, &["s3cr3t-value"]), "9109: Invalid access token `[redacted]` (request 12)");
    }

    #[test]
    fn a_secret_inside_a_longer_one_leaves_nothing_behind() {
        assert_eq!(redact("key=abcdef and abc", &["abc", "abcdef"]), "key=[redacted] and [redacted]");
    }

    #[test]
    fn an_escaped_secret_is_found_in_json() {
        assert_eq!(redact(r#"{"password":"a\"b\\c"}"#, &[r#"a"b\c"#]), r#"{"password":"[redacted]"}"#);
    }

    #[test]
    fn an_empty_secret_changes_nothing() {
        assert_eq!(redact("as it was", &["", ""]), "as it was");
    }

    proptest! {
        #[test]
        fn no_secret_is_left(before in ".{0,20}", secret in "[A-Za-z0-9_\"\\\\-]{12,40}", after in ".{0,20}") {
            let text = format!("{before}{secret}{after}");

            prop_assert!(!redact(&text, &[&secret]).contains(&secret));
        }
    }
}
