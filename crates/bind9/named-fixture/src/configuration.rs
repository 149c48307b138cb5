//! What a test wants of a server → the text of its named.conf.

use std::{fmt::Write, net::SocketAddr, path::Path};

/// The control key of every server, besides those that a test adds.
pub(crate) const CONTROL: (&str, &str, &str) =
    ("control", "hmac-sha256", "Y29udHJvbC1jb250cm9sLWNvbnRyb2wtY29udHJvbA==");

/// What a test wants of a server.
#[derive(Clone, Debug, Default)]
pub struct NamedConfiguration {
    keys: Vec<(String, String, String)>,
    control: Vec<String>,
    options: String,
    rest: String,
    files: Vec<(String, String)>,
    pub(crate) clock: Option<String>,
}

impl NamedConfiguration {
    /// The name, the algorithm and the secret, in base64, of the control key that every server takes.
    pub const fn control_key() -> (&'static str, &'static str, &'static str) {
        CONTROL
    }

    /// A key that the server knows: its name, its algorithm, its secret in base64.
    pub fn with_key(mut self, name: &str, algorithm: &str, secret: &str) -> Self {
        self.keys.push((name.into(), algorithm.into(), secret.into()));
        self
    }

    /// A key that the control channel takes too.
    pub fn with_control_key(mut self, name: &str, algorithm: &str, secret: &str) -> Self {
        self.control.push(name.into());
        self.with_key(name, algorithm, secret)
    }

    /// Statements within `options`.
    pub fn with_options(mut self, options: &str) -> Self {
        let _infallible = writeln!(self.options, "  {options}");
        self
    }

    /// Statements beside `options`: zones, lists.
    pub fn with_statements(mut self, statements: &str) -> Self {
        let _infallible = writeln!(self.rest, "{statements}");
        self
    }

    /// A clock that goes before (`+600s`) or after (`-600s`), or stands at a time (`2027-01-01 00:00:00`), as faketime has it.
    pub fn with_clock(mut self, clock: &str) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// A file in the server's folder.
    pub fn with_file(mut self, name: &str, content: &str) -> Self {
        self.files.push((name.into(), content.into()));
        self
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, content)| (&**name, &**content))
    }

    pub(crate) fn render(&self, folder: &Path, dns: SocketAddr, control: SocketAddr) -> String {
        let (name, algorithm, secret) = CONTROL;
        let mut text = key(name, algorithm, secret);
        self.keys.iter().for_each(|(name, algorithm, secret)| text += &key(name, algorithm, secret));
        let names = self.control.iter().fold(String::new(), |names, name| names + &format!("\"{name}\"; "));
        let (folder, ip, port) = (folder.display(), dns.ip(), dns.port());
        let _infallible = write!(
            text,
            "controls {{ inet {} port {} allow {{ any; }} keys {{ \"{name}\"; {names}}}; }};\n\
             options {{\n  directory \"{folder}\";\n  pid-file none;\n  session-keyfile none;\n  managed-keys-directory \"{folder}\";\n  \
             listen-on port {port} {{ {ip}; }};\n  listen-on-v6 {{ none; }};\n  query-source address {ip};\n  \
             transfer-source {ip};\n  notify-source {ip};\n  allow-new-zones yes;\n  recursion no;\n  dnssec-validation no;\n  \
             empty-zones-enable no;\n  zone-statistics none;\n{}}};\n{}",
            control.ip(),
            control.port(),
            self.options,
            self.rest
        );
        text
    }
}

fn key(name: &str, algorithm: &str, secret: &str) -> String {
    format!("key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n")
}
