//! A launch order → the process becomes the container's program: `portolan pod-init ORDER`.
//!
//! What must happen between the birth of a process and its program is done here, in a process of its own, since it could not be done
//! safely in a copy of the runner. It waits for a byte on its input: the runner sends it once the process is noted, so that no
//! program ever runs that a later runner would not find.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{Gid, Mode, Uid};
use rustix::io::{read, retry_on_intr};
use rustix::process::{Resource, Rlimit, ioctl_tiocsctty, setrlimit, setsid, umask};
use rustix::stdio::stdin;
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};

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
    /// Bytes of memory.
    pub memory: Option<u64>,
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

impl LaunchOrder {
    /// All steps in their order; gives back the one that failed.
    fn carry_out(&self) -> (String, io::Error) {
        let mut report = match fs::File::options().append(true).create(true).open(&self.report) {
            Ok(report) => report,
            Err(error) => return (format!("opening {}", self.report.display()), error),
        };
        let (step, error) = match self.prepare() {
            Err(failed) => failed,
            Ok(terminal) => (format!("exec {}", self.executable.display()), self.execute(terminal)),
        };
        let text = format!("{step}: {error}");
        // The exit code tells that it did not start; why is in the log as well.
        let _ = io::Write::write_all(&mut report, text.as_bytes());
        (step, error)
    }

    fn prepare(&self) -> Result<Option<fs::File>, (String, io::Error)> {
        umask(Mode::from_raw_mode(0o022));
        self.limits.set().map_err(|error| ("setting limits".to_owned(), error))?;
        let terminal = self.take_terminal().map_err(|error| ("taking a terminal".to_owned(), error))?;
        if let Some(user) = &self.user {
            user.become_it().map_err(|error| (format!("becoming user {}", user.user), error))?;
        }
        set_no_new_privs(true).map_err(|error| ("giving up further privileges".to_owned(), error.into()))?;
        std::env::set_current_dir(&self.folder)
            .map_err(|error| (format!("chdir to {}", self.folder.display()), error))?;
        Ok(terminal)
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

    fn execute(&self, terminal: Option<fs::File>) -> io::Error {
        let mut command = Command::new(&self.executable);
        command.args(&self.arguments);
        if self.input == LaunchInput::Nothing {
            command.stdin(Stdio::null());
        }
        if let Some(terminal) = terminal {
            let ends = (terminal.try_clone(), terminal.try_clone());
            let (Ok(output), Ok(errors)) = ends else { return io::Error::last_os_error() };
            command.stdin(terminal).stdout(output).stderr(errors);
        }
        command.exec()
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
    fn set(&self) -> io::Result<()> {
        let limits = [
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.files),
            (Resource::Fsize, self.file_size),
            (Resource::As, self.memory),
            // Whole memories of pods on the user's disk help nobody.
            (Resource::Core, Some(0)),
        ];
        for (resource, limit) in limits {
            if limit.is_some() {
                setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
            }
        }
        Ok(())
    }
}
