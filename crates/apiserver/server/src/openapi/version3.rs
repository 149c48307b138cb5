//! A document of version 3: its parts → JSON or protocol buffers.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::INFO;
use super::accept::Encoding;
use super::builtin::{DocumentParts, parse, parts_of};
use super::custom::CustomVersion;
use super::gnostic::{self, MessageWriter};
use super::template::Template;

const CUSTOM_INFO: &str = r#"{"title":"Kubernetes CRD Swagger","version":"v0.1.0"}"#;
const SECURITY_SCHEMES: &str = concat!(
    r#"{"BearerToken":{"type":"apiKey","description":"Bearer Token authentication","#,
    r#""name":"authorization","in":"header"}}"#
);

/// The document at a path: about built-in kinds, or about those of these CRDs.
pub(super) fn document(definitions: &[Value], path: &str, encoding: Encoding) -> Bytes {
    match parts_of(path) {
        Some(parts) => encode(INFO, &parts, Some(SECURITY_SCHEMES), encoding),
        None => custom(&Template::read(), definitions, path, encoding),
    }
}

/// The document about the CRDs of a group and version.
pub(super) fn custom(template: &Template, definitions: &[Value], path: &str, encoding: Encoding) -> Bytes {
    let mut parts = DocumentParts::default();
    let mut subresources = Vec::new();
    for version in definitions.iter().flat_map(CustomVersion::served).filter(|version| version.is_of(path)) {
        let one = version.version_3(template);
        parts.paths.extend(one.paths);
        parts.schemas.extend(one.schemas);
        subresources.extend(version.subresources());
    }
    parts.schemas.extend(template.shared(&subresources).map(|(name, schema)| (name.clone(), schema.clone())));
    encode(CUSTOM_INFO, &parts, None, encoding)
}

fn encode(info: &str, parts: &DocumentParts, security: Option<&str>, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Json => Bytes::from(json(info, parts, security)),
        Encoding::Protobuf => Bytes::from(protobuf(info, parts, security)),
    }
}

fn json(info: &str, parts: &DocumentParts, security: Option<&str>) -> String {
    let security = security.map(|schemes| format!(r#","securitySchemes":{schemes}"#)).unwrap_or_default();
    let (paths, schemas) = (object(&parts.paths), object(&parts.schemas));
    format!(r#"{{"openapi":"3.0.0","info":{info},"paths":{paths},"components":{{"schemas":{schemas}{security}}}}}"#)
}

/// An object of values that are JSON already; its keys need no escapes.
pub(super) fn object(fields: &BTreeMap<String, String>) -> String {
    let mut text = String::with_capacity(fields.iter().map(|(key, value)| key.len() + value.len() + 4).sum());
    for (key, value) in fields {
        let opening = if text.is_empty() { "{\"" } else { ",\"" };
        for part in [opening, key, "\":", value] {
            text.push_str(part);
        }
    }
    if text.is_empty() { "{}".to_owned() } else { text + "}" }
}

/// The message `Document` of the schema that goes by the name of gnostic.
fn protobuf(info: &str, parts: &DocumentParts, security: Option<&str>) -> Vec<u8> {
    let mut paths = MessageWriter::default();
    for (path, item) in &parts.paths {
        paths.named(1, path, &gnostic::version3::path_item(&parse(item)));
    }
    let mut schemas = MessageWriter::default();
    for (name, schema) in &parts.schemas {
        schemas.named(1, name, &gnostic::version3::schema_or_reference(&parse(schema)));
    }
    let mut components = MessageWriter::default();
    components.message(1, &schemas.finish());
    if let Some(security) = security {
        components.message(7, &gnostic::version3::security_schemes(&parse(security)));
    }
    let mut document = MessageWriter::default();
    document.text(1, "3.0.0");
    document.message(2, &gnostic::version3::info(&parse(info)));
    document.message(4, &paths.finish());
    document.message(5, &components.finish());
    document.finish()
}
