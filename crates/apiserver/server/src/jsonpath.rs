//! The `JSONPath` of printer columns: fields, indexes, wildcards and simple filters.

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<JsonPathSegment>,
}

#[derive(Clone, Debug, PartialEq)]
enum JsonPathSegment {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.type=="Ready")]`.
    Filter {
        path: JsonPath,
        equal: bool,
        value: Value,
    },
    /// `[?(@.type)]`.
    Exists(JsonPath),
}

impl JsonPath {
    /// Reads `.status.conditions[?(@.type=="Ready")].status`; `None` where it cannot be read.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('$').unwrap_or_else(|| text.trim());
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() || after.starts_with('[') {
                    rest = after;
                    continue;
                }
                field(after)
            } else if let Some(inside) = rest.strip_prefix('[') {
                bracket(inside)?
            } else {
                field(rest)
            };
            steps.push(step);
            rest = after;
        }
        Some(Self { steps })
    }

    /// Every value that the path leads to.
    pub(crate) fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        self.steps.iter().fold(vec![root], |values, step| values.into_iter().flat_map(|v| step.follow(v)).collect())
    }
}

impl JsonPathSegment {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => at(value, *index).into_iter().collect(),
            Self::All => children(value),
            Self::Filter { path, equal, value: wanted } => children(value)
                .into_iter()
                .filter(|child| path.find(child).first().is_some_and(|found| (*found == wanted) == *equal))
                .collect(),
            Self::Exists(path) => children(value).into_iter().filter(|child| !path.find(child).is_empty()).collect(),
        }
    }
}

fn at(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let index = if index < 0 { i64::try_from(items.len()).ok()? + index } else { index };
    items.get(usize::try_from(index).ok()?)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// A name up to the next `.` or `[`; a backslash takes the next character as it is.
fn field(text: &str) -> (JsonPathSegment, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (named(name), &text[at..]),
            _ => name.push(c),
        }
    }
    (named(name), "")
}

fn named(name: String) -> JsonPathSegment {
    if name == "*" { JsonPathSegment::All } else { JsonPathSegment::Field(name) }
}

fn bracket(inside: &str) -> Option<(JsonPathSegment, &str)> {
    if let Some(filter) = inside.strip_prefix("?(") {
        let end = filter.find(")]")?;
        return Some((parse_filter(&filter[..end])?, &filter[end + 2..]));
    }
    let end = inside.find(']')?;
    let (content, after) = (inside[..end].trim(), &inside[end + 1..]);
    let quoted = content.strip_prefix('\'').and_then(|c| c.strip_suffix('\''));
    let quoted = quoted.or_else(|| content.strip_prefix('"').and_then(|c| c.strip_suffix('"')));
    let step = match (quoted, content) {
        (Some(name), _) => JsonPathSegment::Field(name.replace("\\.", ".")),
        (None, "*") => JsonPathSegment::All,
        (None, index) => JsonPathSegment::Index(index.parse().ok()?),
    };
    Some((step, after))
}

fn parse_filter(text: &str) -> Option<JsonPathSegment> {
    let operator = ["==", "!="].into_iter().find_map(|op| text.find(op).map(|at| (at, op)));
    let Some((at, operator)) = operator else {
        return Some(JsonPathSegment::Exists(JsonPath::parse(text.trim().strip_prefix('@')?)?));
    };
    let path = JsonPath::parse(text[..at].trim().strip_prefix('@')?)?;
    let literal = text[at + 2..].trim();
    let value = match literal.strip_prefix('\'').and_then(|l| l.strip_suffix('\'')) {
        Some(single) => Value::from(single),
        None => serde_json::from_str(literal).ok()?,
    };
    Some(JsonPathSegment::Filter { path, equal: operator == "==", value })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_columns_ask_for() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "dotted"}},
            "spec": {"hosts": ["x", "y"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        });
        let cases = [
            (".spec.hosts[0]", vec![json!("x")]),
            (".spec.hosts[-1]", vec![json!("y")]),
            (".spec.hosts[*]", vec![json!("x"), json!("y")]),
            (r#".status.conditions[?(@.type=="Ready")].status"#, vec![json!("True")]),
            (".status.conditions[?(@.type=='Other')].status", vec![json!("False")]),
            (r".metadata.annotations.a\.b/c", vec![json!("dotted")]),
            (".metadata.annotations['a.b/c']", vec![json!("dotted")]),
            (".spec.missing.deeper", vec![]),
        ];
        for (path, expected) in cases {
            let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
