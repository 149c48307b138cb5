//! The short JSON paths of CRDs (`.spec.replicas`, `.spec['a.b']`): where they lead in a schema.

use crate::node::Cursor;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// `.name`.
    Dot(String),
    /// `['name']`.
    Bracket(String),
}

/// Reads a path; the error is the server's sentence.
pub fn parse(path: &str) -> Result<Vec<PathSegment>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if end == 0 && after.is_empty() {
                return Err("unexpected end of JSON path".to_owned());
            }
            // A delimiter stands for itself, as in `..`.
            let end = end.max(1);
            steps.push(PathSegment::Dot(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let (name, after) = quoted(after)?;
            steps.push(PathSegment::Bracket(name));
            rest = after;
        } else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len()).max(1);
            return Err(format!("expected [ or . but got: {}", &rest[..end]));
        }
    }
    Ok(steps)
}

fn quoted(text: &str) -> Result<(String, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of JSON path".to_owned());
    }
    let Some(inner) = text.strip_prefix('\'') else {
        let end = text.find(['.', '[', ']']).unwrap_or(text.len()).max(1);
        return Err(format!("expected single quoted string but got {}", &text[..end]));
    };
    let mut name = String::new();
    let mut characters = inner.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\'' => {
                let after = &inner[at + 1..];
                return match after.strip_prefix(']') {
                    Some(after) => Ok((name, after)),
                    None if after.is_empty() => Err("unexpected end of JSON path".to_owned()),
                    None => Err(format!(
                        "expected ] but got {}",
                        &after[..after.find(['.', '[', ']']).unwrap_or(after.len()).max(1)]
                    )),
                };
            }
            '\\' => name.push(escaped(characters.next().map(|(_, c)| c))?),
            c => name.push(c),
        }
    }
    Err(format!("expected single quoted string but got {text}"))
}

fn escaped(c: Option<char>) -> Result<char, String> {
    Ok(match c {
        Some('a') => '\u{7}',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\u{b}',
        Some('\'') => '\'',
        Some('\\') => '\\',
        other => {
            let shown = other.map(String::from).unwrap_or_default();
            return Err(format!("invalid string literal: invalid escape char \\{shown}"));
        }
    })
}

/// Follows a path through a schema: the field's name in errors and its schema, or why it leads nowhere.
pub fn resolve<'s>(path: &str, schema: Cursor<'s>) -> Result<(String, Cursor<'s>), String> {
    let mut here = schema;
    let mut field = String::new();
    for step in parse(path)? {
        let (PathSegment::Dot(name) | PathSegment::Bracket(name)) = step;
        let node = here.node();
        let nowhere = || "does not refer to a valid field".to_owned();
        if node.properties.is_empty() {
            here = here.values().ok_or_else(nowhere)?;
            field = format!("{field}[{name}]");
        } else {
            here = here.property(&name).ok_or_else(nowhere)?;
            let dot = if field.is_empty() { "" } else { "." };
            field = format!("{field}{dot}{name}");
        }
    }
    Ok((field, here))
}

/// The field's name in errors; `None` where the path leads nowhere.
pub(crate) fn normalise(path: &str, schema: Cursor<'_>) -> Option<String> {
    resolve(path, schema).ok().map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Schema;

    #[test]
    fn a_path_is_followed_through_properties_and_maps() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a.b": {"type": "object", "additionalProperties": {"type": "string"}},
        }}))
        .unwrap();

        let (field, place) = resolve("['a.b'].key", schema.root()).unwrap();

        assert_eq!(field, "a.b[key]");
        assert_eq!(place.node().type_, Some(crate::Type::String));
        assert_eq!(resolve(".x", schema.root()).unwrap_err(), "does not refer to a valid field");
    }

    #[test]
    fn broken_paths_are_told_apart() {
        assert_eq!(parse("spec").unwrap_err(), "expected [ or . but got: spec");
        assert_eq!(parse(".spec[0]").unwrap_err(), "expected single quoted string but got 0");
        assert_eq!(parse(".spec.").unwrap_err(), "unexpected end of JSON path");
    }
}
