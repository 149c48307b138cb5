//! `ConfigMap` and `Secret`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::value::{default, entries, object, remove};

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
