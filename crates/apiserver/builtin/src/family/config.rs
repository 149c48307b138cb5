//! `ConfigMap` and `Secret`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, same};
use crate::meta::{invalid, too_long};
use crate::names;
use crate::value::{default, entries, is_empty, list_mut, object, remove, text};

/// An account names its secrets, and nothing else of them.
pub(crate) fn keep_secret_names(account: &mut Value) {
    for secret in list_mut(account, "secrets") {
        *secret = secret.get("name").filter(|name| !is_empty(name)).map_or(json!({}), |name| json!({"name": name}));
    }
}

/// A Secret's type.
pub(crate) fn secret_defaults(secret: &mut Value) {
    default(secret, "type", "Opaque");
}

/// `stringData` is only for writing: it goes into `data`.
pub(crate) fn merge_string_data(secret: &mut Value) {
    let Some(plain) = remove(secret, "stringData") else {
        return;
    };
    if entries(&plain).next().is_none() {
        return;
    }
    let Some(data) = object(secret, "data") else { return };
    for (key, value) in entries(&plain) {
        data[key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
}

const LIMIT: usize = 1024 * 1024;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// Keys, size and immutability of a `ConfigMap`.
pub(crate) fn validate_config_map(map: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    if let Some(old) = old {
        immutable(map, old, &["data", "binaryData"], errors);
    }
    let mut size = 0;
    for (key, value) in entries(&map["data"]) {
        let path = root.field("data");
        invalid(errors, &path.key(key), key, names::config_key(key));
        if map["binaryData"].get(key).is_some() {
            errors.push(FieldError::invalid(&path.key(key), &json!(key), "duplicate of key present in binaryData"));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(&map["binaryData"]) {
        invalid(errors, &root.field("binaryData").key(key), key, names::config_key(key));
        size += decoded_length(value);
    }
    if size > LIMIT {
        // The real server names no field here, and prints it so.
        let mut error = too_long(&root, LIMIT);
        "[]".clone_into(&mut error.field);
        errors.push(error);
    }
}

/// Keys, size, type and immutability of a Secret.
pub(crate) fn validate_secret(secret: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    if let Some(old) = old {
        same(errors, secret, old, "type", &root);
        immutable(secret, old, &["data"], errors);
    }
    let path = root.field("data");
    let mut size = 0;
    for (key, value) in entries(&secret["data"]) {
        invalid(errors, &path.key(key), key, names::config_key(key));
        size += decoded_length(value);
    }
    if size > LIMIT {
        errors.push(too_long(&path, LIMIT));
    }
    typed_content(secret, errors);
}

fn immutable(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if old["immutable"] != json!(true) {
        return;
    }
    let root = Path::root();
    if new["immutable"] != json!(true) {
        errors.push(FieldError::forbidden(&root.field("immutable"), IMMUTABLE));
    }
    for field in fields {
        if new[*field] != old[*field] && !(is_empty(&new[*field]) && is_empty(&old[*field])) {
            errors.push(FieldError::forbidden(&root.field(field), IMMUTABLE));
        }
    }
}

fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default().trim_end_matches('=');
    text.len() * 3 / 4
}

/// What a Secret of a known type has to hold.
fn typed_content(secret: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("data");
    let absent = |key: &str| secret["data"].get(key).is_none();
    let require = |key: &str| {
        if absent(key) {
            errors.push(FieldError::required(&path.key(key), ""));
        }
    };
    match text(secret, "type") {
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().for_each(require),
        "kubernetes.io/ssh-auth" if is_empty(&secret["data"]["ssh-privatekey"]) => {
            errors.push(FieldError::required(&path.key("ssh-privatekey"), ""));
        }
        "kubernetes.io/basic-auth" if absent("username") && absent("password") => {
            ["username", "password"].into_iter().for_each(require);
        }
        "kubernetes.io/dockerconfigjson" => docker(secret, ".dockerconfigjson", errors),
        "kubernetes.io/dockercfg" => docker(secret, ".dockercfg", errors),
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            if is_empty(&secret["metadata"]["annotations"][name]) {
                errors.push(FieldError::required(&root.field("metadata").field("annotations").key(name), ""));
            }
        }
        _ => {}
    }
}

fn docker(secret: &Value, key: &str, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("data");
    let Some(encoded) = secret["data"].get(key).and_then(Value::as_str) else {
        errors.push(FieldError::required(&path.key(key), ""));
        return;
    };
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    if serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes).is_err() {
        let mismatch =
            |what: &str| format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        let detail = match (serde_json::from_slice(&bytes), first) {
            (Ok(Value::Array(_)), _) => mismatch("array"),
            (Ok(Value::String(_)), _) => mismatch("string"),
            (Ok(Value::Number(_)), _) => mismatch("number"),
            (Ok(Value::Bool(_)), _) => mismatch("bool"),
            (_, None) => "unexpected end of JSON input".to_owned(),
            (_, Some(&byte)) => format!("invalid character '{}' looking for beginning of value", char::from(byte)),
        };
        errors.push(FieldError::invalid(&path.key(key), &json!("<secret contents redacted>"), detail));
    }
}
