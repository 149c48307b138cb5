//! This machine → the Node that its pods name.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::machine::cgroups::PodCgroups;
use crate::pod::downward::NodeCapacity;
use crate::pod::identity::RunnerUser;

/// Who writes as the runner.
pub(super) const MANAGER: &str = "portolan-runner";

/// How many pods the node says it takes.
const MOST_PODS: &str = "1000";

/// What this machine has.
pub(super) fn capacity() -> NodeCapacity {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    NodeCapacity { cpu: cores.to_string(), memory: format!("{}Ki", total.map_or("0", str::trim)) }
}

/// Whose rights the runner has.
pub(super) fn own_user() -> RunnerUser {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return RunnerUser::Root;
    }
    RunnerUser::Plain { user: user.as_raw(), group: rustix::process::getegid().as_raw() }
}

/// The uid of this process.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the Node, or brings it up to date. Nothing beats as its heart: whoever reads it lives in the same process as the
/// runner, and a settled world is to cost no writes.
pub(super) async fn register(
    client: &kube::Client,
    name: &str,
    capacity: &NodeCapacity,
    user: RunnerUser,
    cgroups: Option<&PodCgroups>,
) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": arch(),
        "portolan.dev/runner": "processes",
    });
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    let params = PatchParams::apply(MANAGER).force();
    nodes.patch(name, &params, &Patch::Apply(&node)).await?;
    let resources = json!({"cpu": capacity.cpu, "memory": capacity.memory, "pods": MOST_PODS});
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "RunnerReady", "message": "the runner takes pods",
    });
    let status = json!({
        "apiVersion": "v1", "kind": "Node",
        "status": {
            "capacity": resources, "allocatable": resources, "conditions": [ready, users(user), limits(cgroups)],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        },
    });
    nodes.patch_status(name, &params, &Patch::Apply(&status)).await?;
    Ok(())
}

/// Whether each pod has a user of its own.
fn users(user: RunnerUser) -> Value {
    match user.notice() {
        None => json!({
            "type": "PodUsers", "status": "True", "reason": "UserOfEachPod",
            "message": "each pod that names no user has one of its own",
        }),
        Some(notice) => json!({"type": "PodUsers", "status": "False", "reason": "RunnerNotRoot", "message": notice}),
    }
}

/// Whether the kernel holds what pods may have.
fn limits(cgroups: Option<&PodCgroups>) -> Value {
    match cgroups {
        Some(_) => json!({
            "type": "PodLimits", "status": "True", "reason": "ControlGroups",
            "message": "limits of memory and processors are held by control groups",
        }),
        None => json!({
            "type": "PodLimits", "status": "False", "reason": "Measured",
            "message": "the runner may not make control groups: memory and the disk are measured every second, and limits of processors are not held",
        }),
    }
}

/// As images and labels name it.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
