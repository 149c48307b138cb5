//! Processes and folders of pods → how many processes, how much memory and how much of the disk they have.
//!
//! What is cheap is asked often and what is dear only when the cheap says that it may have changed: a table of all processes is made anew
//! when their number on the machine has changed, and memory that several processes share is told apart only for who seems to have too much.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::leftovers::{ProcessEntry, processes};
use super::run_notes::{POD_VARIABLE, RUN_VARIABLE};
use crate::pod::limits::StorageUse;

/// How often a process may look like nobody's before that is believed: between its birth and its program it has the variables of
/// whoever made it.
const BELIEVED_AFTER: u8 = 3;

/// Whom a process belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ProcessOwner {
    pod: String,
    /// The run; none where only its user tells whose it is.
    run: Option<String>,
}

/// Whose processes are looked for.
#[derive(Clone, Debug, Default)]
pub struct WantedProcesses {
    /// Pod and run by the first process of each run.
    pub leaders: HashMap<i32, (String, String)>,
    /// Pods by the uid that each has of its own.
    pub users: HashMap<u32, String>,
}

/// What is known of the machine's processes.
#[derive(Debug, Default)]
pub struct ProcessTable {
    known: HashMap<i32, KnownProcess>,
}

#[derive(Debug)]
struct KnownProcess {
    born: u64,
    owner: Option<ProcessOwner>,
    looks: u8,
}

/// The processes of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodProcesses {
    /// Processes and threads, by pod.
    pub counts: HashMap<String, u64>,
    /// The processes of each run.
    pub runs: HashMap<String, Vec<i32>>,
}

impl ProcessTable {
    /// Looks at all processes. One that has cleared its variables is known by its group, or by its user.
    pub fn look(&mut self, wanted: &WantedProcesses) -> io::Result<PodProcesses> {
        let all = processes()?;
        let there: HashSet<i32> = all.iter().map(|entry| entry.process).collect();
        self.known.retain(|process, _| there.contains(process));
        let mut found = PodProcesses::default();
        for entry in all {
            let Some(owner) = self.owner(&entry, wanted) else { continue };
            *found.counts.entry(owner.pod.clone()).or_default() += entry.threads.max(1);
            if let Some(run) = owner.run.filter(|_| !entry.is_dead) {
                found.runs.entry(run).or_default().push(entry.process);
            }
        }
        Ok(found)
    }

    fn owner(&mut self, entry: &ProcessEntry, wanted: &WantedProcesses) -> Option<ProcessOwner> {
        let known = self.known.entry(entry.process).or_insert(KnownProcess { born: entry.born, owner: None, looks: 0 });
        if known.born != entry.born {
            *known = KnownProcess { born: entry.born, owner: None, looks: 0 };
        }
        if known.owner.is_none() && known.looks < BELIEVED_AFTER {
            known.looks += 1;
            known.owner = told_owner(entry.process).or_else(|| seen_owner(entry, wanted));
        }
        known.owner.clone()
    }
}

/// What its variables say.
fn told_owner(process: i32) -> Option<ProcessOwner> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let value = |name: &str| {
        let prefix = format!("{name}=");
        let found = environment.split(|byte| *byte == 0).find_map(|one| one.strip_prefix(prefix.as_bytes()));
        found.map(|value| String::from_utf8_lossy(value).into_owned())
    };
    Some(ProcessOwner { pod: value(POD_VARIABLE)?, run: value(RUN_VARIABLE) })
}

/// What its group and its user say.
fn seen_owner(entry: &ProcessEntry, wanted: &WantedProcesses) -> Option<ProcessOwner> {
    if let Some((pod, run)) = wanted.leaders.get(&entry.group) {
        return Some(ProcessOwner { pod: pod.clone(), run: Some(run.clone()) });
    }
    let pod = wanted.users.get(&user_of(entry.process)?)?;
    Some(ProcessOwner { pod: pod.clone(), run: None })
}

/// The user that a process is.
pub(crate) fn user_of(process: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// How many processes and threads the machine has; the same again means that hardly one came or went.
pub fn machine_threads() -> u64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let threads = load.split_ascii_whitespace().nth(3).and_then(|field| field.split('/').nth(1)?.parse().ok());
    threads.unwrap_or(0)
}

/// Bytes of memory that are a process's own, as one line says it: pages that it shares with others after `fork` are counted for each of
/// them.
pub fn own_memory(process: i32, page: u64) -> u64 {
    let line = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let mut fields = line.split_ascii_whitespace().skip(1).filter_map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * page
}

/// Bytes of memory of a process, what it shares counted in parts. Dearer; none where it may not be asked.
pub fn proportional_memory(process: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    kibibytes(line)
}

/// The size of a page: nothing that has a function for it is needed for this alone.
pub fn page_size() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("KernelPageSize:"));
    line.and_then(kibibytes).filter(|size| *size > 0).unwrap_or(4096)
}

fn kibibytes(line: &str) -> Option<u64> {
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Bytes that are free on the disk of a folder, for who is not root.
pub fn free_disk(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Where everybody may write, pods too.
const OPEN_FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The least that a file costs: its place in the table of files.
const LEAST_COST: u64 = 512;
/// Files that are looked at in one folder: beyond that, what was seen stands for all.
const MOST_FILES: usize = 500_000;

/// How much of the disk a folder uses, with all that is below. Links are not followed, and a file with two names counts once.
pub fn folder_size(folder: &Path) -> u64 {
    let (mut sum, mut seen, mut files) = (0_u64, HashSet::new(), 0_usize);
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        // What is gone by now uses nothing.
        let Ok(entry) = fs::symlink_metadata(&path) else { continue };
        files += 1;
        if files > MOST_FILES {
            break;
        }
        if entry.nlink() < 2 || entry.is_dir() || seen.insert((entry.dev(), entry.ino())) {
            sum = sum.saturating_add((entry.blocks() * 512).max(LEAST_COST));
        }
        if entry.is_dir() {
            open.extend(children(&path));
        }
    }
    sum
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// What of a pod's folder counts as its own: empty folders, and what containers wrote into their folders and as output.
pub fn storage_use(pod: &Path, volumes: &[String], containers: &[String]) -> StorageUse {
    let sizes = |names: &[String], of: &dyn Fn(&str) -> u64| -> BTreeMap<String, u64> {
        names.iter().map(|name| (name.clone(), of(name))).collect()
    };
    StorageUse {
        volumes: sizes(volumes, &|name| folder_size(&pod.join("volumes").join(name))),
        containers: sizes(containers, &|name| {
            folder_size(&pod.join("work").join(name)) + folder_size(&pod.join("containers").join(name))
        }),
        elsewhere: 0,
    }
}

/// What users have in the folders where everybody may write, by user.
pub fn open_folders_use(users: &HashSet<u32>) -> HashMap<u32, u64> {
    let mut found = HashMap::new();
    for (user, path) in in_open_folders(users) {
        *found.entry(user).or_default() += folder_size(&path);
    }
    found
}

/// Takes away what a user left in the folders where everybody may write: the next pod may have its uid.
pub fn clear_open_folders(user: u32) {
    for (_, path) in in_open_folders(&HashSet::from([user])) {
        // Neither of them follows a link.
        let _ = if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

fn in_open_folders(users: &HashSet<u32>) -> Vec<(u32, PathBuf)> {
    let all = OPEN_FOLDERS.iter().flat_map(|folder| children(Path::new(folder)));
    let owned = all.filter_map(|path| Some((fs::symlink_metadata(&path).ok()?.uid(), path)));
    owned.filter(|(user, _)| users.contains(user)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_as_large_as_what_is_in_it_and_no_link_leads_out() {
        let home = tempfile::tempdir().unwrap();
        let empty = folder_size(home.path());
        fs::create_dir(home.path().join("d")).unwrap();
        fs::write(home.path().join("d/f"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(home.path().join("d/f"), home.path().join("again")).unwrap();
        std::os::unix::fs::symlink("/usr", home.path().join("out")).unwrap();

        let size = folder_size(home.path()) - empty;

        assert!((1 << 20..(1 << 20) + 64 * 1024).contains(&size), "{size}");
        assert_eq!(folder_size(&home.path().join("none")), 0);
    }

    #[test]
    fn a_file_with_holes_counts_what_it_uses() {
        let home = tempfile::tempdir().unwrap();
        fs::File::create(home.path().join("f")).unwrap().set_len(1 << 30).unwrap();

        assert!(folder_size(&home.path().join("f")) < 1 << 20);
    }

    #[test]
    fn this_process_has_memory_of_its_own_and_its_user() {
        let own = i32::try_from(std::process::id()).unwrap();
        let filled = vec![1_u8; 8 << 20];

        assert!(own_memory(own, page_size()) > 8 << 20, "{}", filled.len());
        assert!(proportional_memory(own).unwrap() > 8 << 20);
        assert_eq!(user_of(own), Some(rustix::process::getuid().as_raw()));
        assert!(machine_threads() > 0);
        assert_eq!((own_memory(i32::MAX, 4096), proportional_memory(i32::MAX)), (0, None));
    }

    #[test]
    fn a_process_without_variables_is_known_by_its_group_and_then_by_its_user() {
        let own = ProcessEntry { process: i32::MAX, group: 7, born: 1, threads: 1, is_dead: false };
        let wanted = WantedProcesses {
            leaders: [(7, ("p".to_owned(), "r".to_owned()))].into(),
            users: [(rustix::process::getuid().as_raw(), "q".to_owned())].into(),
        };
        let itself = ProcessEntry { process: i32::try_from(std::process::id()).unwrap(), group: 8, ..own.clone() };

        let owner = |entry: &ProcessEntry| seen_owner(entry, &wanted).map(|owner| (owner.pod, owner.run));
        assert_eq!(owner(&own), Some(("p".to_owned(), Some("r".to_owned()))));
        assert_eq!(owner(&itself), Some(("q".to_owned(), None)));
    }
}
