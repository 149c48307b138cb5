//! The files of the checklist → rows.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// A behaviour: a pod, what a user sees of it, and where that is written down.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) spec: Value,
    /// The status that others wrote before.
    #[serde(default)]
    pub(crate) given: Value,
    /// What is there before the pod.
    #[serde(default)]
    pub(crate) objects: Vec<Value>,
    /// What is applied once it runs.
    #[serde(default)]
    pub(crate) then: Vec<Value>,
    /// How it is deleted once it runs.
    pub(crate) deleted: Option<Value>,
    pub(crate) expect: Value,
    pub(crate) source: String,
}

/// All of them.
pub(crate) fn rows() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubelet");
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let more: Vec<Row> =
                serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            rows.extend(more);
        }
    }
    rows
}
