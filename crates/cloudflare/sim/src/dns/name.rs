//! Names of records: relative ones are completed, all are lower-case and end in the zone.

use crate::reply::Refusal;

/// The full name that a record gets.
pub(super) fn expand(given: &str, zone: &str) -> Result<String, Refusal> {
    let name = given.trim_end_matches('.').to_ascii_lowercase();
    let full = match name.as_str() {
        "" | "@" => zone.to_owned(),
        name if name == zone || name.ends_with(&format!(".{zone}")) => name.to_owned(),
        name => format!("{name}.{zone}"),
    };
    if is_record_name(&full) { Ok(full) } else { Err(Refusal::bad(9000, format!("DNS name is invalid: {given}"))) }
}

/// Whether this is a name that a record can have: letters, digits, `-` and `_`; `*` alone as first label.
fn is_record_name(name: &str) -> bool {
    is_domain(name.strip_prefix("*.").unwrap_or(name)) && name.len() <= 253
}

/// Whether this is a host name (underscores allowed), without a trailing dot.
pub(crate) fn is_domain(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    !name.is_empty() && name.len() <= 253 && name.split('.').all(label)
}

/// A name and what is above it: `a.b.c`, `b.c`, `c`.
pub(crate) fn ancestors(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_are_completed() {
        let full = |given: &str| expand(given, "example.com").unwrap();

        assert_eq!(full("@"), "example.com");
        assert_eq!(full("www"), "www.example.com");
        assert_eq!(full("WWW.Example.com."), "www.example.com");
        assert_eq!(full("*.a"), "*.a.example.com");
        assert_eq!(full("www.other.org"), "www.other.org.example.com");
        assert_eq!(full("notexample.com"), "notexample.com.example.com");
    }

    #[test]
    fn names_that_no_record_can_have_are_refused() {
        for given in ["a..b", "a b", "-a", "a.*.b", "ü", &"x".repeat(64), &"x.".repeat(130)] {
            assert!(expand(given, "example.com").is_err(), "{given}");
        }
    }
}
