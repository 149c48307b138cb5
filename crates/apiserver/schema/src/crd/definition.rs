//! A valid `CustomResourceDefinition` → what a server needs to serve its objects.

use std::sync::Arc;

use serde_json::Value;

use super::{flag, list, text};
use crate::node::{Schema, SchemaError};

/// A kind of custom resource.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The API group.
    pub group: String,
    /// What the kind is called.
    pub names: KindNames,
    /// Where its objects live.
    pub scope: ObjectScope,
    /// Its versions in the order given.
    pub versions: Vec<Version>,
}

/// What a kind is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindNames {
    /// In URLs.
    pub plural: String,
    /// On the command line.
    pub singular: String,
    /// In objects.
    pub kind: String,
    /// In lists of objects.
    pub list_kind: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Groups of resources, such as `all`.
    pub categories: Vec<String>,
}

/// Where objects live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectScope {
    /// In the cluster.
    Cluster,
    /// In a namespace.
    Namespaced,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct Version {
    /// `v1` and the like.
    pub name: String,
    /// Whether it can be asked for.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether it should not be used any more.
    pub deprecated: bool,
    /// What to say then, in place of the usual sentence.
    pub deprecation_warning: Option<String>,
    /// What its objects hold.
    pub schema: Arc<Schema>,
    /// The same schema as JSON, for API documents.
    pub schema_json: Arc<Value>,
    /// Its subresources.
    pub subresources: Subresources,
    /// What tables show, beside name and age.
    pub columns: Vec<Column>,
    /// Fields by which objects can be selected, as `spec.x`.
    pub selectable_fields: Vec<String>,
}

/// The subresources of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subresources {
    /// Whether `status` is written apart.
    pub status: bool,
    /// Where `scale` finds its values.
    pub scale: Option<Scale>,
}

/// The paths of a scale subresource, as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The wanted count.
    pub spec_replicas: String,
    /// The count found.
    pub status_replicas: String,
    /// The selector of the counted pods.
    pub label_selector: Option<String>,
}

/// A column of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// A remark on the type.
    pub format: String,
    /// Help.
    pub description: String,
    /// Columns above 0 are shown by wide output only.
    pub priority: i64,
    /// Where the value is, as `.spec.x`.
    pub json_path: String,
}

impl Definition {
    /// Reads a definition that has its defaults and was found valid.
    pub fn parse(definition: &Value) -> Result<Self, SchemaError> {
        let spec = definition.get("spec").unwrap_or(&Value::Null);
        let versions = list(spec.get("versions")).iter().map(Version::parse).collect::<Result<_, _>>()?;
        Ok(Self {
            group: text(spec.get("group")).to_owned(),
            names: KindNames::parse(spec.get("names").unwrap_or(&Value::Null)),
            scope: if text(spec.get("scope")) == "Cluster" { ObjectScope::Cluster } else { ObjectScope::Namespaced },
            versions,
        })
    }

    /// The version in which objects are stored.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The warning that goes with every answer in a deprecated version.
    pub fn deprecation_warning(&self, version: &Version) -> Option<String> {
        let usual = || format!("{}/{} {} is deprecated", self.group, version.name, self.names.kind);
        version.deprecated.then(|| version.deprecation_warning.clone().unwrap_or_else(usual))
    }
}

impl KindNames {
    /// Reads `spec.names` or `status.acceptedNames`.
    pub fn parse(names: &Value) -> Self {
        let one = |name: &str| text(names.get(name)).to_owned();
        let all = |name: &str| list(names.get(name)).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            plural: one("plural"),
            singular: one("singular"),
            kind: one("kind"),
            list_kind: one("listKind"),
            short_names: all("shortNames"),
            categories: all("categories"),
        }
    }
}

impl Version {
    fn parse(version: &Value) -> Result<Self, SchemaError> {
        let schema_json = version.pointer("/schema/openAPIV3Schema").filter(|s| !s.is_null());
        let schema = schema_json.map_or_else(|| Ok(Schema::anything()), Schema::parse)?;
        let selectable = list(version.get("selectableFields")).iter().map(|field| text(field.get("jsonPath")));
        Ok(Self {
            name: text(version.get("name")).to_owned(),
            served: flag(version.get("served")),
            storage: flag(version.get("storage")),
            deprecated: flag(version.get("deprecated")),
            deprecation_warning: version.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned),
            schema: Arc::new(schema),
            schema_json: Arc::new(schema_json.cloned().unwrap_or(Value::Null)),
            subresources: Subresources::parse(version.get("subresources").unwrap_or(&Value::Null)),
            columns: list(version.get("additionalPrinterColumns")).iter().map(Column::parse).collect(),
            selectable_fields: selectable.map(|path| path.trim_start_matches('.').to_owned()).collect(),
        })
    }
}

impl Subresources {
    fn parse(subresources: &Value) -> Self {
        let present = |name: &str| subresources.get(name).filter(|s| !s.is_null());
        Self {
            status: present("status").is_some(),
            scale: present("scale").map(|scale| Scale {
                spec_replicas: text(scale.get("specReplicasPath")).to_owned(),
                status_replicas: text(scale.get("statusReplicasPath")).to_owned(),
                label_selector: Some(text(scale.get("labelSelectorPath"))).filter(|p| !p.is_empty()).map(str::to_owned),
            }),
        }
    }
}

impl Column {
    fn parse(column: &Value) -> Self {
        let one = |name: &str| text(column.get(name)).to_owned();
        Self {
            name: one("name"),
            type_: one("type"),
            format: one("format"),
            description: one("description"),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            json_path: one("jsonPath"),
        }
    }
}
