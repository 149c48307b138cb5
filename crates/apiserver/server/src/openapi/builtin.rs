//! The generated data → the paths and schemas of one document, or of all.

use std::collections::BTreeMap;

use portolan_builtin::published::{PublishedLine, TEMPLATE, records};
use serde_json::Value;

/// What a document holds: the texts of its paths and of its schemas, by name.
#[derive(Debug, Default)]
pub(super) struct DocumentParts {
    pub(super) paths: BTreeMap<String, String>,
    pub(super) schemas: BTreeMap<String, String>,
}

/// The parts of one document; nothing where there is none of this path.
pub(super) fn parts_of(document: &str) -> Option<DocumentParts> {
    let mut wanted: Option<Vec<usize>> = None;
    let mut is_inside = false;
    let mut number = 0;
    let mut parts = DocumentParts::default();
    for record in records() {
        match record {
            PublishedLine::Document { path, schemas } => {
                is_inside = path == document;
                if is_inside {
                    wanted = Some(schemas);
                }
            }
            PublishedLine::Path { path, item } if is_inside => {
                parts.paths.insert(path, item);
            }
            PublishedLine::Path { .. } => {}
            PublishedLine::Schema { name, schema } => {
                if wanted.as_ref()?.binary_search(&number).is_ok() {
                    parts.schemas.insert(name, schema);
                }
                number += 1;
            }
        }
    }
    wanted.map(|_| parts)
}

/// Every path and schema about built-in kinds, one after the other. A schema that differs by document is said to be of
/// all the kinds that it is of anywhere.
pub(super) fn each(mut path: impl FnMut(&str, &Value), mut schema: impl FnMut(&str, &Value)) {
    let mut is_inside = false;
    let mut last: Option<(String, Value)> = None;
    for record in records() {
        match record {
            PublishedLine::Document { path, .. } => is_inside = path != TEMPLATE,
            PublishedLine::Path { path: name, item } if is_inside => path(&name, &parse(&item)),
            PublishedLine::Path { .. } => {}
            PublishedLine::Schema { name, schema: text } => match &mut last {
                Some((same, value)) if *same == name => merge_kinds(value, &parse(&text)),
                _ => {
                    if let Some((name, value)) = last.replace((name, parse(&text))).filter(is_builtin) {
                        schema(&name, &value);
                    }
                }
            },
        }
    }
    if let Some((name, value)) = last.filter(is_builtin) {
        schema(&name, &value);
    }
}

pub(super) fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the generated data is JSON")
}

fn is_builtin((name, _): &(String, Value)) -> bool {
    name.starts_with("io.k8s.")
}

fn merge_kinds(into: &mut Value, from: &Value) {
    const KINDS: &str = "x-kubernetes-group-version-kind";
    let (Some(kinds), Some(more)) = (into[KINDS].as_array_mut(), from[KINDS].as_array()) else {
        return;
    };
    kinds.extend(more.iter().filter(|kind| !kinds.contains(kind)).cloned().collect::<Vec<_>>());
    let text = |kind: &Value, key: &str| kind[key].as_str().unwrap_or_default().to_owned();
    kinds.sort_by_key(|kind| (text(kind, "group"), text(kind, "version"), text(kind, "kind")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_holds_its_own_paths_and_every_schema_that_it_reaches() {
        let parts = parts_of("apis/apps/v1").expect("it is served");

        assert!(parts.paths.contains_key("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"));
        assert!(!parts.paths.keys().any(|path| path.starts_with("/api/")));
        assert!(parts.schemas.contains_key("io.k8s.api.core.v1.Container"));
        assert!(parts_of("apis/nosuch/v1").is_none());
    }

    #[test]
    fn options_are_of_every_group_in_version_2() {
        let mut kinds = 0;

        each(
            |_, _| {},
            |name, schema| {
                if name.ends_with(".WatchEvent") {
                    kinds = schema["x-kubernetes-group-version-kind"].as_array().map_or(0, Vec::len);
                }
            },
        );

        assert!(kinds > 10, "{kinds}");
    }
}
