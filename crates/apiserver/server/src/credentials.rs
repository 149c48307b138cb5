//! The server's CA, certificate and token: made once, kept in files that only their owner reads.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// A file could not be read or written.
    #[error("{step} {path}")]
    File {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A certificate could not be made.
    #[error("making the server's certificate")]
    Certificate(#[from] rcgen::Error),
    /// A kept certificate cannot be used.
    #[error(
        "the certificates in the data directory cannot be used ({0}); remove its `pki` folder to have them made anew"
    )]
    Unusable(String),
}

/// The server's identity. `Debug` shows none of it.
#[derive(Clone)]
pub(crate) struct ServerIdentity {
    pub(crate) ca_pem: String,
    certificate_pem: String,
    key_pem: String,
    pub(crate) token: Arc<str>,
}

impl ServerIdentity {
    /// New ones.
    pub(crate) fn generate(token: String) -> Result<Self, CredentialsError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::<String>::new())?;
        ca.distinguished_name.push(DnType::CommonName, "portolan-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);

        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut server = CertificateParams::new(names.map(str::to_owned).to_vec())?;
        server.distinguished_name.push(DnType::CommonName, "portolan");
        server.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        server.subject_alt_names.push(SanType::IpAddress(std::net::Ipv6Addr::LOCALHOST.into()));
        server.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &issuer)?;
        Ok(Self {
            ca_pem: ca_certificate.pem(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            token: Arc::from(token),
        })
    }

    /// Those in a directory, made where there are none.
    pub(crate) fn load_or_generate(directory: &Path, token: impl FnOnce() -> String) -> Result<Self, CredentialsError> {
        let pki = directory.join("pki");
        private_directory(&pki)?;
        let files = ["ca.crt", "server.crt", "server.key", "token"].map(|name| pki.join(name));
        if files.iter().all(|file| file.exists()) {
            let read = |path: &PathBuf| {
                fs::read_to_string(path).map_err(|source| CredentialsError::File {
                    step: "reading",
                    path: path.clone(),
                    source,
                })
            };
            return Ok(Self {
                ca_pem: read(&files[0])?,
                certificate_pem: read(&files[1])?,
                key_pem: read(&files[2])?,
                token: Arc::from(read(&files[3])?.trim()),
            });
        }
        let made = Self::generate(token())?;
        let contents = [&made.ca_pem, &made.certificate_pem, &made.key_pem, &*made.token];
        for (file, content) in files.iter().zip(contents) {
            write_private(file, content)?;
        }
        Ok(made)
    }

    /// What the TLS listener needs.
    pub(crate) fn tls_config(&self) -> Result<rustls::ServerConfig, CredentialsError> {
        let unusable = |error: &dyn std::fmt::Display| CredentialsError::Unusable(error.to_string());
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes()).map_err(|e| unusable(&e))?;
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).map_err(|e| unusable(&e))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable(&e))?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(|e| unusable(&e))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// A kubeconfig that reaches a server with these credentials.
    pub(crate) fn kubeconfig(&self, address: SocketAddr) -> String {
        use base64::Engine as _;
        let ca = base64::engine::general_purpose::STANDARD.encode(&self.ca_pem);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: portolan\nclusters:\n- name: portolan\n  cluster:\n    \
             server: https://{address}\n    certificate-authority-data: {ca}\nusers:\n- name: portolan\n  user:\n    \
             token: {}\ncontexts:\n- name: portolan\n  context:\n    cluster: portolan\n    user: portolan\n    \
             namespace: default\n",
            self.token
        )
    }
}

impl std::fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(redacted)")
    }
}

/// Makes a directory that only its owner enters.
pub(crate) fn private_directory(path: &Path) -> Result<(), CredentialsError> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    let failed = |source| CredentialsError::File { step: "making", path: path.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)
}

/// Writes a file that only its owner reads; a crash leaves the old one or the new one.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<(), CredentialsError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let failed = |source| CredentialsError::File { step: "writing", path: path.to_owned(), source };
    let temporary = path.with_extension("new");
    let _ = fs::remove_file(&temporary);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(failed)?;
    file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}
