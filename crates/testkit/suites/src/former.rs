//! The world that the release before the present one left: `tests/migration/former/` → a world of a job as that release's operator
//! left it when it was killed, and whether it would find its way again in what has become of it.
//!
//! `scripts/lay-down-former` makes the data with that release's binary. Uids are given by the server, so that those of the data are
//! replaced wherever they are named; what stands at Cloudflare is taken up as it stood, ids and all.

use std::collections::BTreeSet;

use jiff::Timestamp;
use portolan_core::OwnerId;
use serde_json::{Map, Value, json};

use crate::job::WorldJob;
use crate::manifests::id;
use crate::process::Processes;
use crate::world::{Builder, World};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/migration/former");

/// Kinds that every cluster has, of which the former release left objects.
const OF_EVERY_CLUSTER: [&str; 4] = ["Namespace", "Secret", "ConfigMap", "Lease"];
/// What names others by their uid is made after them.
const LAST: [&str; 4] = ["CloudflareTask", "ConfigMap", "Secret", "Lease"];

/// A world as the former release left it, and what was laid down in it.
pub struct FormerWorld {
    /// The world; its operator sleeps.
    pub world: World,
    /// The objects as they were laid down, uids replaced.
    pub objects: Vec<Value>,
}

impl FormerWorld {
    /// Lays the world down for a job, with all that the former release left of the others beside it.
    pub async fn of(job: &'static WorldJob, processes: impl Into<Processes>) -> Self {
        let (left, cloudflare) = (objects(), cloudflare());
        let owner = OwnerId::parse(cloudflare["owner"].as_str().unwrap_or_default())
            .expect("the data says whose marks there are");
        let builder = Builder::of(job).roles(processes).owner(owner).begins(last_moment(&left)).asleep();
        let world = builder.start().await;
        for object in (job.objects)(&world.cloudflare.simulator) {
            world.cluster.delete(&id(&object)).await;
        }
        for definition in definitions() {
            world.cluster.replace_definition(&definition).await;
        }
        let objects = lay_down(&world, left).await;
        for definition in job.definitions() {
            world.cluster.replace_definition(definition).await;
        }
        world.cloudflare.simulator.restore(snapshot(&cloudflare["state"])).expect("what stood is valid");
        world.cloudflare.keep_seeded();
        world.forget();
        Self { world, objects }
    }

    /// What the former release could not read of what stands now, or would not find any more: fields that its definitions do not
    /// know, and fields of its own documents that are gone.
    pub async fn lost_to_the_former(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for object in &self.objects {
            if let Some(now) = self.world.cluster.get(&id(object)).await {
                lost.extend(
                    gone(&documented(object), &documented(&now))
                        .iter()
                        .map(|path| format!("{}{path} is gone", id(object))),
                );
            }
        }
        // Whatever a definition does not know is not even shown any more once it has taken the place of another.
        let mut present = Vec::new();
        for kind in self.world.job().kinds() {
            present.extend(self.world.cluster.list(kind).await);
        }
        for definition in definitions() {
            self.world.cluster.replace_definition(&definition).await;
        }
        for object in present {
            let kept = documented(&self.world.cluster.rewritten(&object).await);
            lost.extend(
                gone(&documented(&object), &kept).iter().map(|path| format!("{}{path} is unknown", id(&object))),
            );
        }
        lost
    }
}

/// Everything that the former release left in the cluster.
pub fn objects() -> Vec<Value> {
    serde_json::from_str(&laid_down("objects.json")).expect("the data is JSON")
}

fn cloudflare() -> Value {
    serde_json::from_str(&laid_down("cloudflare.json")).expect("the data is JSON")
}

fn definitions() -> Vec<Value> {
    let text = laid_down("definitions.yaml");
    let documents = text.split("\n---\n").filter(|document| !document.trim().is_empty());
    documents.map(|document| serde_saphyr::from_str(document).expect("the file is YAML")).collect()
}

/// One of the files that were made by the former release; read when a test asks, since no image of the operator has them.
fn laid_down(file: &str) -> String {
    std::fs::read_to_string(format!("{FOLDER}/{file}")).expect("what was laid down stands in tests/migration/former")
}

/// When the former release was killed: the last time that any object names.
fn last_moment(objects: &[Value]) -> Timestamp {
    let mut all = Vec::new();
    for object in objects {
        times(object, &mut all);
    }
    all.into_iter().max().expect("objects say when they were made")
}

fn times(value: &Value, found: &mut Vec<Timestamp>) {
    match value {
        Value::String(text) => found.extend(text.parse::<Timestamp>().ok()),
        Value::Array(items) => items.iter().for_each(|item| times(item, found)),
        Value::Object(members) => members.values().for_each(|member| times(member, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Makes all objects of kinds that the job's world serves.
async fn lay_down(world: &World, mut left: Vec<Value>) -> Vec<Value> {
    let kinds: BTreeSet<&str> = world.job().kinds().into_iter().chain(OF_EVERY_CLUSTER).collect();
    left.retain(|object| kinds.contains(object["kind"].as_str().unwrap_or_default()));
    left.sort_by_key(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        (kind != "Namespace", LAST.iter().position(|last| *last == kind).map_or(0, |position| position + 1))
    });
    let (mut uids, mut laid) = (Vec::<(String, String)>::new(), Vec::new());
    for object in left {
        let object = uids.iter().fold(object.to_string(), |text, (old, new)| text.replace(old, new));
        let object: Value = serde_json::from_str(&object).expect("a uid stands where a uid stood");
        let uid = lay(world, &object).await;
        uids.push((text(&object["metadata"]["uid"]), uid));
        laid.push(object);
    }
    laid
}

/// Makes an object, its status by itself, and lets it go where it was going; answers its uid.
async fn lay(world: &World, object: &Value) -> String {
    let mut bare = object.clone();
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        bare["metadata"].as_object_mut().map(|meta| meta.remove(field));
    }
    let status = bare.as_object_mut().and_then(|fields| fields.remove("status"));
    let id = id(object);
    if let Err(refused) = world.cluster.try_create(&bare).await {
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 409), "{id}: {refused}");
    }
    if let Some(status) = status.filter(|_| object["kind"] != "Namespace") {
        world.cluster.patch_status(&id, &json!({ "status": status })).await;
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        world.cluster.delete(&id).await;
    }
    let made = world.cluster.get(&id).await.expect("it was made just now, and something holds what is going");
    text(&made["metadata"]["uid"])
}

/// A dump of the simulator as it takes one up again: by collection and scope, and what belongs to nobody in no scope. Secrets of
/// tunnels are not in it, nor is anybody connected.
fn snapshot(state: &Value) -> Value {
    let scoped = |objects: &Value| if objects.is_array() { json!({ "": objects }) } else { objects.clone() };
    let collections = state.as_object().into_iter().flatten().filter(|(name, _)| *name != "configurations");
    let objects: Map<String, Value> = collections.map(|(name, all)| (name.clone(), scoped(all))).collect();
    let documents = state["configurations"].as_object().into_iter().flatten();
    let inside = |document: &Value| json!({ "secret": "", "clients": [], "configuration": document });
    let tunnels: Map<String, Value> = documents.map(|(id, document)| (id.clone(), inside(document))).collect();
    json!({ "generation": 1, "objects": objects, "tunnels": tunnels })
}

/// Fields of an object that servers give it.
const OF_SERVERS: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// What releases read of an object: what servers add of their own is left out, and documents in texts are opened.
fn documented(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|field, _| !OF_SERVERS.contains(&field.as_str()));
    }
    opened(object)
}

fn opened(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('{') => serde_json::from_str(&text).map_or(Value::String(text), opened),
        Value::Array(items) => Value::Array(items.into_iter().map(opened).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, member)| (name, opened(member))).collect())
        }
        other => other,
    }
}

/// Paths of fields that were there and are not any more. Lists count as one field: what is in them changes.
fn gone(before: &Value, after: &Value) -> Vec<String> {
    let Value::Object(members) = before else { return Vec::new() };
    let inside = |(name, member): (&String, &Value)| match after.get(name) {
        None => vec![format!(".{name}")],
        Some(now) => gone(member, now).into_iter().map(|path| format!(".{name}{path}")).collect(),
    };
    members.iter().flat_map(inside).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_went_are_told_by_their_paths_also_within_documents_in_texts() {
        let before =
            json!({ "data": { "ledger": "{\"held\":{\"a\":1},\"round\":0}", "hash": "x" }, "spec": { "list": [1] } });
        let after = json!({ "data": { "ledger": "{\"held\":{}}", "more": "y" }, "spec": { "list": [] } });

        assert_eq!(gone(&opened(before), &opened(after)), [".data.hash", ".data.ledger.held.a", ".data.ledger.round"]);
    }

    #[test]
    fn the_data_has_all_that_a_release_leaves() {
        let objects = objects();
        let has =
            |kind: &str, fits: &dyn Fn(&Value) -> bool| objects.iter().any(|one| one["kind"] == kind && fits(one));
        let named = |beginning: &'static str| move |one: &Value| text(&one["metadata"]["name"]).starts_with(beginning);

        assert!(has("ConfigMap", &named("portolan-held-")), "deletions that are held");
        assert!(has("ConfigMap", &|one| one["data"]["httproute_name"] == "shop"), "states");
        assert!(has("CloudflareTask", &|one| one["status"]["phase"] == "InProgress"), "a claim");
        assert!(
            has("CloudflareTask", &|one| one["status"]["phase"].is_null() || one["status"]["phase"] == "Pending"),
            "a task in flight"
        );
        assert!(has("Lease", &|_| true), "leases");
        assert!(
            has("Secret", &|one| text(&one["metadata"]["name"]).ends_with("service-token")),
            "credentials of a token"
        );
        assert!(has("DNSRecord", &|one| !one["metadata"]["deletionTimestamp"].is_null()), "an object that is going");
        for kind in [
            "CloudflareCredentials",
            "CloudflareDomain",
            "ClusterTunnel",
            "VirtualNetwork",
            "NetworkRoute",
            "HTTPRoute",
        ] {
            assert!(has(kind, &|one| kind == "HTTPRoute" || one["status"]["conditions"].is_array()), "{kind}");
        }
    }
}
