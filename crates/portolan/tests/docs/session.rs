//! Commands → what they said and their exit codes, in one shell that remembers what the reader set.
//!
//! The shell and what it starts are process groups of their own, so that everything ends with the page.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longer than any documented command takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// A shell in a folder.
pub struct Session {
    shell: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    /// Where commands and their output are kept.
    notes: PathBuf,
    count: usize,
    background: Vec<Background>,
}

/// What a command left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub said: String,
}

/// A command that stays.
struct Background {
    /// What it takes the place of: nothing else with this slot runs beside it.
    slot: String,
    group: String,
    output: PathBuf,
}

impl Session {
    /// A shell in a folder with these variables and no others.
    pub fn start(folder: &Path, notes: PathBuf, variables: &[(&str, String)]) -> Self {
        fs::create_dir_all(&notes).expect("a folder can be made");
        let mut shell = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(folder)
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("bash runs");
        let input = shell.stdin.take().expect("a pipe");
        let answers = lines(BufReader::new(shell.stdout.take().expect("a pipe")));
        Self { shell, input, answers, notes, count: 0, background: Vec::new() }
    }

    /// Runs a command to its end.
    pub fn run(&mut self, text: &str) -> Result<Ran, String> {
        let (script, output) = self.note(text);
        self.send(&format!("{}; echo \"$?\"", reading(&script, &output)));
        let code = self.answer().map_err(|why| format!("{why}; it said:\n{}", said(&output)))?;
        Ok(Ran { code: code.parse().map_err(|_| format!("the shell answered {code:?}"))?, said: said(&output) })
    }

    /// Starts a command, and waits until it has said one of these.
    pub fn start_background(&mut self, text: &str, slot: &str, ready: &[&str]) -> Result<Ran, String> {
        self.stop_background(slot)?;
        let (script, output) = self.note(text);
        // With job control the command is a process group of its own.
        self.send(&format!("set -m; {} & set +m; echo $!", reading(&script, &output)));
        let group = self.answer()?;
        self.background.push(Background { slot: slot.to_owned(), group: group.clone(), output: output.clone() });
        let until = Instant::now() + PATIENCE;
        loop {
            let said = said(&output);
            if ready.iter().any(|text| said.contains(text)) {
                return Ok(Ran { code: 0, said });
            }
            if !is_alive(&group) {
                return Err(format!("it ended at once; it said:\n{said}"));
            }
            if Instant::now() > until {
                return Err(format!("it did not say {ready:?}; it said:\n{said}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the commands that stay have said of late.
    pub fn background_output(&self) -> String {
        let told = |one: &Background| {
            ["--- ", &one.slot, "\n", &last_lines(&one.output), "\n", &last_lines(&errors(&one.output)), "\n"].concat()
        };
        self.background.iter().map(told).collect()
    }

    /// Ends what has the slot, as Ctrl-C would, and waits for it.
    fn stop_background(&mut self, slot: &str) -> Result<(), String> {
        let Some(index) = self.background.iter().position(|one| one.slot == slot) else { return Ok(()) };
        let one = self.background.remove(index);
        signal(&one.group, "TERM");
        let until = Instant::now() + PATIENCE;
        while is_alive(&one.group) {
            if Instant::now() > until {
                return Err(format!("the earlier {slot} did not end"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> (PathBuf, PathBuf) {
        self.count += 1;
        let script = self.notes.join(format!("{}.sh", self.count));
        fs::write(&script, format!("{text}\n")).expect("a file can be written");
        (script, self.notes.join(format!("{}.out", self.count)))
    }

    fn send(&mut self, line: &str) {
        // A shell that has ended is noticed by its missing answer.
        let _ = writeln!(self.input, "{line}");
    }

    fn answer(&self) -> Result<String, String> {
        self.answers.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("it did not end within {PATIENCE:?}"),
            RecvTimeoutError::Disconnected => "it ended the shell".to_owned(),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Killed at once, `portolan up` would leave its pods to a start that never comes.
        for one in &self.background {
            signal(&one.group, "TERM");
        }
        let until = Instant::now() + PATIENCE;
        while self.background.iter().any(|one| is_alive(&one.group)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        for one in &self.background {
            signal(&one.group, "KILL");
        }
        signal(&self.shell.id().to_string(), "KILL");
        let _ = self.shell.wait();
        // On a busy machine what was killed goes on holding its ports for a moment, and the next page wants the same ones.
        let until = Instant::now() + PATIENCE;
        while self.background.iter().any(|one| is_alive(&one.group)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Carries out a file of commands; what they say goes into two files, so that progress does not cut lines apart.
fn reading(script: &Path, output: &Path) -> String {
    format!("source '{}' >'{}' 2>'{}' </dev/null", script.display(), output.display(), errors(output).display())
}

fn errors(output: &Path) -> PathBuf {
    output.with_extension("err")
}

/// The end of a file.
pub fn last_lines(path: &Path) -> String {
    let text = read(path);
    text[text.rmatch_indices('\n').nth(15).map_or(0, |(at, _)| at)..].to_owned()
}

/// What a command said: its output, and then its errors.
fn said(output: &Path) -> String {
    read(output) + &read(&errors(output))
}

/// Sends a signal to a process group that this session made.
fn signal(group: &str, name: &str) {
    let _ = Command::new("kill").args([&format!("-{name}"), "--", &format!("-{group}")]).stderr(Stdio::null()).status();
}

/// Whether a process of the group still runs; one that nobody has waited for yet does not.
fn is_alive(group: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("the system has /proc");
    processes.filter_map(Result::ok).any(|process| {
        let stat = read(&process.path().join("stat"));
        // `pid (name) state parent group …`, where a name may hold anything.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        fields.next().is_some_and(|state| !["Z", "X", ""].contains(&state)) && fields.nth(1) == Some(group)
    })
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

fn lines(from: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in from.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

mod tests {
    use super::Session;

    fn session(folder: &tempfile::TempDir) -> Session {
        let path = std::env::var("PATH").unwrap_or_default();
        Session::start(folder.path(), folder.path().join("notes"), &[("PATH", path)])
    }

    #[test]
    fn a_session_remembers_variables_and_functions_and_tells_exit_codes() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = session(&folder);

        assert_eq!(session.run("export NAME=harbour; hello() { echo \"hello $NAME\"; }").expect("it runs").code, 0);
        let ran = session.run("hello; cat; false").expect("it runs");

        assert_eq!((ran.code, ran.said.as_str()), (1, "hello harbour\n"));
        assert!(session.run("exit 0").is_err(), "the shell is gone, and that is told");
    }

    #[test]
    fn what_stays_is_replaced_by_what_takes_its_slot_and_ends_with_the_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = session(&folder);
        let stays = |name: &str| format!("echo $BASHPID >{name}; echo ready; sleep 1000");
        let alive =
            |name: &str| super::is_alive(std::fs::read_to_string(folder.path().join(name)).expect("written").trim());

        session.start_background(&stays("a"), "server", &["ready"]).expect("it starts");
        session.start_background(&stays("b"), "other", &["ready"]).expect("it starts");
        assert!(alive("a") && alive("b"));
        session.start_background(&stays("c"), "server", &["ready"]).expect("it starts");
        assert!(!alive("a") && alive("b") && alive("c"));
        assert!(session.start_background("echo no", "third", &["ready"]).is_err());

        drop(session);
        assert!(!alive("b") && !alive("c"), "they have ended with the session");
    }
}
