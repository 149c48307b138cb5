//! What version 3 says about a schema or a path → the same in the words of version 2.

use serde_json::{Map, Value, json};

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Media types in the order in which the real server lists them; others come after these.
const MEDIA_TYPES: [&str; 10] = [
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// A schema: no defaults, references without a wrapper, and one type where there are two.
pub(super) fn schema(value: &Value) -> Value {
    let Some(object) = value.as_object() else {
        return value.clone();
    };
    let mut out = Map::new();
    for (key, value) in object {
        match key.as_str() {
            "default" => {}
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields: Map<String, Value> = fields.map(|(name, field)| (name.clone(), schema(field))).collect();
                out.insert(key.clone(), Value::Object(fields));
            }
            "items" | "additionalProperties" => {
                out.insert(key.clone(), schema(value));
            }
            "allOf" if value[0]["$ref"].is_string() => {
                out.insert("$ref".to_owned(), reference(&value[0]["$ref"]));
            }
            "$ref" => {
                out.insert(key.clone(), reference(value));
            }
            "oneOf" => {
                out.insert("type".to_owned(), json!("string"));
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}

fn reference(value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default();
    json!(text.replacen("#/components/schemas/", "#/definitions/", 1))
}

/// A path with its operations.
pub(super) fn path_item(item: &Value) -> Value {
    let mut out = Map::new();
    for method in METHODS {
        if let Some(found) = item.get(method) {
            out.insert(method.to_owned(), operation(found));
        }
    }
    if let Some(parameters) = item["parameters"].as_array() {
        out.insert("parameters".to_owned(), parameters.iter().map(parameter).collect());
    }
    Value::Object(out)
}

fn operation(operation: &Value) -> Value {
    let mut out = Map::new();
    for (key, value) in operation.as_object().into_iter().flatten() {
        match key.as_str() {
            "requestBody" | "parameters" => {}
            "responses" => {
                let responses = value.as_object().into_iter().flatten();
                let responses: Map<String, Value> =
                    responses.map(|(code, one)| (code.clone(), response(one))).collect();
                out.insert(key.clone(), Value::Object(responses));
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    let produced = media_types(&operation["responses"]["200"]["content"]);
    out.insert("consumes".to_owned(), json!(consumed(operation, &produced)));
    out.insert("produces".to_owned(), json!(produced));
    out.insert("schemes".to_owned(), json!(["https"]));
    let body = operation.get("requestBody").map(body_parameter);
    let others = operation["parameters"].as_array().into_iter().flatten().map(parameter);
    let parameters: Vec<Value> = body.into_iter().chain(others).collect();
    if !parameters.is_empty() {
        out.insert("parameters".to_owned(), Value::Array(parameters));
    }
    Value::Object(out)
}

/// What an operation reads. Version 3 does not say so of those without a body: resources of the real server's own read
/// anything, others what they write.
fn consumed(operation: &Value, produced: &[String]) -> Vec<String> {
    let read = media_types(&operation["requestBody"]["content"]);
    let is_own = operation.get("x-kubernetes-action").is_some() && produced.iter().any(|t| !is_text(t));
    match (read.is_empty(), is_own) {
        (false, _) => read,
        (true, true) => vec!["*/*".to_owned()],
        (true, false) => produced.to_vec(),
    }
}

fn is_text(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "application/yaml")
}

fn media_types(content: &Value) -> Vec<String> {
    let mut types: Vec<String> = content.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    types.sort_by_key(|name| MEDIA_TYPES.iter().position(|known| known == name).unwrap_or(MEDIA_TYPES.len()));
    types
}

fn response(response: &Value) -> Value {
    let mut out = json!({"description": response["description"]});
    let content = response["content"].as_object().and_then(|content| content.values().next());
    if let Some(found) = content.and_then(|content| content.get("schema")) {
        out["schema"] = schema(found);
    }
    out
}

fn body_parameter(body: &Value) -> Value {
    let content = body["content"].as_object().and_then(|content| content.values().next());
    let mut out = json!({"name": "body", "in": "body"});
    if let Some(found) = content.and_then(|content| content.get("schema")) {
        out["schema"] = schema(found);
    }
    if body["required"] == true {
        out["required"] = json!(true);
    }
    out
}

/// A parameter's type stands beside its name.
fn parameter(parameter: &Value) -> Value {
    let mut out = parameter.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(type_)) = out.remove("schema") {
        out.extend(type_);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_loses_defaults_wrappers_and_choices() {
        let given = json!({"properties": {
            "a": {"default": {}, "description": "A.", "allOf": [{"$ref": "#/components/schemas/x.B"}]},
            "q": {"oneOf": [{"type": "string"}, {"type": "number"}], "format": "quantity"},
        }});

        assert_eq!(
            schema(&given),
            json!({"properties": {
                "a": {"description": "A.", "$ref": "#/definitions/x.B"}, "q": {"type": "string", "format": "quantity"},
            }})
        );
    }

    #[test]
    fn an_operation_names_its_body_among_its_parameters() {
        let content = json!({"*/*": {"schema": {"$ref": "#/components/schemas/x.B"}}});
        let written = json!({"application/vnd.kubernetes.protobuf": {}, "application/json": {}});
        let item = json!({"put": {
            "x-kubernetes-action": "put", "requestBody": {"content": content, "required": true},
            "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string"}}],
            "responses": {"200": {"description": "OK", "content": written}},
        }});

        let operation = &path_item(&item)["put"];

        assert_eq!(operation["consumes"], json!(["*/*"]));
        assert_eq!(operation["produces"], json!(["application/json", "application/vnd.kubernetes.protobuf"]));
        assert_eq!(operation["parameters"][0]["schema"]["$ref"], "#/definitions/x.B");
        assert_eq!(operation["parameters"][1], json!({"name": "dryRun", "in": "query", "type": "string"}));
    }
}
