//! An answer → the same without what cannot be equal on two servers.
//!
//! Uids and resourceVersions become numbered by first appearance, so that "the same as before" is still compared.
//! Times, allocated addresses and ports and continue tokens become placeholders.
//! What a parser says about malformed JSON or YAML, and structs that a message prints whole, become placeholders, too.
//! managedFields are put in an order that does not depend on the clock.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a constant"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("a constant"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(10\.0|127\.78)\.\d+\.\d+$").expect("a constant"));
/// The volume with the token of a pod's account, as admission names it.
static TOKEN_VOLUME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}$").expect("a constant"));
/// What follows is worded by the parser of JSON or YAML, which is another one here.
static PARSER: LazyLock<Regex> = LazyLock::new(|| {
    let introductions = [
        r"the object provided is unrecognized \(must be of type \w+\): ",
        r"couldn't get version/kind; json parse error: ",
        r"error decoding (?:YAML|patch): ",
        r"continue key is not valid: ",
    ];
    Regex::new(&format!("(?s)({}).*", introductions.join("|"))).expect("a constant")
});
/// A struct printed whole, with all that Go's internal types have in it.
static VALUE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)Invalid value: [\[{].*[\]}]: ").expect("a constant"));
const WHOLE: &str = "<value>";
/// An object quoted whole, as JSON: Go writes its fields in the order of their struct.
static OBJECT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""\{(?:[^"\\]|\\.)*\}""#).expect("a constant"));
/// A listing of what changed in such a struct.
static CHANGES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)\n@@.*").expect("a constant"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d+").expect("a constant"));

/// Remembers the uids and versions of one transcript.
#[derive(Debug, Default)]
pub(crate) struct Masker {
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
}

impl Masker {
    /// The answer as it is compared.
    pub(crate) fn mask(&mut self, answer: Value) -> Value {
        let Value::Object(mut answer) = answer else {
            return answer;
        };
        let body = answer.remove("body").unwrap_or(Value::Null);
        let mut masked: Map<String, Value> =
            answer.into_iter().map(|(key, value)| (key, mask_warning(value))).collect();
        masked.insert("body".to_owned(), self.body(body));
        Value::Object(masked)
    }

    fn body(&mut self, body: Value) -> Value {
        match body {
            Value::Object(mut body) if body.contains_key("events") => {
                let events = body.remove("events").and_then(|events| events.as_array().cloned()).unwrap_or_default();
                let events: Vec<Value> = events.into_iter().map(|event| self.event(event)).collect();
                json!({"events": events, "end": body.get("end")})
            }
            Value::String(text) => json!(mask_text(&text)),
            other => self.value(other, ""),
        }
    }

    fn event(&mut self, mut event: Value) -> Value {
        if event["type"] == "BOOKMARK" {
            event["object"]["metadata"]["resourceVersion"] = json!("<rv>");
        }
        self.value(event, "")
    }

    fn value(&mut self, value: Value, key: &str) -> Value {
        match value {
            Value::Object(object) if object.get("kind") == Some(&json!("Status")) => self.status(object),
            Value::Object(object) if object.get("kind") == Some(&json!("Table")) => self.table(object),
            Value::Object(object) if object.get("kind") == Some(&json!("APIResourceList")) => by_name(object),
            Value::Object(object) if key == "metadata" => self.metadata(object),
            Value::Object(object) if key == "paths" => Value::Object(self.object(without_others(object))),
            Value::Object(object) => Value::Object(self.object(object)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item, key)).collect()),
            Value::String(text) => json!(self.text(&text, key)),
            Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => json!("<port>"),
            other => other,
        }
    }

    fn object(&mut self, object: Map<String, Value>) -> Map<String, Value> {
        let list = object.contains_key("items") && object.contains_key("metadata");
        object
            .into_iter()
            .map(|(key, value)| {
                let value = match (list, key.as_str()) {
                    (true, "metadata") => list_metadata(value),
                    _ => self.value(value, &key),
                };
                (self.uid(&key), value)
            })
            .collect()
    }

    fn metadata(&mut self, mut object: Map<String, Value>) -> Value {
        if let Some(prefix) = object.get("generateName").and_then(Value::as_str).map(str::to_owned)
            && let Some(name) = object.get_mut("name")
            && name.as_str().is_some_and(|name| name.starts_with(&prefix) && name.len() == prefix.len() + 5)
        {
            *name = json!(format!("{prefix}<random>"));
        }
        if let Some(Value::Array(managers)) = object.get_mut("managedFields") {
            managers.sort_by_key(manager_order);
        }
        Value::Object(self.object(object))
    }

    fn text(&mut self, text: &str, key: &str) -> String {
        match key {
            "resourceVersion" if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0" => {
                let next = self.versions.len() + 1;
                format!("<rv {}>", self.versions.entry(text.to_owned()).or_insert(next))
            }
            "clusterIP" | "clusterIPs" | "cells" if ADDRESS.is_match(text) => "<address>".to_owned(),
            "token" if text.starts_with("eyJ") => "<token>".to_owned(),
            "serverAddress" => "<address>".to_owned(),
            "serverRelativeURL" => text.split_once("?hash=").map_or_else(|| text.to_owned(), |(url, _)| url.to_owned()),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "name" if TOKEN_VOLUME.is_match(text) => "kube-api-access-<random>".to_owned(),
            _ => TIME.replace_all(&self.uid(text), "<time>").into_owned(),
        }
    }

    fn uid(&mut self, text: &str) -> String {
        let number = |found: &regex::Captures<'_>| {
            let next = self.uids.len() + 1;
            format!("<uid {}>", self.uids.entry(found[0].to_owned()).or_insert(next))
        };
        UID.replace_all(text, number).into_owned()
    }

    /// Causes are sorted, and so are the parts of a message that joins several: the real server's order is not stable.
    fn status(&mut self, mut object: Map<String, Value>) -> Value {
        let message = object.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let causes = object.get_mut("details").and_then(|details| details.get_mut("causes"));
        let mut joined = false;
        if let Some(Value::Array(causes)) = causes {
            for cause in causes.iter_mut() {
                let text = cause["message"].as_str().map(mask_text).unwrap_or_default();
                cause["message"] = json!(text);
            }
            causes.sort_by_key(Value::to_string);
            joined = causes.len() > 1;
        }
        let message = mask_text(&message);
        let cut = message.contains(WHOLE) || message.contains('\n');
        let message = match message.split_once('[') {
            // What is masked in it goes up to the last of its parts, whichever that is.
            Some((head, _)) if joined && cut => head.to_owned(),
            _ if joined => in_order(&message),
            _ => message,
        };
        if object.contains_key("message") {
            object.insert("message".to_owned(), json!(message));
        }
        let mut object = self.object(object);
        if let Some(metadata) = object.get_mut("metadata") {
            *metadata = list_metadata(metadata.clone());
        }
        Value::Object(object)
    }

    fn table(&mut self, mut object: Map<String, Value>) -> Value {
        let columns = object.get_mut("columnDefinitions").and_then(Value::as_array_mut);
        let mut ages = Vec::new();
        for (index, column) in columns.into_iter().flatten().enumerate() {
            if column["name"] == "Age" || column["name"] == "Created At" || column["type"] == "date" {
                ages.push(index);
            }
            if let Some(column) = column.as_object_mut() {
                // Prose of the API's documentation, which no client reads.
                column.remove("description");
            }
        }
        for row in object.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            // Later events of a watch have no columns to tell ages by.
            for cell in row["cells"].as_array_mut().into_iter().flatten() {
                if cell.as_str().is_some_and(is_age) {
                    *cell = json!("<age>");
                }
            }
            for index in &ages {
                if let Some(cell) = row["cells"].get_mut(*index) {
                    *cell = json!("<age>");
                }
            }
        }
        let metadata = object.remove("metadata").map(list_metadata);
        let mut object = self.object(object);
        object.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
        Value::Object(object)
    }
}

/// A collection's version moves with every write of every other case.
fn list_metadata(mut metadata: Value) -> Value {
    if metadata["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
        metadata["resourceVersion"] = json!("<rv>");
    }
    if metadata["continue"].as_str().is_some_and(|token| !token.is_empty()) {
        metadata["continue"] = json!("<continue>");
    }
    metadata
}

/// Resources under their names: in which order they are listed means nothing.
fn by_name(mut list: Map<String, Value>) -> Value {
    if let Some(Value::Array(resources)) = list.remove("resources") {
        let named =
            resources.into_iter().map(|resource| (resource["name"].as_str().unwrap_or_default().to_owned(), resource));
        list.insert("resources".to_owned(), Value::Object(named.collect()));
    }
    Value::Object(list)
}

fn manager_order(entry: &Value) -> String {
    let part = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    [part("operation"), part("manager"), part("subresource"), part("apiVersion")].join(" ")
}

/// The index of documents without those of other cases' definitions, which come and go meanwhile. Paths in a
/// document, of whatever definition, begin with a slash.
fn without_others(paths: Map<String, Value>) -> Map<String, Value> {
    let is_others = |path: &str| path.starts_with("apis/") && path.contains(".example.com");
    paths.into_iter().filter(|(path, _)| !is_others(path)).collect()
}

/// The text of each warning header, which is itself quoted.
fn mask_warning(value: Value) -> Value {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(warning).collect(),
        other => other,
    }
}

fn warning(header: &str) -> Value {
    match header.split_once('"') {
        Some((head, text)) => {
            json!(mask_text(&format!("{head}{}", text.strip_suffix('"').unwrap_or(text).replace("\\\"", "\""))))
        }
        None => json!(header),
    }
}

/// A quoted object with its fields in order; what is no JSON is left as it is.
fn sorted_object(quoted: &str) -> String {
    let object = serde_json::from_str::<String>(quoted).ok().and_then(|text| serde_json::from_str(&text).ok());
    object.map_or_else(|| quoted.to_owned(), |object: Value| json!(in_key_order(object).to_string()).to_string())
}

/// Fields by name, and managers in an order that does not depend on the clock.
fn in_key_order(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut sorted: BTreeMap<String, Value> =
                object.into_iter().map(|(key, value)| (key, in_key_order(value))).collect();
            if let Some(Value::Array(managers)) = sorted.get_mut("managedFields") {
                managers.sort_by_key(manager_order);
            }
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_key_order).collect()),
        other => other,
    }
}

/// A message that ends with a list, with its parts in order; what is quoted may be torn, alike on both sides.
fn in_order(message: &str) -> String {
    let Some((head, list)) = message.split_once('[') else { return message.to_owned() };
    let mut parts: Vec<&str> = list.strip_suffix(']').unwrap_or(list).split(", ").collect();
    parts.sort_unstable();
    format!("{head}[{}]", parts.join(", "))
}

/// A message without uids, times and versions.
pub(crate) fn mask_text(text: &str) -> String {
    let text = OBJECT.replace_all(text, |found: &regex::Captures<'_>| sorted_object(&found[0]));
    let text = UID.replace_all(&text, "<uid>");
    let text = TIME.replace_all(&text, "<time>");
    let text = PARSER.replace_all(&text, "$1<what the parser says>");
    let text = VALUE.replace_all(&text, format!("Invalid value: {WHOLE}: "));
    let text = CHANGES.replace_all(&text, "\n");
    let lower = text.to_lowercase();
    if lower.contains("resource version") || lower.contains("resourceversion") {
        return NUMBER.replace_all(&text, "<number>").into_owned();
    }
    text.into_owned()
}

/// `5s`, `3m20s`, `2d`.
fn is_age(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || "smhd".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(['s', 'm', 'h', 'd']) && text.chars().all(is_part)
}

/// What kubectl printed without ages, uids, times, versions, allocated addresses, and the width of columns.
pub(crate) fn mask_output(text: &str) -> String {
    static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let masks = [
            (UID.as_str(), "<uid>"),
            (TIME.as_str(), "<time>"),
            (r"\b[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} [+-]\d{4}", "<time>"),
            (r#"(resourceVersion\\?"?: ?)\\?"\d+\\?""#, "$1<rv>"),
            (r"https://127\.0\.0\.1:\d+", "<url>"),
            (r"\b(10\.0|127\.78)\.\d+\.\d+\b", "<address>"),
            (r"\bgen-[a-z0-9]{5}\b", "gen-<random>"),
            (r"(?m)^[EWI]\d{4} [^\]]*\] ", "<log> "),
            (r"\b(\d+[smhd])+\b", "<age>"),
            (r"(?m)[ \t]+", " "),
        ];
        masks.into_iter().map(|(pattern, mask)| (Regex::new(pattern).expect("a constant"), mask)).collect()
    });
    MASKS.iter().fold(text.to_owned(), |text, (pattern, mask)| pattern.replace_all(&text, *mask).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Masker, mask_output, mask_text};

    #[test]
    fn documents_of_other_cases_are_not_in_the_index() {
        let paths = json!({"apis/apps/v1": {}, "apis/a1.example.com/v1": {}, "/apis/a1.example.com/v1/widgets": {}});

        let masked = Masker::default().mask(json!({"body": {"paths": paths}}));

        assert_eq!(masked["body"]["paths"], json!({"apis/apps/v1": {}, "/apis/a1.example.com/v1/widgets": {}}));
    }

    #[test]
    fn times_are_masked_in_either_form() {
        let printed = "CreationTimestamp: Tue, 17 Nov 2026 14:15:03 +0000 and 2026-11-17T14:15:03Z";

        assert_eq!(mask_output(printed), "CreationTimestamp: <time> and <time>");
    }

    #[test]
    fn an_unchanged_version_is_told_from_a_changed_one() {
        let mut masker = Masker::default();
        let mut seen = |version: &str| masker.mask(json!({"body": {"metadata": {"resourceVersion": version}}}));

        let (first, same, other) = (seen("41"), seen("41"), seen("42"));

        assert_eq!(first, same);
        assert_ne!(first, other);
    }

    #[test]
    fn names_in_messages_are_kept_and_uids_are_not() {
        let uid = "0a1b2c3d-0000-4000-8000-0123456789ab";

        assert_eq!(mask_text(&format!(r#"pods "a" has "{uid}""#)), r#"pods "a" has "<uid>""#);
    }

    #[test]
    fn an_object_in_a_message_is_compared_whatever_the_order_of_its_fields() {
        let one = mask_text(r#"Invalid value: "{\"b\":{\"d\":1,\"c\":\"x\"},\"a\":2}": no"#);

        assert_eq!(one, mask_text(r#"Invalid value: "{\"a\":2,\"b\":{\"c\":\"x\",\"d\":1}}": no"#));
        assert_ne!(one, mask_text(r#"Invalid value: "{\"a\":2,\"b\":{\"c\":\"y\",\"d\":1}}": no"#));
    }

    #[test]
    fn managers_in_a_message_are_ordered_without_the_clock() {
        let quoted = |managers: [&str; 2]| {
            let entries = managers.map(|manager| json!({"manager": manager, "operation": "Update"}));
            let object = json!({"metadata": {"managedFields": entries}}).to_string();
            mask_text(&format!("Invalid value: {}: no", json!(object)))
        };

        assert_eq!(quoted(["a", "b"]), quoted(["b", "a"]));
    }

    #[test]
    fn the_parts_of_a_joined_message_are_compared_in_any_order() {
        let status = |message: &str| {
            let causes = json!([{"message": "b", "field": "x"}, {"message": "a", "field": "y"}]);
            json!({"body": {"kind": "Status", "message": message, "details": {"causes": causes}}})
        };
        let mask = |message: &str| Masker::default().mask(status(message));

        assert_eq!(mask("no: [x: b, y: a]"), mask("no: [y: a, x: b]"));
        assert_ne!(mask("no: [x: b, y: a]"), mask("no: [y: a, z: b]"));
    }

    #[test]
    fn managers_are_ordered_without_the_clock() {
        let entry = |manager: &str| json!({"manager": manager, "operation": "Apply", "time": "2026-01-01T00:00:00Z"});
        let metadata = |entries: [&str; 2]| json!({"body": {"metadata": {"managedFields": entries.map(entry)}}});

        let (one, two) = (metadata(["a", "b"]), metadata(["b", "a"]));

        assert_eq!(Masker::default().mask(one), Masker::default().mask(two));
    }
}
