//! A CRD → the resources that it defines.

use std::sync::Arc;

use portolan_schema::crd::{Column, Definition, ObjectScope, Scale, Version};
use portolan_schema::{Schema, SchemaError};
use serde_json::Value;

use super::{Resource, RuleSource, collection};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// What a CRD says about one of its versions.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) schema: Arc<Schema>,
    /// The schema of the version that objects are stored in: what it does not know is not stored.
    pub(crate) stored: Arc<Schema>,
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Vec<Column>,
    /// Fields that field selectors may name.
    pub(crate) selectable: Vec<String>,
    pub(crate) warning: Option<String>,
    /// Every stored text was written under this very definition.
    pub(crate) verbatim: bool,
    /// The definition is being deleted: no new objects.
    pub(crate) terminating: bool,
}

impl Custom {
    /// The fields whose change makes a new generation.
    pub(crate) fn counted<'a>(&'a self, object: &'a Value) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(name, _)| *name != "metadata" && !(self.status && *name == "status"))
    }
}

/// The resources of a CRD, one for each served version, the preferred one first.
pub(crate) fn resources(definition: &Value) -> Result<Vec<Arc<Resource>>, SchemaError> {
    let parsed = Definition::parse(&with_accepted_names(definition))?;
    let mut resources: Vec<Arc<Resource>> = parsed
        .versions
        .iter()
        .filter(|version| version.served)
        .map(|version| Arc::new(resource(definition, &parsed, version)))
        .collect();
    resources.sort_by(|a, b| compare_versions(&b.version, &a.version));
    Ok(resources)
}

/// The definition under the names that it got, which may not be those that it asked for.
fn with_accepted_names(definition: &Value) -> Value {
    let mut definition = definition.clone();
    let accepted = definition["status"]["acceptedNames"].clone();
    if accepted["plural"].as_str().is_some_and(|plural| !plural.is_empty()) {
        definition["spec"]["names"] = accepted;
    }
    definition
}

/// What kinds without columns of their own show.
fn age_column() -> Column {
    Column {
        name: "Age".to_owned(),
        type_: "date".to_owned(),
        format: String::new(),
        description: "When the object was made.".to_owned(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".to_owned(),
    }
}

fn resource(definition: &Value, parsed: &Definition, version: &Version) -> Resource {
    let names = &parsed.names;
    let stored = parsed.versions.iter().find(|v| v.storage).unwrap_or(version);
    let warning = version.deprecated.then(|| {
        let usual = || format!("{}/{} {} is deprecated", parsed.group, version.name, names.kind);
        version.deprecation_warning.clone().unwrap_or_else(usual)
    });
    let custom = Custom {
        schema: version.schema.clone(),
        stored: stored.schema.clone(),
        status: version.subresources.status,
        scale: version.subresources.scale.clone(),
        columns: if version.columns.is_empty() { vec![age_column()] } else { version.columns.clone() },
        selectable: version.selectable_fields.clone(),
        warning,
        // Later generations mean that a text may have been written under another schema.
        verbatim: definition["metadata"]["generation"].as_i64().unwrap_or(1) <= 1,
        terminating: crate::object::is_deleting(definition),
    };
    Resource {
        group: parsed.group.clone(),
        version: version.name.clone(),
        kind: names.kind.clone(),
        list_kind: names.list_kind.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: parsed.scope == ObjectScope::Namespaced,
        verbs: VERBS.to_vec(),
        collection: Arc::from(collection(&names.plural, &parsed.group)),
        source: RuleSource::Custom(Box::new(custom)),
    }
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
