//! CRDs → what is published about the versions that they serve.

use serde_json::{Map, Value, json};

use super::builtin::{DocumentParts, parse};
use super::structural;
use super::swagger;
use super::template::{Template, TemplateNames};
use crate::api::Api;
use crate::registry::Registry;

/// The CRDs that have a document in common.
pub(super) struct CustomDocument {
    /// `apis/GROUP/VERSION`.
    pub(super) path: String,
    pub(super) definitions: Vec<Value>,
}

/// The documents about custom resources.
pub(super) fn documents(api: &Api, registry: &Registry) -> Vec<CustomDocument> {
    let paths = registry.custom_versions().into_iter().map(|(group, version)| format!("apis/{group}/{version}"));
    paths.map(|path| CustomDocument { definitions: definitions_of(api, registry, &path), path }).collect()
}

/// The CRDs that a document is about.
pub(super) fn definitions_of(api: &Api, registry: &Registry, path: &str) -> Vec<Value> {
    let Some((group, version)) = group_version(path) else {
        return Vec::new();
    };
    registry.definitions_serving(group, version).filter_map(|name| definition(api, registry, name)).collect()
}

/// Every CRD that is served.
pub(super) fn definitions(api: &Api, registry: &Registry) -> Vec<Value> {
    registry.definitions().filter_map(|name| definition(api, registry, name)).collect()
}

fn definition(api: &Api, registry: &Registry, name: &str) -> Option<Value> {
    let definitions = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
    api.store.get(&definitions.key("", name)).map(|stored| api.object(definitions, &stored))
}

pub(super) fn group_version(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("apis/")?.split_once('/')
}

/// A CRD in one version.
pub(super) struct CustomVersion<'a> {
    names: TemplateNames,
    version: &'a Value,
}

impl<'a> CustomVersion<'a> {
    /// The versions that a CRD serves.
    pub(super) fn served(definition: &'a Value) -> impl Iterator<Item = Self> {
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        versions.filter(|version| version["served"] == true).map(|version| Self::of(definition, version))
    }

    fn of(definition: &Value, version: &'a Value) -> Self {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&spec["names"]["kind"]);
        let names = TemplateNames {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            plural: text(&spec["names"]["plural"]),
            list_kind: spec["names"]["listKind"].as_str().map_or_else(|| format!("{kind}List"), str::to_owned),
            kind,
            namespaced: spec["scope"] == "Namespaced",
        };
        Self { names, version }
    }

    pub(super) fn is_of(&self, path: &str) -> bool {
        group_version(path) == Some((&self.names.group, &self.names.version))
    }

    pub(super) fn subresources(&self) -> Vec<&'static str> {
        let has = |name: &&str| self.version["subresources"][*name].is_object();
        ["status", "scale"].into_iter().filter(has).collect()
    }

    /// Paths and schemas as version 3 has them.
    pub(super) fn version_3(&self, template: &Template) -> DocumentParts {
        let object = match self.schema() {
            Some(schema) => self.native(template, structural::publish(schema), structural::OpenapiVersion::Version3),
            None => self.anything(),
        };
        self.parts(template, object, parse(&template.list(&self.names)))
    }

    /// The same, with schemas as version 2 has them. Paths are still those of version 3.
    pub(super) fn version_2(&self, template: &Template) -> DocumentParts {
        let object = match self.schema() {
            Some(schema) if schema.get("x-kubernetes-preserve-unknown-fields") != Some(&json!(true)) => {
                let reduced = structural::reduce(structural::publish(schema));
                self.native(template, reduced, structural::OpenapiVersion::Version2)
            }
            // Clients of version 2 refuse every field beside those that are named, so none is.
            Some(_) | None => self.anything(),
        };
        self.parts(template, object, swagger::schema(&parse(&template.list(&self.names))))
    }

    fn parts(&self, template: &Template, object: Map<String, Value>, mut list: Value) -> DocumentParts {
        let mut object = Value::Object(object);
        if let Some(fields) = self.selectable() {
            object["x-kubernetes-selectable-fields"] = fields.clone();
            list["x-kubernetes-selectable-fields"] = fields;
        }
        let names = &self.names;
        let schemas =
            [(names.model(&names.kind), object.to_string()), (names.model(&names.list_kind), list.to_string())];
        DocumentParts { paths: template.paths(names, &self.subresources()), schemas: schemas.into() }
    }

    fn schema(&self) -> Option<&'a Map<String, Value>> {
        self.version["schema"]["openAPIV3Schema"].as_object()
    }

    /// An object of which no field is known.
    fn anything(&self) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        self.add_kind(&mut schema);
        schema
    }

    /// A schema with what every object has: kind, version and metadata.
    fn native(
        &self,
        template: &Template,
        schema: Map<String, Value>,
        target: structural::OpenapiVersion,
    ) -> Map<String, Value> {
        let mut schema = schema;
        let mut general = parse(&template.object(&self.names));
        if target == structural::OpenapiVersion::Version2 {
            general = swagger::schema(&general);
        }
        let fields = schema.entry("properties").or_insert_with(|| json!({}));
        for field in ["apiVersion", "kind", "metadata"] {
            fields[field] = general["properties"][field].clone();
        }
        structural::add_embedded(&mut schema, &general["properties"]["metadata"], target);
        self.add_kind(&mut schema);
        schema
    }

    fn add_kind(&self, schema: &mut Map<String, Value>) {
        let TemplateNames { group, version, kind, .. } = &self.names;
        let kinds = json!([{"group": group, "kind": kind, "version": version}]);
        schema.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
    }

    fn selectable(&self) -> Option<Value> {
        let fields = self.version["selectableFields"].as_array().filter(|fields| !fields.is_empty())?;
        let path = |field: &Value| {
            let path = field["jsonPath"].as_str().unwrap_or_default();
            json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)})
        };
        Some(fields.iter().map(path).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(schema: Value) -> Value {
        json!({"spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema},
                 "selectableFields": [{"jsonPath": ".spec.color"}]},
                {"name": "v2", "served": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        }})
    }

    fn object(parts: &DocumentParts) -> Value {
        parse(&parts.schemas["com.example.v1.Widget"])
    }

    #[test]
    fn a_served_version_is_published_with_what_every_object_has() {
        let definition = definition(json!({"type": "object", "description": "A widget."}));
        let versions: Vec<CustomVersion<'_>> = CustomVersion::served(&definition).collect();

        let parts = versions[0].version_3(&Template::read());

        assert_eq!(versions.len(), 1);
        let object = object(&parts);
        assert_eq!(object["description"], "A widget.");
        assert!(object["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
        assert_eq!(object["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
        assert!(parse(&parts.schemas["com.example.v1.WidgetList"])["description"] == "WidgetList is a list of Widget");
    }

    #[test]
    fn what_takes_any_field_names_none_in_version_2() {
        let definition = definition(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        let version = CustomVersion::served(&definition).next().expect("one is served");

        let parts = version.version_2(&Template::read());

        assert_eq!(object(&parts).get("properties"), None);
    }
}
