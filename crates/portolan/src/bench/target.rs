//! A kubeconfig → what a lean client needs: address, TLS and token.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use http::Uri;
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use secrecy::ExposeSecret;

/// A server to measure.
#[derive(Clone)]
pub(super) struct BenchServer {
    uri: Uri,
    tls: Arc<rustls::ClientConfig>,
    authorization: Option<String>,
}

impl BenchServer {
    /// Reads a kubeconfig; client certificates and tokens are understood, plugins are not.
    pub(super) async fn from_kubeconfig(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("reading kubeconfig {shown}"))?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .with_context(|| format!("using kubeconfig {shown}"))?;
        let mut tls = config.rustls_client_config().with_context(|| format!("TLS settings of {shown}"))?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let token = config.auth_info.token.as_ref().map(|token| format!("Bearer {}", token.expose_secret()));
        Ok(Self { uri: config.cluster_url, tls: Arc::new(tls), authorization: token })
    }

    /// The server's URL.
    pub(super) fn address(&self) -> &Uri {
        &self.uri
    }

    /// Host and port to connect to.
    pub(super) fn host_and_port(&self) -> anyhow::Result<(String, u16)> {
        let host = self.uri.host().ok_or_else(|| anyhow!("{} names no host", self.uri))?;
        Ok((host.to_owned(), self.uri.port_u16().unwrap_or(443)))
    }

    /// TLS with HTTP/2 only.
    pub(super) fn tls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// The `Authorization` header, where a token is used.
    pub(super) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }
}
