//! `OpenAPI` documents of a running API server → those parts that are about the built-in kinds of the table, as records.
//!
//! Schemas are kept once, however many documents hold them. What a document says about a path is kept as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use portolan_builtin::kinds::{KINDS, Kind};
use portolan_builtin::published::{PublishedLine, PublishedRecords, TEMPLATE};
use serde_json::{Map, Value};

use crate::schemas::references;

/// What is kept of one document.
struct PublishedDocument {
    paths: BTreeMap<String, Value>,
    /// Name and text of each schema.
    schemas: BTreeSet<(String, String)>,
}

/// The lines of all records, each with its end.
pub(crate) fn generate(folder: &Path) -> Result<String> {
    let mut documents = BTreeMap::new();
    for path in wanted() {
        let file = folder.join(format!("{}_openapi.json", path.replace('/', "__")));
        let text = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        let whole: Value = serde_json::from_slice(&text).with_context(|| format!("parsing {}", file.display()))?;
        documents.insert(path.clone(), keep(&path, &whole)?);
    }
    Ok(records(&documents).iter().map(|record| record.line() + "\n").collect())
}

/// The lines as they are committed.
pub(crate) fn compress(lines: &str) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(lines.as_bytes())?;
    Ok(encoder.finish()?)
}

/// The lines in what is committed: another compressor may have written the same lines as other bytes.
pub(crate) fn decompress(committed: &[u8]) -> String {
    PublishedRecords::of(committed).map(|record| record.line() + "\n").collect()
}

/// The documents about what is served: the table's groups and versions, and what leads to them.
fn wanted() -> BTreeSet<String> {
    let mut paths: BTreeSet<String> = ["version", "api", "apis", TEMPLATE].map(str::to_owned).into();
    for kind in KINDS {
        if !kind.group.is_empty() {
            paths.insert(format!("apis/{}", kind.group));
        }
        paths.insert(document_path(kind));
    }
    paths
}

fn document_path(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

/// The paths of served resources, and the schemas that they and the table's kinds reach.
fn keep(document: &str, whole: &Value) -> Result<PublishedDocument> {
    let paths = whole["paths"].as_object().ok_or_else(|| anyhow!("{document} has no paths"))?;
    let paths: BTreeMap<String, Value> = paths
        .iter()
        .filter(|(path, _)| document == TEMPLATE || is_served(document, path))
        .map(|(path, item)| (path.clone(), item.clone()))
        .collect();
    let empty = Map::new();
    let all = whole.pointer("/components/schemas").and_then(Value::as_object).unwrap_or(&empty);
    let mut open: Vec<&str> = paths.values().fold(Vec::new(), |mut names, item| {
        references(item, &mut names);
        names
    });
    open.extend(KINDS.iter().filter(|kind| document_path(kind) == document).map(|kind| kind.definition));
    let mut schemas = BTreeMap::new();
    while let Some(name) = open.pop() {
        let schema = all.get(name).ok_or_else(|| anyhow!("{document} does not define {name}"))?;
        if schemas.insert(name.to_owned(), schema.to_string()).is_none() {
            references(schema, &mut open);
        }
    }
    Ok(PublishedDocument { paths, schemas: schemas.into_iter().collect() })
}

/// Whether a path of a document leads to a resource of the table, or to no resource at all.
fn is_served(document: &str, path: &str) -> bool {
    let below = path.trim_matches('/').strip_prefix(document).unwrap_or_default().trim_matches('/');
    let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty() && *part != "watch").collect();
    let (plural, below) = match parts.as_slice() {
        [] => return true,
        ["namespaces", "{namespace}", plural, below @ ..] | [plural, below @ ..] => (*plural, below),
    };
    let subresource = below.get(1).copied().unwrap_or_default();
    KINDS.iter().any(|kind| document_path(kind) == document && kind.plural == plural && serves(kind, subresource))
}

fn serves(kind: &Kind, subresource: &str) -> bool {
    match subresource {
        "" => true,
        "status" => kind.status,
        "scale" => kind.scale,
        other => kind.subresources.contains(&other),
    }
}

fn records(documents: &BTreeMap<String, PublishedDocument>) -> Vec<PublishedLine> {
    let schemas: BTreeSet<&(String, String)> = documents.values().flat_map(|document| &document.schemas).collect();
    let numbers: BTreeMap<&(String, String), usize> =
        schemas.iter().enumerate().map(|(number, schema)| (*schema, number)).collect();
    let mut records = Vec::new();
    for (path, document) in documents {
        let schemas = document.schemas.iter().map(|schema| numbers[schema]).collect();
        records.push(PublishedLine::Document { path: path.clone(), schemas });
        let items = document.paths.iter();
        records.extend(items.map(|(path, item)| PublishedLine::Path { path: path.clone(), item: item.to_string() }));
    }
    records.extend(
        schemas.iter().map(|(name, schema)| PublishedLine::Schema { name: name.clone(), schema: schema.clone() }),
    );
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_table_are_kept() {
        assert!(is_served("api/v1", "/api/v1/"));
        assert!(is_served("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}"));
        assert!(is_served("api/v1", "/api/v1/watch/namespaces/{namespace}/pods/{name}"));
        assert!(is_served("api/v1", "/api/v1/namespaces/{name}/finalize"));
        assert!(!is_served("api/v1", "/api/v1/componentstatuses"));
        assert!(!is_served("apis/batch/v1", "/apis/batch/v1/namespaces/{namespace}/jobs/{name}/scale"));
    }

    #[test]
    fn what_was_compressed_is_read_again() {
        let lines = "document\tapi/v1\t0\npath\t/api/v1/pods\t{}\nschema\tPod\t{}\n";

        assert_eq!(decompress(&compress(lines).expect("memory takes every write")), lines);
    }
}
