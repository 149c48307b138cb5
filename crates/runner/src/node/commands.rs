//! Hooks of containers → commands beside them, requests, or waiting.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};

use super::NodeContext;
use super::probing::{http_answer, port_number};
use super::starting::ContainerFiles;
use super::worker::{PodFact, PodWorker};
use crate::machine::init::{LaunchLimits, LaunchOrder};
use crate::machine::logs::OutputLog;
use crate::machine::processes::{ContainerLaunch, ProcessEnd, ProcessHandle, StartedProcess};
use crate::machine::programs::program_file;
use crate::pod::containers::uid;
use crate::pod::lifecycle::{post_start, pre_stop};
use crate::pod::paths::substituted;
use crate::pod::programs::{Executable, program_of};
use crate::pod::record::HookState;

/// What is kept of the output of a command beside a container.
const SIDE_OUTPUT: u64 = 64 * 1024;

/// How a command beside a container ended.
pub(super) struct CommandEnd {
    pub(super) exit_code: i32,
    /// What it wrote, and why it did not start.
    pub(super) output: String,
}

/// Processes beside containers, which end with the run that they are beside.
#[derive(Clone, Debug, Default)]
pub(super) struct SideProcesses {
    inner: Arc<Mutex<SideTable>>,
}

#[derive(Debug, Default)]
struct SideTable {
    live: Vec<(String, ProcessHandle)>,
    /// Runs that have ended.
    ended: HashSet<String>,
}

impl SideProcesses {
    /// Takes a process in; false where its run has ended already.
    fn add(&self, run: &str, process: ProcessHandle) -> bool {
        let mut table = self.inner.lock().expect("nobody panics with it");
        if table.ended.contains(run) {
            return false;
        }
        table.live.push((run.to_owned(), process));
        true
    }

    fn remove(&self, process: &ProcessHandle) {
        self.inner.lock().expect("nobody panics with it").live.retain(|(_, other)| other != process);
    }

    /// Ends all that run beside a run, and all that would.
    pub(super) async fn end(&self, run: &str) {
        let found = {
            let mut table = self.inner.lock().expect("nobody panics with it");
            table.ended.insert(run.to_owned());
            let (found, others) = std::mem::take(&mut table.live).into_iter().partition(|(of, _)| of == run);
            table.live = others;
            found
        };
        end_all(found).await;
    }

    /// Ends all of them.
    pub(super) async fn end_all(&self) {
        let found = std::mem::take(&mut self.inner.lock().expect("nobody panics with it").live);
        end_all(found).await;
    }
}

async fn end_all(processes: Vec<(String, ProcessHandle)>) {
    for (_, process) in processes {
        // What could not be ended is found by the next runner.
        let _ = tokio::task::spawn_blocking(move || process.kill()).await;
    }
}

/// Runs commands beside a container: in its folder, as its user, with its variables.
#[derive(Clone)]
pub(super) struct SideCommands {
    /// The run that they are beside.
    pub(super) run: String,
    pub(super) others: SideProcesses,
    pub(super) context: Arc<NodeContext>,
    pub(super) pod: String,
    pub(super) container: Container,
    pub(super) files: ContainerFiles,
    pub(super) limits: LaunchLimits,
}

impl SideCommands {
    /// Runs one; after the time it is killed, and that is an error.
    pub(super) async fn run(&self, command: &[String], within: Option<Duration>) -> Result<CommandEnd, String> {
        let launch = self.launch(command)?;
        let (folder, log) = (launch.order.report.clone(), launch.log.clone());
        let process = self.context.launcher.launch(launch).await.map_err(|error| error.to_string())?;
        let handle = process.handle();
        if !self.others.add(&self.run, handle.clone()) {
            let late = handle.clone();
            let _ = tokio::task::spawn_blocking(move || late.kill()).await;
        }
        let outcome = self.outcome(command, within, process, &handle).await;
        self.others.remove(&handle);
        let end = outcome.and_then(|end| end.map_err(|error| error.to_string()));
        let (lines, _) = log.open(None).map_err(|error| error.to_string())?;
        let lines: Vec<String> = lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect();
        remove(&folder);
        let end = end?;
        let output = end.not_started.unwrap_or_else(|| lines.join("\n"));
        Ok(CommandEnd { exit_code: end.exit_code, output })
    }

    /// Waits for the end; one that takes too long is killed.
    async fn outcome(
        &self,
        command: &[String],
        within: Option<Duration>,
        process: StartedProcess,
        handle: &ProcessHandle,
    ) -> Result<std::io::Result<ProcessEnd>, String> {
        let mut ended = std::pin::pin!(process.ended());
        let Some(within) = within else { return Ok(ended.await) };
        if let Ok(end) = tokio::time::timeout(within, &mut ended).await {
            return Ok(end);
        }
        let late = handle.clone();
        // It is waited for, so that nothing of it is left.
        let _ = tokio::task::spawn_blocking(move || late.kill()).await;
        let _ = ended.await;
        Err(format!("command timed out: {command:?} timed out after {}s", within.as_secs()))
    }

    fn launch(&self, command: &[String]) -> Result<ContainerLaunch, String> {
        let image = self.container.image.as_deref().unwrap_or_default();
        let command: Vec<String> = command.iter().map(|word| substituted(word, &self.files.mounts)).collect();
        let program = program_of(image).map_err(|error| error.to_string())?;
        let invocation = program.invocation(&command, &[]).map_err(|error| error.to_string())?;
        let executable = match invocation.executable {
            Executable::Own => self.context.settings.executable.clone(),
            Executable::Named(name) => program_file(&name).ok_or_else(|| format!("{name} is not installed"))?,
        };
        let id = uuid::Uuid::new_v4().to_string();
        let folder = self.context.folders.pod(&self.pod).join("beside").join(&id);
        let log = OutputLog::begin(&folder, SIDE_OUTPUT).map_err(|error| error.to_string())?;
        let order = LaunchOrder {
            executable,
            arguments: invocation.arguments,
            folder: self.files.folder.clone(),
            user: self.files.user.clone(),
            limits: self.limits.clone(),
            report: folder.join("report"),
        };
        let (container, environment) = (self.container.name.clone(), self.files.environment.clone());
        Ok(ContainerLaunch { id, pod: self.pod.clone(), container, order, environment, log })
    }
}

/// The folder of a command that has ended.
fn remove(report: &std::path::Path) {
    if let Some(folder) = report.parent() {
        // It goes with the pod at the latest.
        let _ = std::fs::remove_dir_all(folder);
    }
}

impl PodWorker {
    pub(super) fn side_commands(&self, container: &str) -> Option<SideCommands> {
        let files = self.files.get(container)?.clone();
        let container = self.container(container)?;
        let run = self.record.container(&container.name).running()?.id.clone();
        let (context, others, pod) = (self.context.clone(), self.beside.clone(), uid(&self.pod).to_owned());
        let limits = self.launch_limits(&container, files.user.as_ref());
        Some(SideCommands { run, others, context, pod, container, files, limits })
    }

    pub(super) fn post_start(&mut self, container: &str) {
        if let Some(running) = self.record.container_mut(container).running_mut() {
            running.post_start = HookState::Running;
        }
        let handler = self.container(container).and_then(|spec| post_start(&spec).cloned());
        self.hook(container, handler, |container, id, outcome| PodFact::PostStart { container, id, outcome });
    }

    pub(super) fn pre_stop(&mut self, container: &str) {
        let running = self.record.container_mut(container).running_mut();
        if let Some(stop) = running.and_then(|running| running.stop.as_mut()) {
            stop.pre_stop = HookState::Running;
        }
        let handler = self.container(container).and_then(|spec| pre_stop(&spec).cloned());
        self.hook(container, handler, |container, id, outcome| PodFact::PreStop { container, id, outcome });
    }

    fn hook(
        &self,
        container: &str,
        handler: Option<LifecycleHandler>,
        fact: fn(String, String, Result<(), String>) -> PodFact,
    ) {
        let id = self.record.container(container).running().map(|running| running.id.clone()).unwrap_or_default();
        let (teller, container, beside) = (self.teller.clone(), container.to_owned(), self.side_commands(container));
        tokio::spawn(async move {
            let outcome = match (handler, beside) {
                (Some(handler), Some(beside)) => carry_out(&handler, &beside).await,
                (None, _) | (_, None) => Ok(()),
            };
            // The worker may be gone by now.
            let _ = teller.send(fact(container, id, outcome));
        });
    }
}

async fn carry_out(handler: &LifecycleHandler, beside: &SideCommands) -> Result<(), String> {
    if let Some(exec) = &handler.exec {
        let command = exec.command.clone().unwrap_or_default();
        let end = beside.run(&command, None).await?;
        return if end.exit_code == 0 { Ok(()) } else { Err(format!("exit code {}: {}", end.exit_code, end.output)) };
    }
    if let Some(get) = &handler.http_get {
        let port = port_number(&get.port, &beside.container)?;
        let host = get.host.as_deref().filter(|host| !host.is_empty()).unwrap_or("127.0.0.1");
        let code = http_answer(host, port, get.path.as_deref().unwrap_or("/"), &[]).await?;
        return if (200..400).contains(&code) { Ok(()) } else { Err(format!("HTTP {code}")) };
    }
    if let Some(pause) = &handler.sleep {
        tokio::time::sleep(Duration::from_secs(u64::try_from(pause.seconds).unwrap_or(0))).await;
    }
    Ok(())
}
