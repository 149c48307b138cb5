//! What a pod's containers may have, and what they have → which container is killed and why a pod is evicted
//! (`eviction/eviction_manager.go`, `eviction/helpers.go`).
//!
//! A kubelet has the kernel hold memory and processes; where no control groups are to be had, the runner measures. So a limit here may
//! be passed for a moment, and what passes it ends.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use portolan_builtin::quantity::Quantity;

use super::containers::containers;
use super::record::EndingCause;

/// What all pods of a runner may have, whatever they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodBounds {
    /// Processes and threads of one pod.
    pub processes: u64,
    /// Bytes that stay free on the disk that pods write to.
    pub free_disk: u64,
}

impl Default for PodBounds {
    fn default() -> Self {
        Self { processes: 1024, free_disk: 512 * 1024 * 1024 }
    }
}

impl PodBounds {
    /// What the kernel holds a pod to, where it counts them. The runner ends a pod before that, and says why; it looks now and
    /// then only, and a pod multiplies faster.
    pub fn processes_held(self) -> u64 {
        self.processes + self.processes / 4
    }
}

/// What a container may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerLimits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a core.
    pub cpu: Option<u64>,
}

impl ContainerLimits {
    /// What the container says.
    pub fn of(container: &Container) -> Self {
        Self { memory: limit(container, "memory", "1"), cpu: limit(container, "cpu", "1m") }
    }

    /// Writable memory that one process may ask for: far beyond what it may use, since most of what is asked for is never used
    /// (stacks of threads, arenas of allocators). It bounds what is used between two looks.
    pub fn memory_asked(&self) -> Option<u64> {
        self.memory.map(|memory| memory.saturating_mul(4).saturating_add(1024 * 1024 * 1024))
    }
}

/// A limit in parts of a unit; none where it is not set or zero.
fn limit(container: &Container, resource: &str, part: &str) -> Option<u64> {
    amount(&limit_text(container, resource)?, part).filter(|amount| *amount > 0)
}

fn limit_text(container: &Container, resource: &str) -> Option<String> {
    Some(container.resources.as_ref()?.limits.as_ref()?.get(resource)?.0.clone())
}

fn amount(text: &str, part: &str) -> Option<u64> {
    u64::try_from(Quantity::parse(text)?.parts_of(&Quantity::parse(part)?)?).ok()
}

/// How much of the disk a pod may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageLimits {
    /// Empty folders, by name.
    pub volumes: BTreeMap<String, SizeLimit>,
    /// Containers with their output, by name.
    pub containers: BTreeMap<String, SizeLimit>,
    /// All of the pod.
    pub pod: Option<SizeLimit>,
}

/// A limit of bytes, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeLimit {
    /// The bytes.
    pub bytes: u64,
    /// As `64Mi`.
    pub text: String,
}

impl SizeLimit {
    fn read(text: &str) -> Option<Self> {
        let bytes = amount(text, "1").filter(|bytes| *bytes > 0)?;
        Some(Self { bytes, text: Quantity::parse(text)?.canonical() })
    }
}

impl StorageLimits {
    /// What the pod says.
    pub fn of(pod: &Pod) -> Self {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let sized = volumes.filter_map(|volume| {
            let size = volume.empty_dir.as_ref()?.size_limit.as_ref()?;
            Some((volume.name.clone(), SizeLimit::read(&size.0)?))
        });
        let main = pod.spec.iter().flat_map(|spec| &spec.containers);
        let held = main.filter_map(|container| {
            Some((container.name.clone(), SizeLimit::read(&limit_text(container, "ephemeral-storage")?)?))
        });
        Self { volumes: sized.collect(), containers: held.collect(), pod: whole(pod) }
    }

    /// Whether it says nothing, so that nothing needs to be measured.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.pod.is_none()
    }

    /// The most that one file of a container may have: a little more than all that it may have, so that it is seen to have too much.
    pub fn largest_file(&self) -> Option<u64> {
        self.pod.as_ref().map(|limit| limit.bytes.saturating_add((limit.bytes / 8).max(1024 * 1024)))
    }
}

/// The sum of what the containers say (`component-helpers/resource`, `PodLimits`): that of the main ones and sidecars, or that of one init
/// container where it is more.
fn whole(pod: &Pod) -> Option<SizeLimit> {
    use super::containers::ContainerRole;
    let (mut lasting, mut most) = (0_u64, 0_u64);
    for container in containers(pod) {
        let bytes = limit(container.spec, "ephemeral-storage", "1").unwrap_or(0);
        match container.role {
            ContainerRole::Init => most = most.max(bytes),
            ContainerRole::Sidecar | ContainerRole::Main => lasting = lasting.saturating_add(bytes),
        }
    }
    SizeLimit::read(&lasting.max(most).to_string()).map(|limit| SizeLimit { text: in_binary(limit.bytes), ..limit })
}

/// How much of the disk a pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageUse {
    /// Empty folders, by name.
    pub volumes: BTreeMap<String, u64>,
    /// Containers with their output, by name.
    pub containers: BTreeMap<String, u64>,
    /// What its user has where everybody may write.
    pub elsewhere: u64,
}

impl StorageUse {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.volumes.values().chain(self.containers.values()).sum::<u64>() + self.elsewhere
    }
}

/// The reason in the status of a pod that the runner ends.
pub const EVICTED: &str = "Evicted";

fn evicted(message: String) -> EndingCause {
    EndingCause::Evicted { reason: EVICTED.to_owned(), message }
}

/// Why a pod is evicted that uses so much of the disk, where it is.
pub fn storage_verdict(limits: &StorageLimits, used: &StorageUse) -> Option<EndingCause> {
    let beyond = |used: Option<&u64>, limit: &SizeLimit| used.is_some_and(|used| *used > limit.bytes);
    if let Some((name, limit)) = limits.volumes.iter().find(|(name, limit)| beyond(used.volumes.get(*name), limit)) {
        return Some(evicted(format!("Usage of EmptyDir volume {name:?} exceeds the limit {:?}. ", limit.text)));
    }
    if let Some(limit) = limits.pod.as_ref().filter(|limit| used.total() > limit.bytes) {
        let text = &limit.text;
        return Some(evicted(format!(
            "Pod ephemeral local storage usage exceeds the total limit of containers {text}. "
        )));
    }
    let (name, limit) = limits.containers.iter().find(|(name, limit)| beyond(used.containers.get(*name), limit))?;
    Some(evicted(format!("Container {name} exceeded its local ephemeral storage limit {:?}. ", limit.text)))
}

/// Why a pod is evicted that has so many processes, where it is.
pub fn process_verdict(bounds: PodBounds, processes: u64) -> Option<EndingCause> {
    let most = bounds.processes;
    (processes > most).then(|| {
        evicted(format!("The pod has {processes} processes and threads, which exceeds the limit of {most} for a pod. "))
    })
}

/// What a pod must use at least to be evicted for a disk that is full: others than pods fill disks, too.
const WORTH_EVICTING: u64 = 64 * 1024 * 1024;

/// The pod to evict because the disk is nearly full, where one is: the one that uses most.
pub fn disk_verdict(
    bounds: PodBounds,
    free: u64,
    used: &BTreeMap<String, StorageUse>,
) -> Option<(String, EndingCause)> {
    if free >= bounds.free_disk {
        return None;
    }
    let (pod, most) = used.iter().map(|(pod, used)| (pod, used.total())).max_by_key(|(_, total)| *total)?;
    let message = format!(
        "The node was low on resource: ephemeral-storage. Threshold quantity: {}, available: {}. The pod was using {}, more than any other. ",
        in_binary(bounds.free_disk),
        in_binary(free),
        in_binary(most)
    );
    (most >= WORTH_EVICTING).then(|| (pod.clone(), evicted(message)))
}

/// `64Mi`, `1Gi`, `1000`: bytes in the largest binary unit that leaves no rest.
fn in_binary(bytes: u64) -> String {
    let units = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"];
    let whole = (0_u32..).zip(units).find(|(at, _)| bytes > 0 && bytes.is_multiple_of(1 << (60 - 10 * at)));
    whole.map_or_else(|| bytes.to_string(), |(at, unit)| format!("{}{unit}", bytes >> (60 - 10 * at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::{Value, json};

    const MIB: u64 = 1024 * 1024;

    fn held_to(storage: &str) -> Value {
        json!({"limits": {"ephemeral-storage": storage}})
    }

    fn used(volumes: &[(&str, u64)], containers: &[(&str, u64)]) -> StorageUse {
        let all = |parts: &[(&str, u64)]| parts.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        StorageUse { volumes: all(volumes), containers: all(containers), elsewhere: 0 }
    }

    fn message(cause: Option<EndingCause>) -> Option<String> {
        match cause? {
            EndingCause::Evicted { reason, message } => Some(format!("{reason}: {message}")),
            EndingCause::Deleted | EndingCause::DeadlineExceeded | EndingCause::Completed => None,
        }
    }

    #[test]
    fn limits_are_read_in_bytes_and_in_thousandths_of_a_core() {
        let resources = json!({"limits": {"memory": "64Mi", "cpu": "1.5"}, "requests": {"memory": "1Gi"}});
        let pod = pod(json!({"containers": [{"name": "a", "resources": resources}, {"name": "b"}]}));
        let all: Vec<ContainerLimits> = containers(&pod).iter().map(|one| ContainerLimits::of(one.spec)).collect();

        let expected = ContainerLimits { memory: Some(64 * MIB), cpu: Some(1500) };
        assert_eq!(all, [expected, ContainerLimits::default()]);
        assert!(all[0].memory_asked() > Some(4 * 64 * MIB));
    }

    #[test]
    fn an_empty_folder_that_is_larger_than_it_may_be_evicts_its_pod() {
        let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "w", "emptyDir": {}}]);
        let limits = StorageLimits::of(&pod(json!({"containers": [{"name": "a"}], "volumes": volumes})));

        assert_eq!(message(storage_verdict(&limits, &used(&[("v", MIB), ("w", 9 * MIB)], &[]))), None);
        let expected = "Evicted: Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ";
        assert_eq!(message(storage_verdict(&limits, &used(&[("v", MIB + 1)], &[]))).as_deref(), Some(expected));
    }

    #[test]
    fn a_pod_is_held_to_the_sum_of_its_containers_and_each_container_to_its_own() {
        let containers =
            json!([{"name": "a", "resources": held_to("1Mi")}, {"name": "b", "resources": held_to("2Mi")}]);
        let limits = StorageLimits::of(&pod(json!({"containers": containers})));
        let told = |volumes: &[(&str, u64)], containers: &[(&str, u64)]| {
            message(storage_verdict(&limits, &used(volumes, containers))).unwrap_or_default()
        };

        assert_eq!(told(&[("v", 2 * MIB)], &[("a", MIB)]), "");
        assert_eq!(
            told(&[("v", 2 * MIB)], &[("a", MIB), ("b", 1)]),
            "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. "
        );
        assert_eq!(
            told(&[], &[("a", MIB + 1)]),
            "Evicted: Container a exceeded its local ephemeral storage limit \"1Mi\". "
        );
        assert!(limits.largest_file() > Some(3 * MIB));
    }

    #[test]
    fn a_pod_without_limits_needs_no_measuring() {
        let limits = StorageLimits::of(&pod(json!({"containers": [{"name": "a", "resources": held_to("0")}]})));

        assert!(limits.is_empty());
        assert_eq!(storage_verdict(&limits, &used(&[("v", 1 << 40)], &[("a", 1 << 40)])), None);
        assert_eq!(limits.largest_file(), None);
    }

    #[test]
    fn a_pod_that_multiplies_is_evicted_before_the_kernel_holds_it() {
        let bounds = PodBounds { processes: 100, ..PodBounds::default() };

        assert_eq!(process_verdict(bounds, 100), None);
        let told = message(process_verdict(bounds, 101)).unwrap_or_default();
        assert!(told.contains("101 processes") && told.contains("limit of 100"), "{told}");
        assert!(bounds.processes_held() > 101);
    }

    #[test]
    fn a_disk_that_is_nearly_full_costs_the_pod_that_uses_most_and_nobody_who_uses_little() {
        let bounds = PodBounds { free_disk: 100 * MIB, ..PodBounds::default() };
        let of = |bytes: &[u64]| -> BTreeMap<String, StorageUse> {
            let pods = bytes.iter().zip(["p", "q"]);
            pods.map(|(bytes, pod)| (pod.to_owned(), used(&[("v", *bytes)], &[]))).collect()
        };

        assert_eq!(disk_verdict(bounds, 100 * MIB, &of(&[300 * MIB, 200 * MIB])), None);
        assert_eq!(disk_verdict(bounds, 0, &of(&[MIB, MIB])), None);
        let (pod, cause) = disk_verdict(bounds, MIB, &of(&[200 * MIB, 300 * MIB])).unwrap();
        assert_eq!(pod, "q");
        let told = message(Some(cause)).unwrap_or_default();
        assert!(told.contains("Threshold quantity: 100Mi, available: 1Mi. The pod was using 300Mi"), "{told}");
    }

    #[test]
    fn bytes_are_written_in_the_largest_unit_without_a_rest() {
        let texts = [0, 1000, 1024, 1536 * 1024, 3 << 30].map(in_binary);

        assert_eq!(texts, ["0", "1000", "1Ki", "1536Ki", "3Gi"]);
    }
}
