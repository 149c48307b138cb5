//! Values laid over each other as helm does it: maps are merged, everything else is replaced, null takes away.

use serde_json::{Map, Value};

use crate::Invalid;

/// Reads one file of values; an empty one says nothing.
pub(crate) fn document(text: &str) -> Result<Value, Invalid> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    let read: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Invalid::at("values", format!("this is no YAML: {error}")))?;
    match read {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(read),
        _ => Err(Invalid::at("values", "a file of values is a map, as `replicaCount: 2`")),
    }
}

/// Lays values over others.
pub(crate) fn lay_over(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match (base.get_mut(&key), value) {
                    (_, Value::Null) => drop(base.remove(&key)),
                    (Some(below), value) => lay_over(below, value),
                    (None, value) => drop(base.insert(key, without_nulls(value))),
                }
            }
        }
        (base, over) => *base = without_nulls(over),
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        other => other,
    }
}

/// Obeys `a.b=1,c[0]=x,d={x,y}`.
pub(crate) fn set(values: &mut Value, text: &str) -> Result<(), Invalid> {
    for assignment in split(text, ',') {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(Invalid::at(assignment, "say what it is to be, as `replicaCount=2`"));
        };
        let path = path(key)?;
        let given = wrap(values, &path, typed(value));
        lay_over(values, given);
    }
    Ok(())
}

/// One step of a path.
enum MergeSegment {
    Key(String),
    Index(usize),
}

/// Most elements that a list may be given by index; a typing error must not fill the memory.
const MOST_ELEMENTS: usize = 1000;

fn path(key: &str) -> Result<Vec<MergeSegment>, Invalid> {
    let mut steps = Vec::new();
    for part in split(key, '.') {
        let mut pieces = part.split('[');
        let name = unescaped(pieces.next().unwrap_or_default());
        if name.is_empty() {
            return Err(Invalid::at(key, "a key is missing: write it as `operator.logLevel`"));
        }
        steps.push(MergeSegment::Key(name));
        for index in pieces {
            let index = index.strip_suffix(']').and_then(|index| index.parse().ok());
            let index = index.filter(|index| *index < MOST_ELEMENTS);
            steps.push(MergeSegment::Index(
                index.ok_or_else(|| Invalid::at(key, "an index is a number, as `tolerations[0]`"))?,
            ));
        }
    }
    Ok(steps)
}

/// The value at the end of a path, with what stands around it: lists are replaced as a whole, so the rest of a list
/// comes from what is there.
fn wrap(there: &Value, path: &[MergeSegment], value: Value) -> Value {
    match path {
        [] => value,
        [MergeSegment::Key(key), rest @ ..] => {
            let below = there.get(key).unwrap_or(&Value::Null);
            Value::Object(Map::from_iter([(key.clone(), wrap(below, rest, value))]))
        }
        [MergeSegment::Index(index), rest @ ..] => {
            let mut list = there.as_array().cloned().unwrap_or_default();
            list.resize(list.len().max(index + 1), Value::Null);
            let mut element = list[*index].take();
            let given = wrap(&element, rest, value);
            lay_over(&mut element, given);
            list[*index] = element;
            Value::Array(list)
        }
    }
}

/// Parts of a text, between separators that are neither escaped nor in braces.
fn split(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut part, mut depth, mut escaped) = (Vec::new(), String::new(), 0_u32, false);
    for letter in text.chars() {
        if letter == separator && depth == 0 && !escaped {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        match letter {
            '{' if !escaped => depth += 1,
            '}' if !escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        part.push(letter);
    }
    parts.push(part);
    parts
}

/// A text as what it looks like.
fn typed(text: &str) -> Value {
    if let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        let elements = if inner.is_empty() { Vec::new() } else { split(inner, ',') };
        return Value::Array(elements.iter().map(|element| typed(element)).collect());
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "0" => Value::from(0),
        _ if text.starts_with('0') => Value::String(unescaped(text)),
        _ => text.parse::<i64>().map_or_else(|_| Value::String(unescaped(text)), Value::from),
    }
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(base: Value, sets: &[&str]) -> Value {
        let mut values = base;
        for text in sets {
            set(&mut values, text).unwrap();
        }
        values
    }

    #[test]
    fn maps_are_merged_lists_are_replaced_and_null_takes_away() {
        let mut base = json!({"a": {"x": 1, "y": 2}, "l": [1, 2], "n": {"z": 1}});

        lay_over(&mut base, json!({"a": {"y": 3}, "l": [9], "n": null, "m": {"k": null, "v": 1}}));

        assert_eq!(base, json!({"a": {"x": 1, "y": 3}, "l": [9], "m": {"v": 1}}));
    }

    #[test]
    fn settings_have_types_paths_lists_and_escapes() {
        let set = after(json!({}), &[r"a.b=1,c=true,d={x,2},e=007,f=a\,b,g\.h/i=j", "k[1].v=w", "s="]);

        let wanted = json!({"a": {"b": 1}, "c": true, "d": ["x", 2], "e": "007", "f": "a,b", "g.h/i": "j",
            "k": [null, {"v": "w"}], "s": ""});
        assert_eq!(set, wanted);
    }

    #[test]
    fn an_element_is_changed_where_it_stands() {
        let set = after(json!({"l": [{"a": 1, "b": 2}, {"c": 3}]}), &["l[0].a=5"]);

        assert_eq!(set, json!({"l": [{"a": 5, "b": 2}, {"c": 3}]}));
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_text() {
        for wrong in ["replicaCount", "a..b=1", "a[x]=1", "a[99999999]=1", "=1"] {
            let error = set(&mut json!({}), wrong).unwrap_err();
            assert!(wrong.starts_with(error.path.as_str()), "{error}");
        }
    }

    #[test]
    fn a_file_of_values_is_a_map_or_nothing() {
        assert_eq!(document("# nothing\n").unwrap(), json!({}));
        assert_eq!(document("a: {b: [1]}").unwrap(), json!({"a": {"b": [1]}}));
        assert!(document("- a").unwrap_err().message.contains("is a map"));
        assert!(document("a: [").unwrap_err().message.contains("no YAML"));
    }
}
