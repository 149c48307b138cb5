//! The document of version 2: built-in kinds and CRDs → JSON or protocol buffers.
//!
//! It is made from what version 3 says, piece by piece, so that only the encoded pieces are in memory.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::INFO;
use super::accept::Encoding;
use super::builtin::{self, parse};
use super::custom::CustomVersion;
use super::gnostic::{self, MessageWriter};
use super::parameters::Parameters;
use super::swagger;
use super::template::Template;

const SECURITY_DEFINITIONS: &str = concat!(
    r#"{"BearerToken":{"description":"Bearer Token authentication","type":"apiKey","#,
    r#""name":"authorization","in":"header"}}"#
);

/// Everything that is served, in one document.
pub(super) fn document(definitions: &[Value], encoding: Encoding) -> Bytes {
    let mut pieces = Pieces::new(encoding);
    let (mut paths, mut schemas) = (Vec::new(), Vec::new());
    let (forms, mut parameters) = (pieces.forms, Parameters::default());
    builtin::each(
        |path, item| paths.push((path.to_owned(), (forms.path)(&parameters.share(swagger::path_item(item))))),
        |name, schema| schemas.push((name.to_owned(), (forms.schema)(&swagger::schema(schema)))),
    );
    pieces.paths.extend(paths);
    pieces.definitions.extend(schemas);
    if !definitions.is_empty() {
        let template = Template::read();
        for version in definitions.iter().flat_map(CustomVersion::served) {
            pieces.add(&version.version_2(&template), &mut parameters);
        }
    }
    let shared = parameters.shared().iter();
    pieces.parameters = shared.map(|(name, parameter)| (name.clone(), (forms.parameter)(parameter))).collect();
    match encoding {
        Encoding::Json => Bytes::from(pieces.json()),
        Encoding::Protobuf => Bytes::from(pieces.protobuf()),
    }
}

/// How pieces are written.
#[derive(Clone, Copy)]
struct Forms {
    path: fn(&Value) -> Vec<u8>,
    schema: fn(&Value) -> Vec<u8>,
    parameter: fn(&Value) -> Vec<u8>,
}

/// The document's pieces by name, encoded.
struct Pieces {
    forms: Forms,
    paths: BTreeMap<String, Vec<u8>>,
    definitions: BTreeMap<String, Vec<u8>>,
    parameters: BTreeMap<String, Vec<u8>>,
}

impl Pieces {
    fn new(encoding: Encoding) -> Self {
        use gnostic::version2::{parameter, path_item, schema};
        let text: fn(&Value) -> Vec<u8> = |value| value.to_string().into_bytes();
        let forms = match encoding {
            Encoding::Json => Forms { path: text, schema: text, parameter: text },
            Encoding::Protobuf => Forms { path: path_item, schema, parameter },
        };
        let empty = BTreeMap::new;
        Self { forms, paths: empty(), definitions: empty(), parameters: empty() }
    }

    /// Adds what a CRD says; built-in kinds keep what they say.
    fn add(&mut self, parts: &builtin::DocumentParts, parameters: &mut Parameters) {
        for (path, item) in &parts.paths {
            let item = parameters.share(swagger::path_item(&parse(item)));
            self.paths.entry(path.clone()).or_insert_with(|| (self.forms.path)(&item));
        }
        for (name, schema) in &parts.schemas {
            self.definitions.entry(name.clone()).or_insert_with(|| (self.forms.schema)(&parse(schema)));
        }
    }

    fn json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(br#"{"swagger":"2.0","info":"#);
        out.extend_from_slice(INFO.as_bytes());
        for (key, pieces) in
            [("paths", &self.paths), ("definitions", &self.definitions), ("parameters", &self.parameters)]
        {
            out.extend_from_slice(format!(",\"{key}\":{{").as_bytes());
            for (index, (name, text)) in pieces.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                out.extend_from_slice(format!("{comma}\"{name}\":").as_bytes());
                out.extend_from_slice(text);
            }
            out.push(b'}');
        }
        let end = format!(r#","securityDefinitions":{SECURITY_DEFINITIONS},"security":[{{"BearerToken":[]}}]}}"#);
        out.extend_from_slice(end.as_bytes());
        out
    }

    fn protobuf(&self) -> Vec<u8> {
        let all = |field: u32, pieces: &BTreeMap<String, Vec<u8>>| {
            let mut writer = MessageWriter::default();
            for (name, message) in pieces {
                writer.named(field, name, message);
            }
            writer.finish()
        };
        let mut document = MessageWriter::default();
        document.text(1, "2.0");
        document.message(2, &gnostic::version2::info(&parse(INFO)));
        document.message(8, &all(2, &self.paths));
        document.message(9, &all(1, &self.definitions));
        document.message(10, &all(1, &self.parameters));
        document.message(12, &gnostic::version2::security_requirement("BearerToken"));
        document.message(13, &gnostic::version2::security_definitions(&parse(SECURITY_DEFINITIONS)));
        document.finish()
    }
}
