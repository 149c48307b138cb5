//! What two runs that ended alike have in common: everything at Cloudflare and in the cluster, with ids replaced by
//! what they are ids of, and times left out.

use serde_json::{Map, Value, json};

use super::manifests::PREFIX;
use crate::cloudflare::live;
use crate::world::World;

/// Collections at Cloudflare, and the field by which an object is told apart.
const COLLECTIONS: [(&str, &str); 6] = [
    ("dns_records", "name"),
    ("access_apps", "domain"),
    ("access_policies", "name"),
    ("access_groups", "name"),
    ("service_tokens", "name"),
    ("rulesets", "name"),
];

/// Fields that differ between two runs that ended alike.
const VOLATILE: [&str; 18] = [
    "id",
    "aud",
    "created_at",
    "updated_at",
    "created_on",
    "modified_on",
    "expires_at",
    "last_seen_at",
    "last_updated",
    "comment_modified_on",
    "tags_modified_on",
    "client_id",
    "version",
    "uid",
    "client_secret_version",
    "meta",
    "previous_client_secret_expires_at",
    "app_count",
];

/// Everything that a world's end is compared by.
pub async fn form(world: &World) -> Value {
    let state = world.cloudflare.simulator.state();
    let mut all = json!({ "cloudflare": at_cloudflare(&state), "cluster": in_cluster(world).await }).to_string();
    for (id, name) in ids(&state) {
        all = all.replace(&id, &name);
    }
    serde_json::from_str(&all).expect("replacing ids keeps JSON valid")
}

fn at_cloudflare(state: &Value) -> Value {
    let mut all = Map::new();
    for (collection, _) in COLLECTIONS {
        let mut objects: Vec<Value> = live(state, collection).iter().map(steady).collect();
        objects.sort_by_key(Value::to_string);
        all.insert(collection.to_owned(), json!(objects));
    }
    all.insert("configurations".to_owned(), steady(&state["configurations"]));
    Value::Object(all)
}

/// A value without what differs between runs.
pub fn steady(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name.clone(), steady(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(steady).collect()),
        other => other.clone(),
    }
}

/// Every id at Cloudflare with a name that is the same in every run.
fn ids(state: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (collection, field) in COLLECTIONS {
        for object in live(state, collection) {
            let name = object[field].as_str().unwrap_or_default().to_owned();
            for id in ["id", "client_id", "aud"].iter().filter_map(|id| object[*id].as_str()) {
                found.push((id.to_owned(), format!("<{collection} {name}>")));
            }
            for policy in object["policies"].as_array().into_iter().flatten() {
                let policy_name = policy["name"].as_str().unwrap_or_default();
                found.extend(
                    policy["id"].as_str().map(|id| (id.to_owned(), format!("<policy {policy_name} of {name}>"))),
                );
            }
            for rule in object["rules"].as_array().into_iter().flatten() {
                found.extend(
                    rule["id"].as_str().map(|id| {
                        (id.to_owned(), format!("<rule {}>", rule["description"].as_str().unwrap_or_default()))
                    }),
                );
            }
        }
    }
    found
}

async fn in_cluster(world: &World) -> Value {
    let mut all = Map::new();
    let mut add = |kind: &str, mut objects: Vec<Value>| {
        objects.sort_by_key(Value::to_string);
        all.insert(kind.to_owned(), json!(objects));
    };
    add("routes", world.cluster.list("HTTPRoute").await.iter().map(route).collect());
    add("tasks", world.cluster.list("CloudflareTask").await.iter().map(task).collect());
    let states = world.cluster.list("ConfigMap").await;
    add("states", states.iter().filter(|one| is_state(one)).map(state).collect());
    add("secrets", world.cluster.list("Secret").await.iter().map(secret).collect());
    for kind in ["CloudflareZeroTrustTenant", "CloudflareZeroTrustTemplate"] {
        add(kind, world.cluster.list(kind).await.iter().map(crate::cluster::essence).collect());
    }
    Value::Object(all)
}

/// Whether a `ConfigMap` is a route's state.
pub fn is_state(object: &Value) -> bool {
    object["data"]["httproute_name"].is_string()
}

fn route(object: &Value) -> Value {
    let meta = &object["metadata"];
    let mut annotations = meta["annotations"].clone();
    if let Some(all) = annotations.as_object_mut()
        && let Some(time) = all.get_mut(&format!("{PREFIX}lastReconcile"))
    {
        *time = json!("a time");
    }
    json!({
        "name": meta["name"], "namespace": meta["namespace"], "finalizers": meta["finalizers"],
        "deleting": !meta["deletionTimestamp"].is_null(), "annotations": annotations,
    })
}

fn task(object: &Value) -> Value {
    json!({ "name": object["metadata"]["name"], "phase": object["status"]["phase"], "message": object["status"]["message"] })
}

fn state(object: &Value) -> Value {
    let mut data = object["data"].clone();
    if let Some(members) = data.as_object_mut() {
        members.retain(|name, _| !name.contains("time") && name != "annotation_hash" && !name.contains("error"));
    }
    json!({ "name": object["metadata"]["name"], "labels": object["metadata"]["labels"], "data": data })
}

fn secret(object: &Value) -> Value {
    let keys: Vec<&String> = object["data"].as_object().map(|data| data.keys().collect()).unwrap_or_default();
    let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let owners: Vec<String> = owners.iter().map(|owner| format!("{}/{}", owner["kind"], owner["name"])).collect();
    json!({
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "labels": object["metadata"]["labels"], "keys": keys, "owners": owners,
    })
}
