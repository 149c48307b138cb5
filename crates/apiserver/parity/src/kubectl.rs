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

use crate::case::Expects;
use crate::compare::{Difference, compare};
use crate::controlplane::binaries;
use crate::mask::mask_output;
use crate::names::run_name;
use crate::options::Options;
use crate::peers::Peers;
use crate::report::RunResult;
use crate::run::Transcript;
use crate::server::PeerServer;
use crate::sound::failure;
use script::{CommandMode, Invocation, SCRIPTS, Script};

/// How long one command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(90);
/// Between two runs of a command that waits for something.
const PAUSE: Duration = Duration::from_millis(200);
/// What kubectl says of a command line that it does not understand, on any server.
const MISUSED: [&str; 4] = ["unknown command", "unknown flag", "unknown shorthand flag", "unknown output format"];
/// Cases that run at the same time; kubectl is heavier than a request.
const AT_ONCE: usize = 3;

/// Runs the real kubectl on both servers, prints the summary, and tells whether it printed the same.
pub(crate) async fn run(peers: &Peers, options: &Options) -> bool {
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
    let mut outcome = RunResult::default();
    outcome.ran.insert("kubectl".to_owned(), (results.len(), results.len()));
    for (script, real, embedded) in results {
        let (title, lines) = (title(script), script.lines());
        let mut found = compare(&title, &lines, &real.answers, &embedded.answers);
        found.extend(unsound(script, &real.answers));
        for ((line, real), embedded) in lines.iter().zip(&real.took).zip(&embedded.took) {
            outcome.took(*real, &title, line);
            outcome.took(*embedded, &title, line);
        }
        outcome.add(&title, found);
    }
    outcome.finish(options, "kubectl")
}

fn title(script: &Script) -> String {
    format!("kubectl: {}", script.name)
}

/// What the commands printed on one server, line by line.
async fn on(binary: &Path, server: &PeerServer, namespace: &str, script: &Script) -> Transcript {
    let mut kubectl = Kubectl::new(binary, server, namespace).expect("a folder for kubectl can be made");
    kubectl.run(script).await
}

/// The commands that did not come to what they are for on the real server, whatever the other made of them.
fn unsound(script: &Script, answers: &[Value]) -> Vec<Difference> {
    let commands = script.commands.iter().zip(answers).enumerate();
    let wrong = commands.filter_map(|(index, (command, answer))| Some((index, command, wrong(command, answer)?)));
    wrong.map(|(index, command, wrong)| failure(&title(script), index, &command.line, wrong)).collect()
}

fn wrong(command: &Invocation, answer: &Value) -> Option<String> {
    if let Some(reason) = answer.get("failed") {
        return Some(reason.to_string());
    }
    let printed: Vec<&str> = answer["printed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let misused = printed.iter().find(|line| MISUSED.iter().any(|words| line.contains(words)));
    let done = printed.last() == Some(&"exit 0");
    match command.expects {
        _ if misused.is_some() => misused.map(|line| (*line).to_owned()),
        Expects::Success if !done => Some(printed.join("\n")),
        Expects::Refusal if done => Some("is not refused".to_owned()),
        _ => None,
    }
}

/// kubectl set up for one server and one case.
struct Kubectl {
    binary: PathBuf,
    folder: TempDir,
    namespace: String,
    running: Option<RunningKubectl>,
}

impl Kubectl {
    fn new(binary: &Path, server: &PeerServer, namespace: &str) -> std::io::Result<Self> {
        let folder = TempDir::new()?;
        std::fs::write(folder.path().join("kubeconfig"), server.kubeconfig())?;
        Ok(Self { binary: binary.to_owned(), folder, namespace: namespace.to_owned(), running: None })
    }

    /// What every command of the case printed, masked; or why it could not.
    async fn run(&mut self, script: &Script) -> Transcript {
        let ready = self.make_namespace().await;
        let mut transcript = Transcript::default();
        for command in &script.commands {
            let since = Instant::now();
            let printed = match &ready {
                Ok(()) => self.step(command).await,
                Err(reason) => Err(reason.clone()),
            };
            let answer = match printed {
                Ok(text) => json!({"printed": text.lines().collect::<Vec<_>>()}),
                Err(reason) => json!({"failed": reason}),
            };
            transcript.add(answer, since);
        }
        transcript
    }

    async fn make_namespace(&self) -> Result<(), String> {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}", self.namespace);
        let printed = self.output(&["create", "-f", "-"].map(str::to_owned), &namespace).await?;
        if printed.ends_with("exit 0") { Ok(()) } else { Err(format!("no namespace: {printed}")) }
    }

    async fn step(&mut self, command: &Invocation) -> Result<String, String> {
        let arguments: Vec<String> = command.arguments.iter().map(|word| self.expand(word)).collect();
        match &command.mode {
            CommandMode::Run => self.output(&arguments, &self.expand(&command.stdin)).await,
            CommandMode::Only(pattern) => {
                Ok(only(pattern, &self.output(&arguments, &self.expand(&command.stdin)).await?))
            }
            CommandMode::Until(pattern) => self.until(pattern, &arguments).await,
            CommandMode::Begin(lines) => self.begin(&arguments, *lines).await,
            CommandMode::End(lines) => self.end(*lines).await,
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

    async fn output(&self, arguments: &[String], stdin: &str) -> Result<String, String> {
        match tokio::time::timeout(COMMAND_WITHIN, self.finish(arguments, stdin)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(format!("kubectl could not be run: {error}")),
            Err(_) => Err("kubectl did not end in time".to_owned()),
        }
    }

    /// What it printed once a line matches.
    async fn until(&self, pattern: &str, arguments: &[String]) -> Result<String, String> {
        let deadline = Instant::now() + COMMAND_WITHIN;
        loop {
            let printed = self.output(arguments, "").await?;
            if !only(pattern, &printed).is_empty() {
                return Ok(printed);
            }
            if Instant::now() > deadline {
                return Err(format!("no line matches {pattern}:\n{printed}"));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn finish(&self, arguments: &[String], stdin: &str) -> std::io::Result<String> {
        let mut child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // One that ends without reading has its reasons, which it prints.
            let _ = input.write_all(stdin.as_bytes()).await;
        }
        let output = child.wait_with_output().await?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let code = output.status.code().unwrap_or(-1);
        Ok(mask_output(&format!("{stdout}{stderr}exit {code}")))
    }

    async fn begin(&mut self, arguments: &[String], lines: usize) -> Result<String, String> {
        let child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("kubectl could not be run: {error}"))?;
        let stdout = child.stdout.take().ok_or("kubectl has no output")?;
        let mut running = RunningKubectl { _child: child, lines: BufReader::new(stdout).lines(), printed: Vec::new() };
        running.read(lines).await?;
        self.running = Some(running);
        Ok(String::new())
    }

    /// What was printed since it began; dropping it ends it.
    async fn end(&mut self, lines: usize) -> Result<String, String> {
        let mut running = self.running.take().ok_or("nothing is running")?;
        running.read(lines).await?;
        Ok(mask_output(&running.printed.join("\n")))
    }
}

/// A kubectl that watches until it is dropped.
struct RunningKubectl {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Vec<String>,
}

impl RunningKubectl {
    /// Reads until so many lines were printed.
    async fn read(&mut self, lines: usize) -> Result<(), String> {
        while self.printed.len() < lines {
            match tokio::time::timeout(COMMAND_WITHIN, self.lines.next_line()).await {
                Ok(Ok(Some(line))) => self.printed.push(line),
                Ok(Ok(None) | Err(_)) | Err(_) => {
                    return Err(format!("{} of {lines} lines came: {}", self.printed.len(), self.printed.join("\n")));
                }
            }
        }
        Ok(())
    }
}

fn only(pattern: &str, text: &str) -> String {
    let pattern = Regex::new(pattern).expect("cases hold proper patterns");
    text.lines().filter(|line| pattern.is_match(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Script {
        let text = "=== one\n$ get cm\n$begin 1 get cm -w\n$end 1\n$until x get cm\n";
        script::parse("one", text).expect("a proper script").remove(0)
    }

    async fn told_with(binary: &str) -> Vec<String> {
        let server = PeerServer { url: "https://127.0.0.1:1".into(), ca: "PEM".into(), token: "none".into() };
        let script = cases();
        let transcript = on(Path::new(binary), &server, "ns", &script).await;
        unsound(&script, &transcript.answers).into_iter().map(|found| found.real).collect()
    }

    #[tokio::test]
    async fn a_kubectl_that_cannot_start_fails_every_command() {
        let told = told_with("/nowhere/kubectl").await;

        assert_eq!(told.len(), cases().commands.len());
        assert!(told.iter().all(|wrong| wrong.contains("could not be run")), "{told:?}");
    }

    #[tokio::test]
    async fn a_kubectl_that_does_nothing_fails_every_command() {
        let told = told_with("/bin/false").await;

        assert_eq!(told.len(), cases().commands.len());
        assert!(told.iter().all(|wrong| wrong.contains("no namespace")), "{told:?}");
    }

    #[test]
    fn a_command_that_fails_on_both_servers_is_found() {
        let told = |line: &str, printed: &[&str]| {
            let script = script::parse("one", &format!("=== one\n{line}\n")).expect("a proper script").remove(0);
            wrong(&script.commands[0], &json!({"printed": printed}))
        };

        assert!(told("$ create -f -", &["error: no objects passed to create", "exit 1"]).is_some());
        assert!(told("$refused create -f -", &["error: no objects passed to create", "exit 1"]).is_none());
        assert_eq!(told("$refused create -f -", &["exit 0"]).as_deref(), Some("is not refused"));
        assert!(told("$ get cm nosuch", &["Error from server (NotFound)", "exit 1"]).is_none());
        assert!(told("$ get cm --nosuch", &["error: unknown flag: --nosuch", "exit 1"]).is_some());
    }
}
