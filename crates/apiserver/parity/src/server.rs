//! An API server to be compared: where it is and how to be let in.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::Value;

/// An API server given by what any client needs to reach it.
#[derive(Clone, Debug)]
pub struct PeerServer {
    /// Such as `https://127.0.0.1:6443`, without a slash at the end.
    pub url: String,
    /// The certificates it is trusted by, in PEM.
    pub ca: String,
    /// A bearer token with all rights.
    pub token: String,
}

/// Why a kubeconfig file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The file could not be read.
    #[error("reading kubeconfig {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a kubeconfig with a server, a CA and a token.
    #[error("kubeconfig {path}: {missing} is missing")]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The part that was looked for.
        missing: &'static str,
    },
}

impl PeerServer {
    /// The server of the first cluster and user in a kubeconfig file.
    pub fn from_kubeconfig(path: &Path) -> Result<Self, ServerError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ServerError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|missing| ServerError::Incomplete { path: path.to_owned(), missing })
    }

    fn parse(kubeconfig: &str) -> Result<Self, &'static str> {
        let config: Value = serde_saphyr::from_str(kubeconfig).map_err(|_| "YAML")?;
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str);
        let ca = text("/clusters/0/cluster/certificate-authority-data").ok_or("certificate-authority-data")?;
        let ca = base64::engine::general_purpose::STANDARD.decode(ca).map_err(|_| "base64 of the CA")?;
        Ok(Self {
            url: text("/clusters/0/cluster/server").ok_or("server")?.trim_end_matches('/').to_owned(),
            ca: String::from_utf8(ca).map_err(|_| "PEM of the CA")?,
            token: text("/users/0/user/token").ok_or("token")?.to_owned(),
        })
    }

    /// A kubeconfig for this server, as kubectl reads it.
    pub fn kubeconfig(&self) -> String {
        let ca = base64::engine::general_purpose::STANDARD.encode(&self.ca);
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "parity",
            "clusters": [{"name": "parity", "cluster": {"server": self.url, "certificate-authority-data": ca}}],
            "users": [{"name": "parity", "user": {"token": self.token}}],
            "contexts": [{"name": "parity", "context": {"cluster": "parity", "user": "parity"}}],
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::PeerServer;

    #[test]
    fn a_server_survives_the_way_through_its_kubeconfig() {
        let server = PeerServer { url: "https://127.0.0.1:1".into(), ca: "PEM".into(), token: "secret".into() };

        let read = PeerServer::parse(&server.kubeconfig()).expect("own kubeconfig is complete");

        assert_eq!((read.url, read.ca, read.token), (server.url, server.ca, server.token));
    }
}
