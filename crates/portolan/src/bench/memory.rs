//! Process ids → resident memory, from `/proc`.

/// Resident memory of the processes together, in MiB; nothing where one of them cannot be read.
pub(super) fn resident_mib(pids: &[u32]) -> Option<f64> {
    if pids.is_empty() {
        return None;
    }
    pids.iter().map(|pid| mib(*pid, "VmRSS:")).sum()
}

/// What the process wrote itself, in MiB: resident memory without the pages of the executable, which the kernel takes back
/// when it needs them, and which processes of one program share.
pub(super) fn own_mib(pid: u32) -> Option<f64> {
    mib(pid, "RssAnon:")
}

fn mib(pid: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "kibibytes of one machine's memory fit into 52 bits")]
    Some(kib as f64 / 1024.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_some_memory() {
        assert!(resident_mib(&[std::process::id()]).is_some_and(|mib| mib > 0.5));
    }

    #[test]
    fn what_a_process_wrote_is_a_part_of_what_it_takes() {
        let id = std::process::id();
        assert!(own_mib(id).is_some_and(|own| own > 0.1 && own < resident_mib(&[id]).unwrap()));
    }

    #[test]
    fn a_process_that_is_not_there_has_no_figure() {
        assert_eq!(resident_mib(&[u32::MAX]), None);
        assert_eq!(resident_mib(&[]), None);
    }
}
