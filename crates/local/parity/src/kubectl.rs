//! Command lines of the real kubectl → what it prints on both servers, compared.

mod script;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::compare::compare;
use crate::controlplane::binaries;
use crate::mask::mask_output;
use crate::names::run_name;
use crate::options::Options;
use crate::peers::Peers;
use crate::report::Outcome;
use crate::server::Server;
use script::{Invocation, Mode, SCRIPTS, Script};

/// How long one command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(45);
/// Between two runs of a command that waits for something.
const PAUSE: Duration = Duration::from_millis(200);
/// Cases that run at the same time; kubectl is heavier than a request.
const AT_ONCE: usize = 3;

/// Runs the real kubectl on both servers, prints the summary, and tells whether it printed the same.
pub async fn run(peers: &Peers, options: &Options) -> bool {
    let Some(real) = peers.real() else { return true };
    let binary = match binaries() {
        Ok(folder) => folder.join("kubectl"),
        Err(reason) => {
            println!("PARITY NOT RUN: {reason}");
            return true;
        }
    };
    let run = run_name();
    let selected = SCRIPTS.iter().enumerate().filter(|(_, script)| options.selects(&title(script)));
    let on_both = selected.map(|(index, script)| {
        let (binary, namespace) = (binary.clone(), format!("kubectl-{index}-{run}"));
        async move {
            let (first, second) = futures::join!(
                on(&binary, real, &namespace, script),
                on(&binary, peers.embedded(), &namespace, script)
            );
            (script, first, second)
        }
    });
    let results: Vec<_> = futures::stream::iter(on_both).buffer_unordered(AT_ONCE).collect().await;
    let mut outcome = Outcome::default();
    outcome.ran.insert("kubectl".to_owned(), (results.len(), results.len()));
    for (script, real, embedded) in results {
        let lines: Vec<String> = script.commands.iter().map(|command| command.line.clone()).collect();
        outcome.add(&title(script), compare(&title(script), &lines, &real, &embedded));
    }
    outcome.finish(options, "kubectl")
}

fn title(script: &Script) -> String {
    format!("kubectl: {}", script.name)
}

/// What the commands printed on one server, line by line.
async fn on(binary: &Path, server: &Server, namespace: &str, script: &Script) -> Vec<Value> {
    let printed = match Kubectl::new(binary, server, namespace) {
        Ok(mut kubectl) => kubectl.run(script).await,
        Err(error) => vec![error.to_string()],
    };
    printed.iter().map(|text| json!({"printed": text.lines().collect::<Vec<_>>()})).collect()
}

/// kubectl set up for one server and one case.
struct Kubectl {
    binary: PathBuf,
    folder: TempDir,
    namespace: String,
    running: Option<Running>,
}

impl Kubectl {
    fn new(binary: &Path, server: &Server, namespace: &str) -> std::io::Result<Self> {
        let folder = TempDir::new()?;
        std::fs::write(folder.path().join("kubeconfig"), server.kubeconfig())?;
        Ok(Self { binary: binary.to_owned(), folder, namespace: namespace.to_owned(), running: None })
    }

    /// What every command of the case printed, masked.
    async fn run(&mut self, script: &Script) -> Vec<String> {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}", self.namespace);
        self.output(&["create", "-f", "-"].map(str::to_owned), &namespace).await;
        let mut printed = Vec::new();
        for command in &script.commands {
            printed.push(self.step(command).await);
        }
        printed
    }

    async fn step(&mut self, command: &Invocation) -> String {
        let arguments: Vec<String> = command.arguments.iter().map(|word| self.expand(word)).collect();
        match &command.mode {
            Mode::Run => self.output(&arguments, &self.expand(&command.stdin)).await,
            Mode::Only(pattern) => only(pattern, &self.output(&arguments, &self.expand(&command.stdin)).await),
            Mode::Until(pattern) => self.until(pattern, &arguments).await,
            Mode::Begin(lines) => self.begin(&arguments, *lines).await,
            Mode::End(lines) => self.end(*lines).await,
        }
    }

    fn expand(&self, text: &str) -> String {
        text.replace("$ns", &self.namespace).replace("$id", &self.namespace)
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .arg("--kubeconfig")
            .arg(self.folder.path().join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.folder.path().join("cache"))
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env_clear()
            .env("HOME", self.folder.path())
            // `diff` runs a program of that name; `edit` runs this one.
            .env("PATH", "/usr/bin:/bin")
            .env("KUBE_EDITOR", "sed -i s/blue/green/")
            .stdin(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn output(&self, arguments: &[String], stdin: &str) -> String {
        match tokio::time::timeout(COMMAND_WITHIN, self.finish(arguments, stdin)).await {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => format!("kubectl could not be run: {error}"),
            Err(_) => "kubectl did not end in time".to_owned(),
        }
    }

    /// What it printed once a line matches, or last.
    async fn until(&self, pattern: &str, arguments: &[String]) -> String {
        let deadline = Instant::now() + COMMAND_WITHIN;
        loop {
            let printed = self.output(arguments, "").await;
            if !only(pattern, &printed).is_empty() || Instant::now() > deadline {
                return printed;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn finish(&self, arguments: &[String], stdin: &str) -> std::io::Result<String> {
        let mut child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(stdin.as_bytes()).await?;
        }
        let output = child.wait_with_output().await?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let code = output.status.code().unwrap_or(-1);
        Ok(mask_output(&format!("{stdout}{stderr}exit {code}")))
    }

    async fn begin(&mut self, arguments: &[String], lines: usize) -> String {
        let child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Some((child, stdout)) = child.ok().and_then(|mut child| child.stdout.take().map(|stdout| (child, stdout)))
        else {
            return "kubectl could not be run".to_owned();
        };
        let mut running = Running { _child: child, lines: BufReader::new(stdout).lines(), printed: Vec::new() };
        running.read(lines).await;
        self.running = Some(running);
        String::new()
    }

    /// What was printed since it began; dropping it ends it.
    async fn end(&mut self, lines: usize) -> String {
        let Some(mut running) = self.running.take() else { return "nothing is running".to_owned() };
        running.read(lines).await;
        mask_output(&running.printed.join("\n"))
    }
}

/// A kubectl that watches until it is dropped.
struct Running {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Vec<String>,
}

impl Running {
    /// Reads until so many lines were printed, or no more come.
    async fn read(&mut self, lines: usize) {
        while self.printed.len() < lines {
            match tokio::time::timeout(COMMAND_WITHIN, self.lines.next_line()).await {
                Ok(Ok(Some(line))) => self.printed.push(line),
                Ok(Ok(None) | Err(_)) | Err(_) => return,
            }
        }
    }
}

fn only(pattern: &str, text: &str) -> String {
    let pattern = Regex::new(pattern).expect("cases hold proper patterns");
    text.lines().filter(|line| pattern.is_match(line)).collect::<Vec<_>>().join("\n")
}
