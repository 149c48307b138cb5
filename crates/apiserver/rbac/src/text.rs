//! Lists and texts as Go prints them in messages that clients see.

use portolan_schema::go::quote;
use serde_json::Value;

/// `%q` of a list: `["a" "b"]`.
pub(crate) fn quoted_list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| quote(item)).collect();
    format!("[{}]", quoted.join(" "))
}

/// Several errors as one: each sentence once, in brackets where there are more.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for error in errors {
        if !once.contains(&error.as_str()) {
            once.push(error);
        }
    }
    match once.as_slice() {
        [only] => (*only).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The texts of a list in JSON.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A text in JSON; empty where it is absent.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
