//! What an API server with some definitions says of manifests, without the server.

use serde_json::Value;

use super::{Definition, default_definition, definition_warnings, validate_definition};
use crate::prune::Root;
use crate::{blocks_rules, check_rules, default, prune, validate};

/// Definitions, and what follows from them.
pub struct Judge {
    definitions: Vec<Value>,
}

impl Judge {
    /// Takes definitions as JSON.
    pub fn new(definitions: impl IntoIterator<Item = Value>) -> Self {
        let complete = |mut definition| {
            default_definition(&mut definition);
            definition
        };
        Self { definitions: definitions.into_iter().map(complete).collect() }
    }

    /// The definitions as a server would store them.
    pub fn definitions(&self) -> impl Iterator<Item = &Value> {
        self.definitions.iter()
    }

    /// The definition of a kind.
    pub fn definition(&self, kind: &str) -> Option<&Value> {
        self.definitions.iter().find(|definition| definition["spec"]["names"]["kind"] == kind)
    }

    /// The definition of a kind, read.
    pub fn parsed(&self, kind: &str) -> Option<Definition> {
        Definition::parse(self.definition(kind)?).ok()
    }

    /// What a server would refuse or warn of when the definitions themselves are applied.
    pub fn complaints(&self) -> Vec<String> {
        let of = |definition: &Value| {
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
            let refused = validate_definition(definition, None).into_iter().map(|error| error.to_string());
            let all: Vec<String> = refused.chain(definition_warnings(definition, None)).collect();
            all.into_iter().map(move |said| format!("{kind}: {said}"))
        };
        self.definitions.iter().flat_map(of).collect()
    }

    /// The short names and columns of a kind, as `Kind [short]: Column, Column`.
    pub fn columns(&self, kind: &str) -> Option<String> {
        let definition = self.parsed(kind)?;
        let columns: Vec<&str> = definition.versions.first()?.columns.iter().map(|one| one.name.as_str()).collect();
        Some(format!("{kind} [{}]: {}", definition.names.short_names.join(","), columns.join(", ")))
    }

    /// The schemas of all fields of a kind's first version, with their paths.
    pub fn fields(&self, kind: &str) -> Vec<(String, &Value)> {
        let mut all = Vec::new();
        let Some(definition) = self.definition(kind) else { return all };
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        fields(&schema["spec"], "spec", &mut all);
        fields(&schema["status"], "status", &mut all);
        all
    }

    /// What a server stores of a manifest, or the sentences that it refuses it with. Unknown fields are refused, as with
    /// strict field validation.
    pub fn applied(&self, manifest: &Value) -> Result<Value, Vec<String>> {
        let (kind, version) = (text(&manifest["kind"]), text(&manifest["apiVersion"]));
        let version = version.rsplit('/').next().unwrap_or_default();
        let definition = self.parsed(kind).ok_or_else(|| vec![format!("no kind {kind}")])?;
        let found = definition.versions.iter().find(|one| one.name == version);
        let schema = &found.ok_or_else(|| vec![format!("no version {version} of {kind}")])?.schema;
        let mut object = manifest.clone();
        let unknown = prune(&mut object, schema.root(), Root::Resource);
        if !unknown.is_empty() {
            return Err(unknown.into_iter().map(|field| format!("unknown field {field}")).collect());
        }
        default(&mut object, schema.root());
        let mut errors = validate(&object, schema.root());
        if blocks_rules(&errors).is_none() {
            errors.extend(check_rules(&object, None, schema.root()));
        }
        if errors.is_empty() { Ok(object) } else { Err(errors.iter().map(ToString::to_string).collect()) }
    }

    /// The sentences that a manifest is refused with, a line each; `accepted` where there is none.
    pub fn refusals(&self, manifest: &Value) -> String {
        self.applied(manifest).map_or_else(|errors| errors.join("\n"), |_| "accepted".to_owned())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn fields<'a>(schema: &'a Value, path: &str, all: &mut Vec<(String, &'a Value)>) {
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}.{name}");
        all.push((path.clone(), field));
        fields(field, &path, all);
    }
    if let Some(items) = schema.get("items") {
        fields(items, &format!("{path}[]"), all);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge() -> Judge {
        let schema = json!({ "type": "object", "properties": {
            "spec": { "type": "object", "required": ["size"], "properties": {
                "size": { "type": "integer", "maximum": 9 },
                "colour": { "type": "string", "default": "red" },
                "parts": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } } } } } });
        Judge::new([json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "boats.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced",
                "names": { "kind": "Boat", "plural": "boats", "shortNames": ["bt"] },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
                    "additionalPrinterColumns": [{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }] }] },
        })])
    }

    fn boat(spec: Value) -> Value {
        json!({ "apiVersion": "example.com/v1", "kind": "Boat", "metadata": { "name": "b" }, "spec": spec })
    }

    #[test]
    fn a_manifest_is_completed_or_refused_as_a_server_would() {
        let judge = judge();

        assert_eq!(judge.applied(&boat(json!({ "size": 3 }))).unwrap()["spec"], json!({ "size": 3, "colour": "red" }));
        assert!(judge.refusals(&boat(json!({ "size": 10 }))).contains("spec.size"));
        assert!(judge.refusals(&boat(json!({ "size": 1, "sail": 2 }))).contains("unknown field spec.sail"));
        assert_eq!(judge.refusals(&boat(json!({ "size": 1 }))), "accepted");
        assert_eq!(judge.refusals(&json!({ "apiVersion": "example.com/v1", "kind": "Ship" })), "no kind Ship");
        assert_eq!(judge.refusals(&json!({ "apiVersion": "example.com/v2", "kind": "Boat" })), "no version v2 of Boat");
    }

    #[test]
    fn a_definition_tells_its_columns_and_fields() {
        let judge = judge();

        assert_eq!(judge.complaints(), Vec::<String>::new());
        assert_eq!(judge.columns("Boat").unwrap(), "Boat [bt]: Size");
        let paths: Vec<String> = judge.fields("Boat").into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["spec.colour", "spec.parts", "spec.parts[].name", "spec.size"]);
    }
}
