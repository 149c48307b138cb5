//! Texts from the API → texts that may be shown: known secrets and whatever follows `Bearer` are masked, the length is bounded.

use portolan_core::text;

/// Longest message, in characters, that goes into a status, an event or a log line.
pub(crate) const LONGEST: usize = 512;

const MASK: &str = "[redacted]";

/// Masks `secrets` and bearer tokens in `text` and bounds its length; the words around them stay.
pub(crate) fn redact(text: &str, secrets: &[&str]) -> String {
    let masked = mask_bearer(&portolan_core::redact(text, secrets));
    text::shorten(&text::printable(&masked), LONGEST).into_owned()
}

fn mask_bearer(text: &str) -> String {
    const WORD: &str = "bearer ";
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find(WORD) {
        let (before, token) = rest.split_at(at + WORD.len());
        let end = token.find(|c: char| c.is_whitespace() || "\"'`,;)".contains(c)).unwrap_or(token.len());
        shown.push_str(before);
        shown.push_str(if end > 0 { MASK } else { "" });
        rest = &token[end..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_goes_and_the_reason_stays() {
        let shown = redact("Token canary-1 lacks DNS edit (9109)", &["canary-1"]);

        assert_eq!(shown, "Token [redacted] lacks DNS edit (9109)");
    }

    #[test]
    fn whatever_follows_bearer_goes() {
        assert_eq!(
            redact("header 'Bearer abc' and bearer def", &[]),
            "header 'Bearer [redacted]' and bearer [redacted]"
        );
    }

    #[test]
    fn a_long_text_is_cut() {
        let shown = redact(&"é".repeat(600), &[]);

        assert!(shown.chars().count() <= LONGEST && shown.ends_with('…'));
    }
}
