//! A CRD → the resources that it defines.

use std::sync::Arc;

use portolan_schema::{Schema, SchemaError};
use serde_json::{Map, Value, json};

use super::{Resource, Source, collection};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// What a CRD says about one of its versions.
#[derive(Debug)]
pub(crate) struct Custom {
    /// As the CRD has it.
    pub(crate) schema: Schema,
    /// With `apiVersion`, `kind` and `metadata` added, for field ownership.
    pub(crate) typed: Schema,
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Vec<Column>,
    /// Fields that field selectors may name, without the leading dot.
    pub(crate) selectable: Vec<String>,
    pub(crate) warning: Option<String>,
    /// Every stored text was written under this very schema.
    pub(crate) verbatim: bool,
}

impl Custom {
    /// The fields whose change makes a new generation.
    pub(crate) fn counted<'a>(&'a self, object: &'a Value) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(name, _)| *name != "metadata" && !(self.status && *name == "status"))
    }
}

/// Where the scale subresource finds its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

impl Scale {
    pub(super) fn builtin() -> Self {
        Self {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            selector: Some(".spec.selector".to_owned()),
        }
    }
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: String,
}

/// The resources of a CRD, one for each served version.
pub(crate) fn resources(definition: &Value) -> Result<Vec<Arc<Resource>>, SchemaError> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Later generations and several versions mean that a text may have been written under another schema.
    let verbatim = definition["metadata"]["generation"].as_i64().unwrap_or(1) <= 1 && versions.len() == 1;
    let served = versions.iter().filter(|v| v["served"] == json!(true));
    let mut resources = Vec::new();
    for version in served {
        resources.push(Arc::new(resource(definition, version, verbatim)?));
    }
    resources.sort_by(|a, b| compare_versions(&b.version, &a.version));
    Ok(resources)
}

fn resource(definition: &Value, version: &Value, verbatim: bool) -> Result<Resource, SchemaError> {
    let spec = &definition["spec"];
    let accepted = &definition["status"]["acceptedNames"];
    let names = if accepted["plural"].as_str().is_some_and(|p| !p.is_empty()) { accepted } else { &spec["names"] };
    let (group, plural) = (text(spec, "group"), text(names, "plural"));
    let kind = text(names, "kind");
    let name = text(version, "name");
    Ok(Resource {
        list_kind: match text(names, "listKind") {
            empty if empty.is_empty() => format!("{kind}List"),
            given => given,
        },
        singular: match text(names, "singular") {
            empty if empty.is_empty() => kind.to_lowercase(),
            given => given,
        },
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        namespaced: spec["scope"] == json!("Namespaced"),
        verbs: VERBS.to_vec(),
        collection: Arc::from(collection(&plural, &group)),
        source: Source::Custom(Box::new(custom(version, &group, &kind, verbatim)?)),
        version: name,
        group,
        kind,
        plural,
    })
}

fn custom(version: &Value, group: &str, kind: &str, verbatim: bool) -> Result<Custom, SchemaError> {
    let structural = version["schema"].get("openAPIV3Schema").cloned().unwrap_or_else(|| json!({"type": "object"}));
    let subresources = &version["subresources"];
    let scale = subresources.get("scale").filter(|s| s.is_object()).map(|scale| Scale {
        spec_replicas: text(scale, "specReplicasPath"),
        status_replicas: text(scale, "statusReplicasPath"),
        selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
    });
    let warning = (version["deprecated"] == json!(true)).then(|| {
        let given = version["deprecationWarning"].as_str().map(str::to_owned);
        given.unwrap_or_else(|| format!("{group}/{} {kind} is deprecated", text(version, "name")))
    });
    Ok(Custom {
        schema: Schema::parse(&structural)?,
        typed: Schema::parse(&with_metadata(structural))?,
        status: subresources.get("status").is_some_and(Value::is_object),
        scale,
        columns: columns(version),
        selectable: list(version, "selectableFields")
            .iter()
            .map(|f| text(f, "jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        warning,
        verbatim,
    })
}

fn columns(version: &Value) -> Vec<Column> {
    let given = list(version, "additionalPrinterColumns");
    if given.is_empty() {
        let description = "CreationTimestamp is a timestamp representing the server time when this object was created. \
                           It is not guaranteed to be set in happens-before order across separate operations. Clients \
                           may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the \
                           system. Read-only. Null for lists. More info: \
                           https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
        return vec![Column {
            name: "Age".to_owned(),
            type_: "date".to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority: 0,
            path: ".metadata.creationTimestamp".to_owned(),
        }];
    }
    let read = |column: &Value| Column {
        name: text(column, "name"),
        type_: text(column, "type"),
        format: text(column, "format"),
        description: match text(column, "description") {
            empty if empty.is_empty() => {
                format!("Custom resource definition column (in JSONPath format): {}", text(column, "jsonPath"))
            }
            given => given,
        },
        priority: column["priority"].as_i64().unwrap_or(0),
        path: text(column, "jsonPath"),
    };
    given.iter().map(read).collect()
}

/// The schema with what every object has beside it.
fn with_metadata(mut structural: Value) -> Value {
    if let Some(schema) = structural.as_object_mut() {
        let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
            properties.insert("kind".to_owned(), json!({"type": "string"}));
            properties.insert("metadata".to_owned(), object_meta());
        }
    }
    structural
}

/// `ObjectMeta` as field ownership sees it.
fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": {"type": "integer"}, "creationTimestamp": text,
        "deletionTimestamp": text, "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text, "kind": text, "name": text, "uid": text,
                "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
            }},
        },
        "managedFields": {
            "type": "array", "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }})
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    list(value, field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Orders versions as Kubernetes prefers them: `v2` > `v1` > `v1beta2` > `v1beta1` > `v1alpha1` > anything else.
pub(super) fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    match (stability(a), stability(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => std::cmp::Ordering::Greater,
        (None, Some(_)) => std::cmp::Ordering::Less,
        // Others are in alphabetical order, the first one preferred.
        (None, None) => b.cmp(a),
    }
}

fn stability(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    match &rest[digits..] {
        "" => Some((2, major, 0)),
        tail => {
            let (level, minor) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
                (Some(minor), _) => (1, minor),
                (None, Some(minor)) => (0, minor),
                (None, None) => return None,
            };
            Some((level, major, minor.parse().ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_by_stability_then_number() {
        let mut versions = vec!["v1alpha1", "foo10", "v2", "v1beta2", "v10", "v1", "v11beta2", "foo1"];

        versions.sort_by(|a, b| compare_versions(b, a));

        assert_eq!(versions, ["v10", "v2", "v1", "v11beta2", "v1beta2", "v1alpha1", "foo1", "foo10"]);
    }
}
