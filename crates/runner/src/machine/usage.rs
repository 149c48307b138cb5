//! The processes of this machine → how much memory and CPU those of pods use. Read only when somebody asks.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::Duration;

use super::leftovers::processes;
use super::run_notes::POD_VARIABLE;

/// The kernel counts for programs in hundredths of a second, on every machine that this runs on (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// What processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory, in bytes. What processes share counts for each of them.
    pub memory: u64,
    /// Time on processors, with that of children that have ended.
    pub cpu: Duration,
    /// How many processes there are.
    pub processes: usize,
}

/// What the processes of each pod use, by the pod's uid.
pub fn usage_by_pod() -> io::Result<HashMap<String, Usage>> {
    let mut all: HashMap<String, Usage> = HashMap::new();
    for entry in processes()?.into_iter().filter(|entry| !entry.is_dead) {
        // One that has ended since uses nothing.
        let Some(pod) = pod_of(entry.process) else { continue };
        let Some((memory, cpu)) = used_by(entry.process) else { continue };
        let usage = all.entry(pod).or_default();
        usage.memory += memory;
        usage.cpu += cpu;
        usage.processes += 1;
    }
    Ok(all)
}

/// The pod that a process was started for.
fn pod_of(process: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
        (name == POD_VARIABLE).then_some(value)
    });
    value.map(str::to_owned)
}

fn used_by(process: i32) -> Option<(u64, Duration)> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
    Some((read_memory(&read("status")?)?, read_cpu(&read("stat")?)?))
}

/// `VmRSS:   1234 kB`.
fn read_memory(status: &str) -> Option<u64> {
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Fields 14 to 17 are ticks on processors: its own, and those of children that have ended (proc(5)).
fn read_cpu(stat: &str) -> Option<Duration> {
    // The name may have anything in it; the fields after it begin with the third.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_that_of_a_process_and_of_children_that_have_ended() {
        let stat = "7 (a) b (c) S 1 5 5 0 -1 4194560 1 2 3 4 100 50 25 25 20 0 1 0 4711 1000 20 9";

        assert_eq!(read_cpu(stat), Some(Duration::from_secs(2)));
        assert_eq!(read_cpu("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_what_is_resident() {
        assert_eq!(read_memory("Name:\tx\nVmRSS:\t    1234 kB\nRssAnon:\t 9 kB\n"), Some(1234 * 1024));
        assert_eq!(read_memory("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn this_process_uses_memory() {
        let own = i32::try_from(std::process::id()).unwrap();

        assert!(used_by(own).unwrap().0 > 0);
    }
}
