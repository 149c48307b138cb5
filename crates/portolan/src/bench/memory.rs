//! Process ids → resident memory, from `/proc`.

/// Resident memory of the processes together, in MiB; nothing where one of them cannot be read.
pub(super) fn resident_mib(pids: &[u32]) -> Option<f64> {
    if pids.is_empty() {
        return None;
    }
    let kib: Option<u64> = pids.iter().map(|pid| resident_kib(*pid)).sum();
    #[expect(clippy::cast_precision_loss, reason = "kibibytes of one machine's memory fit into 52 bits")]
    kib.map(|kib| kib as f64 / 1024.0)
}

fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_some_memory() {
        assert!(resident_mib(&[std::process::id()]).is_some_and(|mib| mib > 0.5));
    }

    #[test]
    fn a_process_that_is_not_there_has_no_figure() {
        assert_eq!(resident_mib(&[u32::MAX]), None);
        assert_eq!(resident_mib(&[]), None);
    }
}
