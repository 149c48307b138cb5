//! A folder with a launcher in it, and waiting for what a process does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use portolan_runner::machine::init::{LaunchInput, LaunchLimits, LaunchOrder, LaunchUser};
use portolan_runner::machine::logs::{MOST_KEPT, OutputLog, read_log};
use portolan_runner::machine::processes::{ContainerLaunch, Launcher, ProcessEnd, StartedProcess, find_executable};
use portolan_runner::machine::run_notes::RunNotes;
use tempfile::TempDir;

/// Longer than anything takes here on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// A runner's place on this machine.
pub(crate) struct Home {
    folder: TempDir,
    pub(crate) launcher: Launcher,
    pub(crate) notes: RunNotes,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = RunNotes::in_folder(&folder.path().join("notes")).unwrap();
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_portolan-pod").into(), notes.clone());
        Self { folder, launcher, notes }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `sh -c SCRIPT`, not started yet.
    pub(crate) fn script(&self, id: &str, script: &str) -> ContainerLaunch {
        let order = LaunchOrder {
            executable: find_executable("sh").expect("the system has a shell"),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            folder: "/".into(),
            user: None,
            limits: LaunchLimits::default(),
            input: LaunchInput::Nothing,
            report: self.path(&format!("{id}.report")),
        };
        let log = OutputLog::begin(&self.path(id), MOST_KEPT).unwrap();
        let environment = BTreeMap::from([("COLOUR".to_owned(), "red".to_owned())]);
        // Tests run beside each other, and a run's id is its own on the whole machine.
        let own = self.folder.path().file_name().expect("it has a name").to_string_lossy();
        let id = format!("{own}-{id}");
        ContainerLaunch { id, pod: "u-1".to_owned(), container: "c".to_owned(), order, environment, log }
    }

    pub(crate) async fn start(&self, launch: ContainerLaunch) -> StartedProcess {
        self.launcher.launch(launch).await.unwrap()
    }

    pub(crate) async fn run(&self, launch: ContainerLaunch) -> ProcessEnd {
        tokio::time::timeout(PATIENCE, self.start(launch).await.ended()).await.expect("it ends").unwrap()
    }

    pub(crate) fn output(&self, id: &str) -> Vec<String> {
        let lines = read_log(&self.path(id), None).unwrap();
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }
}

/// Waits until that line is in the log.
pub(crate) async fn wrote(log: &OutputLog, line: &str) {
    let (written, coming) = log.open(None).unwrap();
    if written.iter().any(|written| written.text == line) {
        return;
    }
    let mut coming = coming.expect("it still runs");
    let waiting = async { while coming.recv().await.expect("it does not end before").text != line {} };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is written");
}

/// Waits until that is so.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it comes to that");
}

/// Another user, where this process may become one.
pub(crate) fn other_user() -> Option<LaunchUser> {
    rustix::process::geteuid().is_root().then(|| LaunchUser { user: 65533, group: 65532, groups: vec![65531] })
}
