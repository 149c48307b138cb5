//! Notes of a runner that is gone → its processes that still run, ended.
//!
//! A process is known by its number and by when it was born, so that a number that was given anew ends nobody else; what it
//! started is known by its group together with the run's variable in its environment.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::run_notes::{POD_VARIABLE, RUN_VARIABLE, RunNote, RunNotes};

/// How long it is waited for killed processes to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A process as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) process: i32,
    pub(crate) group: i32,
    pub(crate) born: u64,
    /// Whether it has ended and only its number is left.
    pub(crate) is_dead: bool,
}

/// Ends what earlier runners left, and forgets their notes; gives back how many processes that were.
pub fn end_leftovers(notes: &RunNotes) -> io::Result<usize> {
    let mut ended = 0;
    for note in notes.all()? {
        if note.boot == boot_id()? {
            ended += end_run(&note)?;
        }
        notes.forget(&note.id)?;
    }
    Ok(ended)
}

/// Kills all processes of a run until none is left.
pub fn end_run(note: &RunNote) -> io::Result<usize> {
    let (mut ended, began) = (std::collections::BTreeSet::new(), Instant::now());
    loop {
        let alive = processes_of(note)?;
        if alive.is_empty() || began.elapsed() > GONE_WITHIN {
            return Ok(ended.len());
        }
        for entry in &alive {
            if let Some(process) = Pid::from_raw(entry.process) {
                // It may have ended since it was seen.
                let _ = kill_process(process, Signal::KILL);
            }
            ended.insert(entry.process);
        }
        std::thread::yield_now();
    }
}

/// How many processes live that were started for a pod: those in whose environment its uid is.
pub fn process_count(pod: &str) -> io::Result<usize> {
    let all = processes()?.into_iter().filter(|entry| !entry.is_dead);
    Ok(all.filter(|entry| bears(entry.process, POD_VARIABLE, pod)).count())
}

/// The processes of a run that live: its own, and those that bear its variable.
fn processes_of(note: &RunNote) -> io::Result<Vec<ProcessEntry>> {
    let all = processes()?.into_iter().filter(|entry| !entry.is_dead);
    Ok(all.filter(|entry| is_of(entry, note)).collect())
}

fn is_of(entry: &ProcessEntry, note: &RunNote) -> bool {
    let is_itself = entry.process == note.process && entry.born == note.born;
    is_itself || (entry.born >= note.born && bears(entry.process, RUN_VARIABLE, &note.id))
}

/// Whether a variable is in the environment that the process was started with.
fn bears(process: i32, variable: &str, value: &str) -> bool {
    let wanted = format!("{variable}={value}");
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// All processes of the machine.
pub(crate) fn processes() -> io::Result<Vec<ProcessEntry>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has ended since is none.
        all.extend(process_entry(process));
    }
    Ok(all)
}

/// A process, where there is one of this number.
pub(crate) fn process_entry(process: i32) -> Option<ProcessEntry> {
    read_stat(process, &fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// `PID (NAME) STATE PPID PGRP …`; the 22nd field is when it was born. The name may have anything in it.
fn read_stat(process: i32, stat: &str) -> Option<ProcessEntry> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    let (group, born) = (fields.get(2)?.parse().ok()?, fields.get(19)?.parse().ok()?);
    Some(ProcessEntry { process, group, born, is_dead: matches!(state, "Z" | "X") })
}

/// Which start of the machine this is.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "7 (a) b (c) S 1 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1000 2000";

        let expected = ProcessEntry { process: 7, group: 5, born: 4711, is_dead: false };
        assert_eq!(read_stat(7, stat), Some(expected));
        assert_eq!(read_stat(7, "7 (a"), None);
    }

    #[test]
    fn this_process_is_among_all() {
        let own = i32::try_from(std::process::id()).unwrap();

        assert!(processes().unwrap().iter().any(|entry| entry.process == own && !entry.is_dead));
        assert!(process_entry(own).unwrap().born > 0);
    }
}
