//! The official Gateway API CRDs, from the Go module that publishes them; cached, never committed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Why the CRDs are not at hand.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BundleError(String);

/// The CRDs of the standard channel, as JSON.
pub fn gateway_api() -> Result<Vec<Value>, BundleError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools/controlplane/gateway-api.sh");
    let output = Command::new(&script).output().map_err(|error| BundleError(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
        return Err(BundleError(said));
    }
    read(&PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn read(folder: &Path) -> Result<Vec<Value>, BundleError> {
    let failed = |error: std::io::Error| BundleError(format!("reading {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    files.sort();
    let mut definitions = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "yaml")) {
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|error| BundleError(format!("reading {}: {error}", file.display())))?;
        definitions.extend(documents.into_iter().filter(|document| document["kind"] == "CustomResourceDefinition"));
    }
    Ok(definitions)
}
