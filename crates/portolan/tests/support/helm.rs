//! The real helm, built from its Go module.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use super::Run;

/// The real helm, with files of its own.
pub struct Helm {
    program: PathBuf,
    folder: TempDir,
}

impl Helm {
    /// None, and a line about it, where helm cannot be built.
    pub fn find(what: &str) -> Option<Self> {
        static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match PROGRAM.get_or_init(build) {
            Ok(program) => {
                Some(Self { program: program.clone(), folder: tempfile::tempdir().expect("a temporary folder") })
            }
            Err(why) => {
                tell(&format!("helm: NOT RUN: {what}: {why}"));
                None
            }
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let home = self.folder.path();
        command.env("HELM_CACHE_HOME", home).env("HELM_CONFIG_HOME", home).env("HELM_DATA_HOME", home);
        command.env("HOME", home).env_remove("KUBECONFIG").args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().expect("helm runs").into()
    }

    /// A folder for files of its own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of values; JSON is YAML.
    pub fn file(&self, values: &Value) -> String {
        let text = values.to_string();
        let name = format!("{}.yaml", digest(&text));
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }
}

/// The text's own name.
fn digest(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn build() -> Result<PathBuf, String> {
    let script = format!("{}/../../tools/helm/build.sh", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(script).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Says something although tests are quiet.
pub fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
