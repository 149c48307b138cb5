//! Two transcripts → the places where they differ.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// One place in one answer where the two servers differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The case's group and name, or the history's seed.
    pub case: String,
    /// The number of the step, from 1, and the step as written.
    pub step: usize,
    pub line: String,
    /// Where in the answer: `status`, `body.metadata.name` …
    pub at: String,
    pub real: String,
    pub embedded: String,
}

/// What is shown where one server has nothing.
pub(crate) const ABSENT: &str = "(absent)";

/// The differences of two transcripts of the same steps, in order.
pub(crate) fn compare(case: &str, lines: &[String], real: &[Value], embedded: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (index, (real, embedded)) in real.iter().zip(embedded).enumerate() {
        let mut places = Vec::new();
        walk("", Some(real), Some(embedded), &mut places);
        found.extend(places.into_iter().map(|(at, real, embedded)| Difference {
            case: case.to_owned(),
            step: index + 1,
            line: lines.get(index).cloned().unwrap_or_default(),
            at,
            real,
            embedded,
        }));
    }
    found
}

type DifferingPlace = (String, String, String);

fn walk(at: &str, real: Option<&Value>, embedded: Option<&Value>, places: &mut Vec<DifferingPlace>) {
    match (real, embedded) {
        (Some(Value::Object(real)), Some(Value::Object(embedded))) => {
            let mut keys: Vec<&String> = real.keys().chain(embedded.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                walk(&join(at, key), real.get(key), embedded.get(key), places);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(embedded))) => {
            for index in 0..real.len().max(embedded.len()) {
                walk(&join(at, &index.to_string()), real.get(index), embedded.get(index), places);
            }
        }
        (Some(Value::String(real)), Some(Value::String(embedded))) if alike(real, embedded) => {}
        (real, embedded) if real == embedded => {}
        (real, embedded) => places.push((at.to_owned(), show(real), show(embedded))),
    }
}

/// Whether two texts are the same but for numbers (ports, versions, generated names) in what they quote.
fn alike(real: &str, embedded: &str) -> bool {
    static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*""#).expect("a constant"));
    if real == embedded {
        return true;
    }
    let between = |text: &str| QUOTED.replace_all(text, "\"\"").into_owned();
    let quoted = |text: &str| QUOTED.find_iter(text).map(|found| found.as_str().to_owned()).collect::<Vec<_>>();
    let has_number = |text: &str| text.contains(|letter: char| letter.is_ascii_digit());
    let pairs = quoted(real).into_iter().zip(quoted(embedded));
    between(real) == between(embedded)
        && pairs.into_iter().all(|(real, embedded)| real == embedded || (has_number(&real) && has_number(&embedded)))
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn show(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| ABSENT.to_owned(), Value::to_string);
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{alike, compare};

    #[test]
    fn a_quoted_text_may_differ_in_its_numbers_only() {
        assert!(alike(r#"pods "a" not found"#, r#"pods "a" not found"#));
        assert!(alike(r#"port "31234" is taken"#, r#"port "30001" is taken"#));
        assert!(!alike(r#"pods "a" not found"#, r#"pods "b" not found"#));
        assert!(!alike(r#"unknown field "spec.x""#, r#"unknown field "x""#));
        assert!(!alike(r#"port "31234" is taken"#, r#"port "31234" is free"#));
        assert!(!alike(r#""1" and "2""#, r#""1""#));
    }

    #[test]
    fn a_difference_is_named_by_step_and_place() {
        let real = [json!({"status": 200}), json!({"body": {"a": [1, 2]}})];
        let embedded = [json!({"status": 200}), json!({"body": {"a": [1]}})];

        let found = compare("case", &["GET x".to_owned(), "GET y".to_owned()], &real, &embedded);

        assert_eq!(found.len(), 1);
        assert_eq!((found[0].step, found[0].at.as_str()), (2, "body.a.1"));
        assert_eq!((found[0].real.as_str(), found[0].embedded.as_str()), ("2", "(absent)"));
    }
}
