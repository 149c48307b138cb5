//! The built binary, run as a user runs it: a server in a temporary folder, commands against it.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::panic, reason = "a test ends where its server does not start")]
#![allow(missing_docs, unreachable_pub, reason = "a module shared by tests")]

pub mod cluster;
pub mod ground;
pub mod helm;
pub mod pods;
pub mod process;
pub mod site;
pub mod worked;
pub mod zerotrust;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longer than any start takes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The binary under test.
pub fn portolan() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command
        .env_remove("KUBECONFIG")
        .env_remove("LOG_LEVEL")
        .env_remove("CLOUDFLARE_API_BASE_URL")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

/// Runs a command with a text on its standard input.
pub fn run_with_input(mut command: Command, input: &str) -> Run {
    use std::io::Write;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the command reads its input");
    child.wait_with_output().expect("the command ends").into()
}

/// What a command left behind.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "exit {:?}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

impl Run {
    /// The run's standard output, if it succeeded.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }

    /// The run's standard error, if it failed as commands fail: code 1 and no trace of a panic.
    #[track_caller]
    pub fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        self.stderr
    }
}

/// A `portolan apiserver` of its own; killed when dropped.
pub struct Server {
    process: Child,
    folder: Option<TempDir>,
    data: PathBuf,
}

impl Server {
    /// Starts one on an empty data directory.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        let mut server = Self::start_on(&data);
        server.folder = Some(folder);
        server
    }

    /// Starts one on a data directory that may have been used before.
    pub fn start_on(data: &Path) -> Self {
        let _ = std::fs::remove_file(data.join("kubeconfig"));
        let process = apiserver(data).stdout(Stdio::null()).spawn().expect("the binary starts");
        let mut server = Self { process, folder: None, data: data.to_owned() };
        server.wait_ready();
        server
    }

    fn wait_ready(&mut self) {
        let until = Instant::now() + START_TIMEOUT;
        while Instant::now() < until {
            if let Some(status) = self.process.try_wait().expect("the server can be watched") {
                panic!("the server ended at once: {status}");
            }
            if self.kubeconfig().exists() && self.run(&["get", "namespaces"]).code == Some(0) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server did not answer in {START_TIMEOUT:?}");
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.data.join("kubeconfig")
    }

    /// A command against this server, not yet run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = portolan();
        command.env("KUBECONFIG", self.kubeconfig()).args(arguments);
        command
    }

    /// Runs a command against this server.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().expect("the binary runs").into()
    }

    /// Runs a command with a text on its standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        run_with_input(self.command(arguments), input)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process.kill().expect("the server can be killed");
        self.process.wait().expect("the server is gone");
    }

    /// Asks it to stop (SIGTERM) and returns its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().expect("kill runs").success());
        let until = Instant::now() + START_TIMEOUT;
        while Instant::now() < until {
            if let Some(status) = self.process.try_wait().expect("the server can be watched") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server did not stop in {START_TIMEOUT:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `portolan apiserver` on a free port with this data directory.
pub fn apiserver(data: &Path) -> Command {
    let mut command = portolan();
    command.env("LOG_LEVEL", "warn").args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command
}

/// A `ConfigMap` as YAML.
pub fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels: {{app: {name}}}\ndata:\n  key: \"{value}\"\n"
    )
}

/// The repository's example of a definition and its objects.
pub fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}
