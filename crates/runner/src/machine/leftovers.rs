//! Notes of a runner that is gone → its processes that still run, ended.
//!
//! A process is known by its number and by when it was born, so that a number that was given anew ends nobody else; what it
//! started is known by its group, and by the run's variable in its environment.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::run_notes::{POD_VARIABLE, RUN_VARIABLE, RunNote, RunNotes};

/// How long it is waited for killed processes to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A process as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) process: i32,
    pub(crate) group: i32,
    pub(crate) born: u64,
    pub(crate) threads: u64,
    /// Whether it has ended and only its number is left.
    pub(crate) is_dead: bool,
}

/// Ends what earlier runners left, and forgets their notes; gives back how many processes that were.
pub fn end_leftovers(notes: &RunNotes) -> io::Result<usize> {
    let mut ended = 0;
    for note in notes.all()? {
        if note.boot == boot_id()? {
            ended += end_run(&note)?;
            // What has cleared its variables.
            ended += note.user.map_or(Ok(0), |user| end_user(user, &note.pod))?;
        }
        notes.forget(&note.id)?;
    }
    Ok(ended)
}

/// Kills all processes of a run until none is left.
pub fn end_run(note: &RunNote) -> io::Result<usize> {
    end_processes(note.process, || processes_of(note))
}

/// Kills all processes that have cleared their variables and are of a user that is nobody but a pod: what bears the variable of
/// another pod is another runner's.
pub fn end_user(user: u32, pod: &str) -> io::Result<usize> {
    let is_of = |entry: &ProcessEntry| {
        super::usage::user_of(entry.process) == Some(user) && pod_of(entry.process).is_none_or(|told| told == pod)
    };
    end_processes(0, || Ok(living()?.into_iter().filter(is_of).collect()))
}

/// Kills what is found until nothing is. All are stopped before the first is killed: what multiplies faster than it is found would go
/// on with the places of those that are killed, and who is stopped keeps its place. `own` is the runner's child, which somebody waits for.
fn end_processes(own: i32, find: impl Fn() -> io::Result<Vec<ProcessEntry>>) -> io::Result<usize> {
    let (mut ended, began) = (BTreeMap::new(), Instant::now());
    loop {
        let alive = find()?;
        if alive.is_empty() || began.elapsed() > GONE_WITHIN {
            reap(&ended, own);
            return Ok(ended.len());
        }
        let mut is_new = false;
        for entry in &alive {
            is_new |= ended.insert(entry.process, entry.born).is_none();
            signal(entry.process, Signal::STOP);
        }
        if is_new {
            continue;
        }
        for entry in &alive {
            signal(entry.process, Signal::KILL);
        }
        std::thread::yield_now();
    }
}

fn signal(process: i32, signal: Signal) {
    if let Some(process) = Pid::from_raw(process) {
        // It may have ended since it was seen.
        let _ = kill_process(process, signal);
    }
}

/// Those whose parents are gone may be this process's by now, which nobody else waits for (a runner that is the first process of a
/// container).
fn reap(ended: &BTreeMap<i32, u64>, own: i32) {
    for (process, born) in ended.iter().filter(|(process, _)| **process != own) {
        let is_left = process_entry(*process).is_some_and(|entry| entry.is_dead && entry.born == *born);
        if let Some(process) = Pid::from_raw(*process).filter(|_| is_left) {
            // Most are others' children.
            let _ = waitpid(Some(process), WaitOptions::NOHANG);
        }
    }
}

/// How many processes live that were started for a pod: those in whose environment its uid is.
pub fn process_count(pod: &str) -> io::Result<usize> {
    Ok(living()?.into_iter().filter(|entry| bears(entry.process, POD_VARIABLE, pod)).count())
}

fn living() -> io::Result<Vec<ProcessEntry>> {
    Ok(processes()?.into_iter().filter(|entry| !entry.is_dead).collect())
}

/// The processes of a run that live: its own, those of its group, and those that bear its variable.
fn processes_of(note: &RunNote) -> io::Result<Vec<ProcessEntry>> {
    let all = processes()?;
    // As long as a group has members its number is given to nobody; one whose first process is another than it was is another group.
    let is_same_group = all.iter().all(|entry| entry.process != note.process || entry.born == note.born);
    let is_of = |entry: &ProcessEntry| {
        let is_itself = entry.process == note.process && entry.born == note.born;
        let is_of_group = is_same_group && entry.group == note.process;
        let is_later = entry.born >= note.born;
        is_itself || (is_later && (is_of_group || bears(entry.process, RUN_VARIABLE, &note.id)))
    };
    Ok(all.into_iter().filter(|entry| !entry.is_dead && is_of(entry)).collect())
}

/// The pod that a process says it is of.
fn pod_of(process: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let prefix = format!("{POD_VARIABLE}=");
    let found = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(prefix.as_bytes()));
    found.map(|pod| String::from_utf8_lossy(pod).into_owned())
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

/// `PID (NAME) STATE PPID PGRP …`; the 20th field is how many threads it has, the 22nd when it was born. The name may have anything in it.
fn read_stat(process: i32, stat: &str) -> Option<ProcessEntry> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    let (group, born) = (fields.get(2)?.parse().ok()?, fields.get(19)?.parse().ok()?);
    let threads = fields.get(17)?.parse().ok()?;
    Some(ProcessEntry { process, group, born, threads, is_dead: matches!(state, "Z" | "X") })
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

        let expected = ProcessEntry { process: 7, group: 5, born: 4711, threads: 1, is_dead: false };
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
