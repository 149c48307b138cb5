//! The files of the checklist → rows.

use std::path::{Path, PathBuf};

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
    /// Whether it is about a runner that is root, or about one that is not; `None` is both.
    #[serde(default)]
    pub(crate) runner: Option<RowRunner>,
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

/// The runner that a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RowRunner {
    Root,
    Plain,
}

impl Row {
    /// Whether it can be played by whoever runs this.
    pub(crate) fn is_for_us(&self) -> bool {
        let own = if rustix::process::geteuid().is_root() { RowRunner::Root } else { RowRunner::Plain };
        self.runner.is_none_or(|wanted| wanted == own)
    }
}

/// Where files are that are somewhere else when another user plays the rows.
pub(crate) fn place(usual: &str) -> PathBuf {
    let name = Path::new(usual).file_name().expect("it has a name");
    std::env::var_os("PORTOLAN_KUBELET_PLACE").map_or_else(|| usual.into(), |place| Path::new(&place).join(name))
}

/// The folder of the rows.
pub(crate) fn folder() -> PathBuf {
    place(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubelet"))
}

/// All of them.
pub(crate) fn rows() -> Vec<Row> {
    let folder = folder();
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
