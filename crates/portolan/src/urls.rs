//! `urls.json` in a data directory: where `portolan up` can be reached.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Outcome};
use crate::server::ConnectArgs;
use crate::simulation::write_private;

/// The file's name.
const FILE: &str = "urls.json";

/// Where things are.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Urls {
    /// The Kubernetes API.
    pub(crate) api: String,
    /// The Cloudflare API.
    pub(crate) cloudflare: String,
    /// HTTP for published names, where Cloudflare is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edge: Option<String>,
    /// The operator's metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// The runner and what its pods use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pods: Option<String>,
}

impl Urls {
    /// Writes the file.
    pub(crate) fn write(&self, data_dir: &Path) -> Outcome {
        let path = data_dir.join(FILE);
        let text = serde_json::to_string_pretty(self).expect("texts are plain JSON") + "\n";
        // One of an older version could be read by everybody.
        Self::remove(data_dir);
        write_private(&path, &text).map_err(|error| {
            Failure::new(format!("{} cannot be written: {error}", path.display()))
                .next("check that you may write to the data directory and that its disk is not full")
        })
    }

    /// Takes the file away: nothing answers there any more.
    pub(crate) fn remove(data_dir: &Path) {
        let _ = std::fs::remove_file(data_dir.join(FILE));
    }

    /// The file beside the kubeconfig, if it is about the same server.
    pub(crate) fn beside(connect: &ConnectArgs, server: &str) -> Option<Self> {
        let folder = kubeconfig_path(connect).parent()?.to_owned();
        let text = std::fs::read_to_string(folder.join(FILE)).ok()?;
        let urls: Self = serde_json::from_str(&text).ok()?;
        (urls.api.trim_end_matches('/') == server.trim_end_matches('/')).then_some(urls)
    }
}

/// The kubeconfig file that a command uses, where it is one file.
pub(crate) fn kubeconfig_path(connect: &ConnectArgs) -> PathBuf {
    if let Some(path) = &connect.kubeconfig {
        return path.clone();
    }
    match std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(value) => PathBuf::from(value),
        None => PathBuf::from(crate::server::LOCAL_KUBECONFIG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(folder: &Path) -> ConnectArgs {
        ConnectArgs { kubeconfig: Some(folder.join("kubeconfig")), context: None }
    }

    #[test]
    fn urls_are_believed_only_for_the_server_they_were_written_for() {
        let folder = tempfile::tempdir().unwrap();
        let urls = Urls {
            api: "https://127.0.0.1:1".into(),
            cloudflare: "http://127.0.0.1:2".into(),
            edge: None,
            metrics: None,
            pods: None,
        };
        urls.write(folder.path()).unwrap();

        let found = Urls::beside(&connect(folder.path()), "https://127.0.0.1:1/").unwrap();

        assert_eq!(found.cloudflare, "http://127.0.0.1:2");
        assert!(Urls::beside(&connect(folder.path()), "https://127.0.0.1:3").is_none());
        Urls::remove(folder.path());
        assert!(Urls::beside(&connect(folder.path()), "https://127.0.0.1:1").is_none());
    }
}
