//! A launch order → the process becomes the container's program: `portolan pod-init ORDER`.
//!
//! What must happen between the birth of a process and its program is done here, in a process of its own, since it could not be done
//! safely in a copy of the runner. It waits for a byte on its input: the runner sends it once the process is noted, so that no
//! program ever runs that a later runner would not find.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{Gid, Mode, OFlags, Uid, open};
use rustix::io::{read, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, ioctl_tiocsctty, setrlimit, setsid, umask};
use rustix::stdio::stdin;
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};

use super::low_ports;

/// How the process ends that could not become its program.
pub const NOT_STARTED: u8 = 128;

/// What a process is to become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOrder {
    /// The executable.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it begins.
    pub folder: PathBuf,
    /// Whom it is to be; the runner itself where nobody is named.
    pub user: Option<LaunchUser>,
    /// How much it may have.
    pub limits: LaunchLimits,
    /// What it reads.
    pub input: LaunchInput,
    /// Where to say why it did not start.
    pub report: PathBuf,
}

/// Whom a process is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchUser {
    /// The uid.
    pub user: u32,
    /// The gid.
    pub group: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

/// What a process reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchInput {
    /// Nothing.
    #[default]
    Nothing,
    /// What its starter writes after the byte that tells it to go on.
    Starter,
    /// A terminal, which takes what it writes as well.
    Terminal(PathBuf),
}

/// How much a process may have; as much as the runner where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchLimits {
    /// Processes of its user.
    pub processes: Option<u64>,
    /// Open files.
    pub files: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Bytes of writable memory that it asks for, used or not.
    pub memory: Option<u64>,
    /// The control group that it joins.
    #[serde(default)]
    pub group: Option<PathBuf>,
}

/// Becomes the program. Comes back only where that failed, or where the runner is gone.
pub fn become_program(order: &str) -> ExitCode {
    let order: LaunchOrder = match serde_json::from_str(order) {
        Ok(order) => order,
        Err(error) => {
            eprintln!("pod-init: this is no launch order: {error}; pod-init is started by the runner only");
            return ExitCode::from(NOT_STARTED);
        }
    };
    // Not a byte more: the rest may be its program's.
    let mut go = [0];
    if !retry_on_intr(|| read(stdin(), &mut go)).is_ok_and(|count| count == 1) {
        return ExitCode::from(NOT_STARTED);
    }
    let (step, error) = order.carry_out();
    // The report was opened as the runner's user, before this process became another.
    eprintln!("pod-init: {step}: {error}");
    ExitCode::from(NOT_STARTED)
}

/// What a process has from the time when it was the runner's user.
struct Prepared {
    opened: Option<OwnedFd>,
    terminal: Option<fs::File>,
}

impl LaunchOrder {
    /// All steps in their order; gives back the one that failed.
    fn carry_out(&self) -> (String, io::Error) {
        let mut report = match fs::File::options().append(true).create(true).open(&self.report) {
            Ok(report) => report,
            Err(error) => return (format!("opening {}", self.report.display()), error),
        };
        let (step, error) = match self.prepare() {
            Err(failed) => failed,
            Ok(prepared) => (format!("exec {}", self.executable.display()), self.execute(&prepared)),
        };
        let text = format!("{step}: {error}");
        // The exit code tells that it did not start; why is in the log as well.
        let _ = io::Write::write_all(&mut report, text.as_bytes());
        (step, error)
    }

    /// All but the program; gives back the executable, opened by the runner's user, and the terminal.
    fn prepare(&self) -> Result<Prepared, (String, io::Error)> {
        // Where it is not there, `exec` says so.
        let opened = open(&self.executable, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
        umask(Mode::from_raw_mode(0o022));
        self.limits.join().map_err(|error| ("joining a control group".to_owned(), error))?;
        self.limits.set().map_err(|error| ("setting limits".to_owned(), error))?;
        let terminal = self.take_terminal().map_err(|error| ("taking a terminal".to_owned(), error))?;
        if let Some(user) = &self.user {
            low_ports::keep().map_err(|error| ("keeping the privilege for low ports".to_owned(), error))?;
            user.become_it().map_err(|error| (format!("becoming user {}", user.user), error))?;
        }
        low_ports::hand_on().map_err(|error| ("giving up privileges".to_owned(), error))?;
        set_no_new_privs(true).map_err(|error| ("giving up further privileges".to_owned(), error.into()))?;
        std::env::set_current_dir(&self.folder)
            .map_err(|error| (format!("chdir to {}", self.folder.display()), error))?;
        Ok(Prepared { opened, terminal })
    }

    /// Begins a session of its own whose terminal is the one that is named. It is given to the user that the process becomes.
    fn take_terminal(&self) -> io::Result<Option<fs::File>> {
        let LaunchInput::Terminal(path) = &self.input else { return Ok(None) };
        setsid()?;
        let terminal = fs::File::options().read(true).write(true).open(path)?;
        ioctl_tiocsctty(&terminal)?;
        if let Some(user) = &self.user {
            std::os::unix::fs::fchown(&terminal, Some(user.user), None)?;
        }
        Ok(Some(terminal))
    }

    /// An executable may lie in a folder that is closed to the pod's user, as the runner's own does below a root's home: it is
    /// executed as the file that was opened before.
    fn execute(&self, prepared: &Prepared) -> io::Error {
        let started = |executable: &Path| match self.command(executable, prepared.terminal.as_ref()) {
            Ok(mut command) => command.exec(),
            Err(error) => error,
        };
        let error = started(&self.executable);
        match &prepared.opened {
            Some(opened) if error.kind() == io::ErrorKind::PermissionDenied => {
                started(&PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())))
            }
            Some(_) | None => error,
        }
    }

    fn command(&self, executable: &Path, terminal: Option<&fs::File>) -> io::Result<Command> {
        let mut command = Command::new(executable);
        command.arg0(&self.executable).args(&self.arguments);
        if self.input == LaunchInput::Nothing {
            command.stdin(Stdio::null());
        }
        if let Some(terminal) = terminal {
            command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal.try_clone()?);
        }
        Ok(command)
    }
}

impl LaunchUser {
    /// Groups first: who is no longer root can change nothing.
    fn become_it(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        set_thread_groups(&groups)?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        Ok(())
    }
}

impl LaunchLimits {
    fn join(&self) -> io::Result<()> {
        // `0` is whoever writes it.
        self.group.as_ref().map_or(Ok(()), |group| fs::write(group.join("cgroup.procs"), "0"))
    }

    fn set(&self) -> io::Result<()> {
        let limits = [
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.files),
            (Resource::Fsize, self.file_size),
            (Resource::Data, self.memory),
            // Whole memories of pods on the user's disk help nobody.
            (Resource::Core, Some(0)),
        ];
        for (resource, limit) in limits {
            if let Some(limit) = limit {
                // Who is not root can allow nobody more than it has.
                let limit = Some(getrlimit(resource).maximum.map_or(limit, |most| most.min(limit)));
                setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
            }
        }
        Ok(())
    }
}
