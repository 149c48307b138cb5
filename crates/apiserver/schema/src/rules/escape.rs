//! Property names ↔ the identifiers by which CEL reaches them.

/// Words that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const ESCAPES: [(&str, &str); 4] = [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The identifier of a property; `None` where it has none.
pub(crate) fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(allowed) {
        return None;
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if let Some((plain, long)) = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain)) {
            escaped.push_str(long);
            rest = &rest[plain.len()..];
        } else {
            escaped.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Some(escaped)
}

/// The property behind an identifier.
pub(crate) fn unescape(identifier: &str) -> String {
    let word = identifier.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = word.filter(|word| RESERVED.contains(word)) {
        return word.to_owned();
    }
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(first) = rest.chars().next() {
        if let Some((plain, long)) = ESCAPES.iter().find(|(_, long)| rest.starts_with(long)) {
            name.push_str(plain);
            rest = &rest[long.len()..];
        } else {
            name.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        for (name, identifier) in [
            ("plain", "plain"),
            ("namespace", "__namespace__"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("redact__d", "redact__underscores__d"),
            ("x_y", "x_y"),
        ] {
            assert_eq!(escape(name).unwrap(), identifier);
            assert_eq!(unescape(identifier), name);
        }
        assert_eq!((escape("1a"), escape("$ref"), escape("")), (None, None, None));
    }
}
