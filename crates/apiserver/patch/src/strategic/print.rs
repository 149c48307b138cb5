//! JSON values as Go prints them in messages.

use portolan_schema::go;
use serde_json::Value;

/// `%v`: maps by key, texts without quotes.
pub fn print(value: &Value) -> String {
    nested(value, &|scalar| match scalar {
        Value::Null => "<nil>".to_owned(),
        other => plain(other),
    })
}

/// `%s`: what is no text is marked with its type.
pub(crate) fn print_as_text(value: &Value) -> String {
    nested(value, &|scalar| match scalar {
        Value::String(text) => text.clone(),
        Value::Null => type_name(scalar).to_owned(),
        other => format!("%!s({}={})", type_name(other), plain(other)),
    })
}

/// The Go type behind a JSON value, as `%s` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn plain(scalar: &Value) -> String {
    match scalar {
        Value::String(text) => text.clone(),
        Value::Number(number) => go::number(number),
        other => other.to_string(),
    }
}

fn nested(value: &Value, scalar: &dyn Fn(&Value) -> String) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| nested(item, scalar)).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> =
                fields.into_iter().map(|(name, value)| format!("{name}:{}", nested(value, scalar))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => scalar(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_go_prints_them() {
        let value = json!({"b": [1, "x", null, 1.5], "a": {"c": true}});

        assert_eq!(print(&value), "map[a:map[c:true] b:[1 x <nil> 1.5]]");
    }

    #[test]
    fn what_is_no_text_is_marked_where_a_text_belongs() {
        assert_eq!(print_as_text(&json!("merge")), "merge");
        assert_eq!(print_as_text(&json!(5)), "%!s(int64=5)");
        assert_eq!(print_as_text(&json!(null)), "%!s(<nil>)");
        assert_eq!(print_as_text(&json!({"a": [true]})), "map[a:[%!s(bool=true)]]");
    }
}
