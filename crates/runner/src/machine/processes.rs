//! An order → a process that runs, what it writes in its log, and how it ended.
//!
//! ```text
//! birth ─► noted on disk ─► told to go on ─► becomes its program ─► ends ─► what it started ends ─► forgotten
//! ```
//!
//! A process that the runner did not live to note never becomes its program: see [`init`](super::init).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use super::init::{LaunchInput, LaunchOrder, NOT_STARTED};
use super::leftovers::{boot_id, end_run, process_entry};
use super::logs::{OutputLog, OutputStream};
use super::run_notes::{POD_VARIABLE, RUN_VARIABLE, RunNote, RunNotes};
use crate::pod::identity::POD_USERS;

/// Where programs are looked for, and where processes of pods look: never on the user's own PATH.
pub const SYSTEM_FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command by which the runner's own executable becomes a container's program.
pub const INIT_COMMAND: &str = "pod-init";

/// How long it takes at most to read what a process that has ended wrote.
const DRAINED_WITHIN: Duration = Duration::from_secs(3);

/// Starts processes.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The runner's own executable.
    own: PathBuf,
    notes: RunNotes,
}

/// A run of a container that is to be started.
#[derive(Clone, Debug)]
pub struct ContainerLaunch {
    /// The id of the run.
    pub id: String,
    /// The pod's uid.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// What the process is to become.
    pub order: LaunchOrder,
    /// All its variables.
    pub environment: BTreeMap<String, String>,
    /// Where its output goes.
    pub log: OutputLog,
}

/// A process that was started.
#[derive(Debug)]
pub struct StartedProcess {
    note: RunNote,
    notes: RunNotes,
    child: Child,
    output: JoinSet<()>,
    log: OutputLog,
    report: PathBuf,
}

/// A process that was started for who reads and writes itself; nothing of it comes into its log.
#[derive(Debug)]
pub struct AttachedProcess {
    /// The process.
    pub process: StartedProcess,
    /// Its input.
    pub input: Option<ChildStdin>,
    /// Its output.
    pub output: Option<ChildStdout>,
    /// Its errors.
    pub errors: Option<ChildStderr>,
}

/// A process that runs, for who tells it something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessHandle {
    note: RunNote,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Its exit code; 128 and the signal where a signal ended it.
    pub exit_code: i32,
    /// Why it did not become its program, where it did not.
    pub not_started: Option<String>,
}

impl Launcher {
    /// One that starts processes by an executable that knows [`INIT_COMMAND`].
    pub fn new(own: PathBuf, notes: RunNotes) -> Self {
        Self { own, notes }
    }

    /// Starts a process. When this returns it is noted, and on its way to become its program.
    pub async fn launch(&self, launch: ContainerLaunch) -> io::Result<StartedProcess> {
        let AttachedProcess { mut process, input, output, errors } = self.launch_attached(launch).await?;
        drop(input);
        if let Some(from) = output {
            process.output.spawn(process.log.clone().take(OutputStream::Out, from, Timestamp::now));
        }
        if let Some(from) = errors {
            process.output.spawn(process.log.clone().take(OutputStream::Error, from, Timestamp::now));
        }
        Ok(process)
    }

    /// Starts a process whose input and output are the caller's.
    pub async fn launch_attached(&self, launch: ContainerLaunch) -> io::Result<AttachedProcess> {
        let mut child = self.spawn(&launch)?;
        let note = note_of(&launch, &child)?;
        self.notes.keep(&note)?;
        // It may have been killed already; then it ends like any other.
        let mut input = child.stdin.take();
        if let Some(go) = &mut input {
            let _ = go.write_all(b"g").await;
        }
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (notes, log, report) = (self.notes.clone(), launch.log, launch.order.report);
        let process = StartedProcess { note, notes, child, output: JoinSet::new(), log, report };
        Ok(AttachedProcess { process, input, output, errors })
    }

    /// A process that waits to be told to go on, in a group of its own.
    fn spawn(&self, launch: &ContainerLaunch) -> io::Result<Child> {
        let order = serde_json::to_string(&launch.order)?;
        let mut command = Command::new(&self.own);
        if !matches!(launch.order.input, LaunchInput::Terminal(_)) {
            // Who is to have a terminal begins a session, which the leader of a group cannot.
            command.process_group(0);
        }
        command
            .arg(INIT_COMMAND)
            .arg(order)
            .env_clear()
            .env("PATH", SYSTEM_FOLDERS)
            .envs(&launch.environment)
            .env(RUN_VARIABLE, &launch.id)
            .env(POD_VARIABLE, &launch.pod)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

fn note_of(launch: &ContainerLaunch, child: &Child) -> io::Result<RunNote> {
    let gone = || io::Error::other("the process ended before it was noted");
    let process = child.id().and_then(|id| i32::try_from(id).ok()).ok_or_else(gone)?;
    let born = process_entry(process).ok_or_else(gone)?.born;
    let (id, pod, container) = (launch.id.clone(), launch.pod.clone(), launch.container.clone());
    let user = launch.order.user.as_ref().map(|user| user.user).filter(|user| POD_USERS.contains(user));
    Ok(RunNote { id, pod, container, process, born, boot: boot_id()?, user })
}

impl StartedProcess {
    /// For who tells it something while somebody waits for its end.
    pub fn handle(&self) -> ProcessHandle {
        ProcessHandle { note: self.note.clone() }
    }

    /// Waits for its end, ends what it started and left, and waits until all that they wrote is in the log.
    pub async fn ended(mut self) -> io::Result<ProcessEnd> {
        let status = self.child.wait().await?;
        let note = self.note.clone();
        tokio::task::spawn_blocking(move || end_run(&note)).await.map_err(io::Error::other)??;
        // Who has hidden itself from its run may hold the other end open for ever; what is in the pipes is read long before.
        let drained = async { while self.output.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAINED_WITHIN, drained).await;
        self.output.shutdown().await;
        self.log.end();
        self.notes.forget(&self.note.id)?;
        Ok(end_of(status, &self.report))
    }
}

fn end_of(status: ExitStatus, report: &Path) -> ProcessEnd {
    let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let told = std::fs::read_to_string(report).ok().filter(|text| !text.is_empty());
    let not_started = told.filter(|_| exit_code == i32::from(NOT_STARTED));
    ProcessEnd { exit_code, not_started }
}

impl ProcessHandle {
    /// The number of the first process.
    pub fn process(&self) -> i32 {
        self.note.process
    }

    /// Tells the container's first process to end; what it started is its own affair.
    pub fn tell(&self, signal: Signal) -> io::Result<()> {
        if let Some(process) = Pid::from_raw(self.note.process).filter(|_| self.is_there()) {
            kill_process(process, signal)?;
        }
        Ok(())
    }

    /// Kills it, and everything that it started.
    pub fn kill(&self) -> io::Result<usize> {
        end_run(&self.note)
    }

    /// Whether the number still is that of this process.
    fn is_there(&self) -> bool {
        process_entry(self.note.process).is_some_and(|entry| entry.born == self.note.born)
    }
}

/// The executable of this name in the system's folders.
pub fn find_executable(name: &str) -> Option<PathBuf> {
    SYSTEM_FOLDERS.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}
