//! What a container may have → a control group of its own, where the kernel lets the runner make some (cgroup v2).
//!
//! ```text
//! OWN/portolan-runner            the runner itself: a group with members cannot share out what it has
//! OWN/portolan-pods/RUNNER/POD/CONTAINER
//! ```
//!
//! OWN is the group that the runner was started in. It is used where nobody else is in it, as in a systemd unit or scope with
//! `Delegate=yes`: other people's processes are not moved about. Where it is not used, the runner measures (see `measures`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::leftovers::process_entry;

const RUNNER: &str = "portolan-runner";
const PODS: &str = "portolan-pods";
/// Without these a group holds nothing that needs to be held.
const NEEDED: [&str; 2] = ["memory", "pids"];
const WANTED: [&str; 3] = ["memory", "pids", "cpu"];
/// The span in which a share of the processors is counted, in microseconds.
const PERIOD: u64 = 100_000;
/// How long it takes at most until a group whose processes were killed is empty.
const EMPTY_WITHIN: Duration = Duration::from_secs(2);

/// The groups of a runner's pods.
#[derive(Clone, Debug)]
pub struct PodCgroups {
    folder: PathBuf,
    has_cpu: bool,
}

/// What a container's group holds it to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a core.
    pub cpu: Option<u64>,
    /// Processes and threads of its whole pod.
    pub processes: u64,
}

/// Why a runner has no groups to give.
#[derive(Debug, thiserror::Error)]
pub enum NoCgroups {
    /// There is no cgroup v2 with what is needed.
    #[error("this system has no control groups of version 2 that hold memory and processes")]
    Missing,
    /// Somebody else is in the runner's group.
    #[error(
        "other processes are in the runner's control group {0}: start it in one of its own, as systemd-run does with -p Delegate=yes"
    )]
    NotAlone(PathBuf),
    /// The kernel refused.
    #[error("the runner may not make control groups: {0}")]
    Refused(#[from] io::Error),
}

impl PodCgroups {
    /// Those that this process may make; `runner` is a name that no other runner has.
    pub fn of_this_process(runner: &str) -> Result<Self, NoCgroups> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = own_group(&groups, &mounts).ok_or(NoCgroups::Missing)?;
        Self::below(&own, std::process::id(), runner)
    }

    /// Those below a group, in which the process is.
    fn below(own: &Path, process: u32, runner: &str) -> Result<Self, NoCgroups> {
        // It was moved when an earlier runner of this process began.
        let own = if own.ends_with(RUNNER) { own.parent().unwrap_or(own) } else { own };
        let there = fs::read_to_string(own.join("cgroup.controllers"))?;
        let has = |name: &&str| there.split_ascii_whitespace().any(|one| one == *name);
        if !NEEDED.iter().all(has) {
            return Err(NoCgroups::Missing);
        }
        let members = fs::read_to_string(own.join("cgroup.procs"))?;
        if members.lines().any(|member| member != process.to_string()) {
            return Err(NoCgroups::NotAlone(own.to_owned()));
        }
        make(&own.join(RUNNER))?;
        fs::write(own.join(RUNNER).join("cgroup.procs"), process.to_string())?;
        let wanted: Vec<&str> = WANTED.into_iter().filter(has).collect();
        let folder = own.join(PODS).join(runner);
        for group in [own.to_owned(), own.join(PODS), folder.clone()] {
            make(&group)?;
            share_out(&group, &wanted)?;
        }
        Ok(Self { folder, has_cpu: wanted.contains(&"cpu") })
    }

    /// The group of a container.
    pub fn container(&self, pod: &str, container: &str) -> PathBuf {
        self.folder.join(pod).join(container)
    }

    /// A new group for the next run of a container.
    pub fn begin(&self, pod: &str, container: &str, limits: CgroupLimits) -> io::Result<()> {
        let (whole, group) = (self.folder.join(pod), self.container(pod, container));
        remove(&group)?;
        make(&whole)?;
        fs::write(whole.join("pids.max"), limits.processes.to_string())?;
        share_out(&whole, &WANTED.into_iter().filter(|name| self.has_cpu || *name != "cpu").collect::<Vec<_>>())?;
        make(&group)?;
        if let Some(memory) = limits.memory {
            fs::write(group.join("memory.max"), memory.to_string())?;
            // All of it ends at once, as in a cluster; and swapping is no way out, where there is swapping.
            fs::write(group.join("memory.oom.group"), "1")?;
            let _ = fs::write(group.join("memory.swap.max"), "0");
        }
        if let Some(cpu) = limits.cpu.filter(|_| self.has_cpu) {
            let quota = (cpu * PERIOD / 1000).max(1000);
            fs::write(group.join("cpu.max"), format!("{quota} {PERIOD}"))?;
        }
        Ok(())
    }

    /// Whether the kernel ended the container's run because it had more memory than it may.
    pub fn was_out_of_memory(&self, pod: &str, container: &str) -> bool {
        let events = fs::read_to_string(self.container(pod, container).join("memory.events")).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok());
        count.is_some_and(|count| count > 0)
    }

    /// Kills everything that is in the container's group, and takes the group away.
    pub fn end(&self, pod: &str, container: &str) -> io::Result<()> {
        remove(&self.container(pod, container))
    }

    /// Takes the group of a pod away, with what is left below it.
    pub fn end_pod(&self, pod: &str) -> io::Result<()> {
        remove_all(&self.folder.join(pod))
    }

    /// Takes away what an earlier runner of the same name left.
    pub fn clear(&self) -> io::Result<()> {
        children(&self.folder).iter().try_for_each(|pod| remove_all(pod))
    }
}

/// Where the process is, by `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn own_group(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<&str> = before.split(' ').collect();
        after.starts_with("cgroup2 ").then(|| Some((*fields.get(3)?, *fields.get(4)?)))?
    });
    let (root, point) = mount?;
    let below = if root == "/" { path } else { path.strip_prefix(root)? };
    Some(Path::new(point).join(below.trim_start_matches('/')))
}

fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Lets the groups below hold these.
fn share_out(group: &Path, controllers: &[&str]) -> io::Result<()> {
    let words: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    fs::write(group.join("cgroup.subtree_control"), words.join(" "))
}

fn children(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn remove_all(group: &Path) -> io::Result<()> {
    children(group).iter().try_for_each(|below| remove(below))?;
    remove(group)
}

/// Kills what is in a group, and takes it away once it is empty.
fn remove(group: &Path) -> io::Result<()> {
    if !group.is_dir() {
        return Ok(());
    }
    // From Linux 5.14 on; before, members have ended with their run.
    let _ = fs::write(group.join("cgroup.kill"), "1");
    let began = Instant::now();
    loop {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if began.elapsed() > EMPTY_WITHIN => return Err(error),
            Err(_) if members(group) > 0 => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
}

fn members(group: &Path) -> usize {
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    members.lines().filter_map(|line| line.parse().ok()).filter(|process| process_entry(*process).is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a group in which the process is alone.
    fn own(controllers: &str, members: &str) -> tempfile::TempDir {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(own.path().join("cgroup.procs"), members).unwrap();
        own
    }

    fn read(group: &Path, file: &str) -> String {
        fs::read_to_string(group.join(file)).unwrap_or_default()
    }

    #[test]
    fn the_runner_moves_aside_and_shares_out_what_it_has() {
        let own = own("cpuset cpu io memory pids\n", "47\n");

        let groups = PodCgroups::below(own.path(), 47, "r").unwrap();

        assert_eq!(read(&own.path().join("portolan-runner"), "cgroup.procs"), "47");
        for group in ["", "portolan-pods", "portolan-pods/r"] {
            assert_eq!(read(&own.path().join(group), "cgroup.subtree_control"), "+memory +pids +cpu", "{group}");
        }
        let moved = own.path().join("portolan-runner");
        fs::write(own.path().join("cgroup.procs"), "").unwrap();
        assert_eq!(PodCgroups::below(&moved, 47, "r").unwrap().folder, groups.folder);
    }

    #[test]
    fn a_group_with_others_or_without_what_is_needed_is_left_alone() {
        let shared = own("cpu memory pids", "47\n48\n");
        let poor = own("cpu", "47\n");

        assert!(matches!(PodCgroups::below(shared.path(), 47, "r"), Err(NoCgroups::NotAlone(_))));
        assert!(matches!(PodCgroups::below(poor.path(), 47, "r"), Err(NoCgroups::Missing)));
        assert!(!shared.path().join("portolan-runner").exists() && !poor.path().join("portolan-runner").exists());
    }

    #[test]
    fn a_container_is_held_to_what_it_may_have() {
        let own = own("memory pids cpu", "47\n");
        let groups = PodCgroups::below(own.path(), 47, "r").unwrap();

        let limits = CgroupLimits { memory: Some(1 << 20), cpu: Some(250), processes: 99 };
        groups.begin("p", "a", limits).unwrap();
        groups.begin("p", "b", CgroupLimits { processes: 99, ..CgroupLimits::default() }).unwrap();

        let (a, b) = (groups.container("p", "a"), groups.container("p", "b"));
        let of = |group: &Path| ["memory.max", "memory.oom.group", "cpu.max"].map(|file| read(group, file));
        assert_eq!(of(&a), ["1048576", "1", "25000 100000"]);
        assert_eq!(of(&b), ["", "", ""]);
        assert_eq!(read(a.parent().unwrap(), "pids.max"), "99");
    }

    #[test]
    fn the_kernel_says_whom_it_ended_for_want_of_memory() {
        let own = own("memory pids", "47\n");
        let groups = PodCgroups::below(own.path(), 47, "r").unwrap();
        groups.begin("p", "a", CgroupLimits::default()).unwrap();
        let events = groups.container("p", "a").join("memory.events");

        fs::write(&events, "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n").unwrap();
        assert!(!groups.was_out_of_memory("p", "a"));
        fs::write(&events, "max 7\noom 1\noom_kill 2\noom_group_kill 1\n").unwrap();
        assert!(groups.was_out_of_memory("p", "a"));
        assert!(!groups.was_out_of_memory("p", "none"));
    }

    #[test]
    fn everything_in_a_group_is_killed_before_it_goes() {
        let own = own("memory pids", "47\n");
        let groups = PodCgroups::below(own.path(), 47, "r").unwrap();
        fs::create_dir_all(groups.container("p", "a")).unwrap();

        assert!(groups.end("none", "a").is_ok());
        // The word that kills all of a group is a file like any other here, and a folder with a file stays.
        let told = groups.end("p", "a").unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(read(&groups.container("p", "a"), "cgroup.kill"), "1");
    }

    #[test]
    fn a_process_finds_its_group_where_it_is_mounted() {
        let mounts =
            "25 1 0:5 / /proc rw - proc proc rw\n30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let inner = "30 1 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n";

        let found = |groups, mounts| own_group(groups, mounts);
        assert_eq!(found("0::/user.slice/a.scope\n", mounts), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        assert_eq!(found("4:memory:/\n0::/docker/x/y\n", inner), Some("/sys/fs/cgroup/y".into()));
        assert_eq!(found("4:memory:/\n", mounts), None);
        assert_eq!(found("0::/a\n", "25 1 0:5 / /proc rw - proc proc rw\n"), None);
    }
}
