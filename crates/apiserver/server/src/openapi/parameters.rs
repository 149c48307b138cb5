//! Operations that repeat their parameters → operations that refer to them by name.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Value, json};

/// The order in which Go writes a parameter: names are hashes of that text.
const ORDER: [&str; 7] = ["uniqueItems", "type", "description", "name", "in", "required", "schema"];

/// The parameters that operations share.
#[derive(Default)]
pub(super) struct Parameters {
    shared: BTreeMap<String, Value>,
}

impl Parameters {
    /// A path whose parameters are references, but for those that are its own.
    pub(super) fn share(&mut self, mut item: Value) -> Value {
        for (key, value) in item.as_object_mut().into_iter().flatten() {
            let parameters = if key == "parameters" { Some(value) } else { value.get_mut("parameters") };
            for parameter in parameters.and_then(Value::as_array_mut).into_iter().flatten() {
                self.share_one(parameter);
            }
        }
        item
    }

    fn share_one(&mut self, parameter: &mut Value) {
        if !is_shared(parameter) {
            return;
        }
        let name = format!("{}-{}", parameter["name"].as_str().unwrap_or_default(), hash(&go_text(parameter)));
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        self.shared.insert(name, std::mem::replace(parameter, reference));
    }

    pub(super) fn shared(&self) -> &BTreeMap<String, Value> {
        &self.shared
    }
}

/// Names and bodies belong to a kind; old clients look for the other two on the operation itself.
fn is_shared(parameter: &Value) -> bool {
    match (parameter["in"].as_str(), parameter["name"].as_str()) {
        (Some("query" | "path"), Some("name")) | (Some("query"), Some("fieldValidation" | "dryRun")) => false,
        (Some("body"), _) => {
            let reference = parameter["schema"]["$ref"].as_str().unwrap_or_default();
            reference.starts_with("#/definitions/io.k8s.apimachinery")
        }
        _ => true,
    }
}

fn go_text(parameter: &Value) -> String {
    let known = ORDER.iter().filter_map(|key| Some(format!("\"{key}\":{}", parameter.get(*key)?)));
    let text = format!("{{{}}}", known.collect::<Vec<_>>().join(","));
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Six bytes of FNV-1, in eight letters.
fn hash(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte);
    }
    base64::engine::general_purpose::URL_SAFE.encode(&hash.to_be_bytes()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_parameter_has_the_name_that_the_real_server_gives_it() {
        let description = "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent \
                           indicates a browser or command-line HTTP tool (curl and wget).";
        let pretty =
            json!({"name": "pretty", "in": "query", "description": description, "type": "string", "uniqueItems": true});
        let own = json!({"name": "dryRun", "in": "query", "type": "string"});
        let mut parameters = Parameters::default();

        let item = parameters.share(json!({"get": {"parameters": [pretty, own]}}));

        assert_eq!(item["get"]["parameters"], json!([{"$ref": "#/parameters/pretty-tJGM1-ng"}, own]));
        assert_eq!(parameters.shared().len(), 1);
    }
}
