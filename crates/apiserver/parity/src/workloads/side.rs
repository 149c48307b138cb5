//! One server: the steps of a script → requests, and what came of them.

use std::time::Instant;

use serde_json::{Value, json};

use super::masked::masked;
use super::script::{Expectation, PodFate, ScriptStep, Which, Word};
use super::{POLL, WITHIN};
use crate::client::{Client, PeerRequest};
use crate::names::rfc3339;
use crate::run;
use crate::server::PeerServer;

/// The nodes that pods of scripts are bound to, and their zones.
const NODES: [(&str, &str); 2] = [("pier-1", "north"), ("pier-2", "south")];

/// Makes the nodes; those of an earlier run may still be there.
pub(super) async fn make_nodes(server: &PeerServer) {
    let client = Client::new(server).expect("the server's CA is PEM");
    for (name, zone) in NODES {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        run::make(&client, "/api/v1/nodes", &node).await;
    }
}

/// A server and the namespace of a script.
pub(super) struct ScriptSide {
    client: Client,
    namespace: String,
}

impl ScriptSide {
    /// Makes the namespace of a script.
    pub(super) async fn new(server: &PeerServer, namespace: &str) -> Self {
        let client = Client::new(server).expect("the server's CA is PEM");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        run::make(&client, "/api/v1/namespaces", &object).await;
        Self { client, namespace: namespace.to_owned() }
    }

    /// Leaves nothing behind that controllers would go on with.
    pub(super) async fn end(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        self.client.send(&PeerRequest { method: "DELETE", ..PeerRequest::get(&path) }).await;
    }

    pub(super) async fn step(&self, step: &ScriptStep) -> Value {
        let body = step.body(&self.namespace).expect("tests read every body");
        match &step.word {
            Word::Create => self.create(&body).await,
            Word::Patch(which) => self.patch(which, "", &body).await,
            Word::Status(which) => self.patch(which, "/status", &body).await,
            Word::Delete(which) => self.delete(which, &body).await,
            Word::Become(selector, fate) => {
                let pods = Which::Selected { collection: "pods".to_owned(), selector: selector.clone() };
                self.patch(&pods, "/status", &fate_status(*fate)).await
            }
            Word::Await(which, expectation) => self.wait_for(which, expectation).await,
            Word::Show(collections) => self.show(collections).await,
        }
    }

    fn path(&self, collection: &str) -> String {
        let (plural, group) = collection.split_once('.').unwrap_or((collection, ""));
        let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
        if plural == "namespaces" {
            return format!("{root}/{plural}");
        }
        format!("{root}/namespaces/{}/{plural}", self.namespace)
    }

    fn object_path(&self, collection: &str, name: &str) -> String {
        format!("{}/{}", self.path(collection), name.replace("$ns", &self.namespace))
    }

    async fn create(&self, object: &Value) -> Value {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        let plural = if kind.ends_with('s') { kind } else { format!("{kind}s") };
        let answer =
            self.client.send(&PeerRequest::json("POST", &self.path(&format!("{plural}{group}")), object)).await;
        told(answer.status, answer.json())
    }

    async fn patch(&self, which: &Which, subresource: &str, patch: &Value) -> Value {
        let paths = self.paths(which).await;
        if paths.is_empty() {
            return nothing_meant();
        }
        for path in paths {
            let mut request = PeerRequest::json("PATCH", &format!("{path}{subresource}"), patch);
            request.content_type = Some("application/merge-patch+json".to_owned());
            let answer = self.client.send(&request).await;
            // A pod may have gone meanwhile.
            let gone = answer.status == 404 && matches!(which, Which::Selected { .. });
            if answer.status != 200 && !gone {
                return told(answer.status, answer.json());
            }
        }
        json!({"done": true})
    }

    /// Deletes what is meant; with options also what goes already.
    async fn delete(&self, which: &Which, options: &Value) -> Value {
        let stays = |object: &Value| !options.is_null() || object["metadata"]["deletionTimestamp"].is_null();
        let paths = self.paths_of(which, stays).await;
        if paths.is_empty() {
            return nothing_meant();
        }
        for path in paths {
            let request = match options {
                Value::Null => PeerRequest { method: "DELETE", ..PeerRequest::get(&path) },
                options => PeerRequest::json("DELETE", &path, options),
            };
            let answer = self.client.send(&request).await;
            let gone = answer.status == 404 && matches!(which, Which::Selected { .. });
            if !matches!(answer.status, 200 | 202) && !gone {
                return told(answer.status, answer.json());
            }
        }
        json!({"done": true})
    }

    /// The paths of the objects that are meant; pods that go are not.
    async fn paths(&self, which: &Which) -> Vec<String> {
        self.paths_of(which, |object| object["metadata"]["deletionTimestamp"].is_null()).await
    }

    async fn paths_of(&self, which: &Which, meant: impl Fn(&Value) -> bool) -> Vec<String> {
        let collection = match which {
            Which::Named { collection, name } => return vec![self.object_path(collection, name)],
            Which::Selected { collection, .. } => collection,
        };
        let there = self.objects(which).await;
        let names =
            there.iter().filter(|object| meant(object)).filter_map(|object| object["metadata"]["name"].as_str());
        names.map(|name| format!("{}/{name}", self.path(collection))).collect()
    }

    /// Collection and selector of what is meant, as a query.
    fn query(&self, which: &Which) -> String {
        match which {
            Which::Named { collection, name } => {
                let name = name.replace("$ns", &self.namespace);
                format!("{}?fieldSelector=metadata.name%3D{name}", self.path(collection))
            }
            Which::Selected { collection, selector } => {
                format!("{}?labelSelector={}", self.path(collection), selector.replace('=', "%3D"))
            }
        }
    }

    /// What is there now, and the version of the whole.
    async fn look(&self, which: &Which) -> (Vec<Value>, String) {
        let answer = self.client.send(&PeerRequest::get(&self.query(which))).await;
        let list = answer.json();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        (list["items"].as_array().cloned().unwrap_or_default(), version)
    }

    async fn objects(&self, which: &Which) -> Vec<Value> {
        self.look(which).await.0
    }

    /// Watches until it is so, or for long enough: states that last for a moment only are seen, too.
    async fn wait_for(&self, which: &Which, expectation: &Expectation) -> Value {
        let deadline = Instant::now() + WITHIN;
        loop {
            let (mut objects, version) = self.look(which).await;
            let left = deadline.saturating_duration_since(Instant::now());
            if expectation.holds(&objects)
                || !version.is_empty() && {
                    let watch =
                        PeerRequest::get(&format!("{}&watch=true&resourceVersion={version}", self.query(which)));
                    self.client.watch(&watch, left, |events| follow(&mut objects, events, expectation)).await;
                    expectation.holds(&objects)
                }
            {
                return json!({"done": true});
            }
            if Instant::now() > deadline {
                let objects: Vec<Value> = objects.into_iter().map(masked).collect();
                return json!({"waited in vain": objects});
            }
            // The watch was ended, or could not begin.
            tokio::time::sleep(POLL).await;
        }
    }

    async fn show(&self, collections: &[String]) -> Value {
        let mut shown = json!({});
        for collection in collections {
            let which = if let Some((one, name)) = collection.split_once('/') {
                Which::Named { collection: one.to_owned(), name: name.to_owned() }
            } else {
                Which::Selected { collection: collection.clone(), selector: String::new() }
            };
            let items = self.objects(&which).await;
            // Lists leave kinds out.
            let kept = items.into_iter().map(|mut item| {
                item["kind"] = json!(collection);
                masked(item)
            });
            shown[collection] = super::masked::gathered(collection, kept.collect());
        }
        json!({"shown": shown})
    }
}

/// Takes in the last event of a watch, and tells whether it is so then.
fn follow(objects: &mut Vec<Value>, events: &[Value], expectation: &Expectation) -> bool {
    let Some(event) = events.last() else { return false };
    let name = &event["object"]["metadata"]["name"];
    match event["type"].as_str() {
        Some("ADDED" | "MODIFIED" | "DELETED") => objects.retain(|object| object["metadata"]["name"] != *name),
        _ => return false,
    }
    if event["type"] != "DELETED" {
        objects.push(event["object"].clone());
    }
    expectation.holds(objects)
}

impl Expectation {
    fn holds(&self, objects: &[Value]) -> bool {
        match self {
            Self::Count(count) => objects.len() == *count,
            Self::Value { path, value } => {
                !objects.is_empty() && objects.iter().all(|object| found(object, path) == *value)
            }
        }
    }
}

/// A step that names nothing does nothing on either server.
fn nothing_meant() -> Value {
    json!({"nothing": "is there that the step means"})
}

/// What is wrong with what a step came to on the real server, though the other may say the same.
pub(super) fn wrong(step: &ScriptStep, came_to: &Value) -> Option<String> {
    let refused = came_to.get("status").is_some();
    match step.refused {
        true if refused => None,
        true => Some("is not refused".to_owned()),
        false if came_to.get("done").is_some() || came_to.get("shown").is_some() => None,
        false => Some(came_to.to_string()),
    }
}

/// What became of a write: done, or why not.
fn told(status: u16, body: &Value) -> Value {
    if (200..300).contains(&status) {
        return json!({"done": true});
    }
    json!({"status": status, "reason": body["reason"], "message": body["message"].as_str().map(crate::mask::mask_text)})
}

/// A value by its path as text; in a list of conditions by type, in others by place, or how many there are.
fn found(object: &Value, path: &[String]) -> String {
    let (last, before) = path.split_last().expect("a path has parts");
    let value = before.iter().fold(object, |value, part| part_of(value, part));
    match value.as_array() {
        Some(items) if last == "count" => items.len().to_string(),
        _ => {
            let value = part_of(value, last);
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        }
    }
}

fn part_of<'a>(value: &'a Value, part: &str) -> &'a Value {
    let found = match (value.as_array(), part.parse::<usize>()) {
        (Some(items), Ok(place)) => items.get(place),
        (Some(items), Err(_)) => items.iter().find(|item| item["type"] == part),
        (None, _) => value.get(part),
    };
    found.unwrap_or(&Value::Null)
}

fn fate_status(fate: PodFate) -> Value {
    let (phase, ready) = match fate {
        PodFate::Ready => ("Running", "True"),
        PodFate::Unready => ("Running", "False"),
        PodFate::Failed => ("Failed", "False"),
        PodFate::Succeeded => ("Succeeded", "False"),
    };
    let now = {
        let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        rfc3339(seconds)
    };
    json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_servers_fail_in_is_found() {
        let step = |refused| ScriptStep { line: String::new(), word: Word::Create, body: String::new(), refused };
        let told = |came_to: Value| wrong(&step(false), &came_to);

        assert!(told(json!({"waited in vain": []})).is_some());
        assert!(told(told_refusal()).is_some());
        assert!(told(nothing_meant()).is_some());
        assert!(told(json!({"done": true})).is_none());
        assert!(wrong(&step(true), &told_refusal()).is_none());
        assert_eq!(wrong(&step(true), &json!({"done": true})).as_deref(), Some("is not refused"));
    }

    fn told_refusal() -> Value {
        super::told(422, &json!({"reason": "Invalid", "message": "no"}))
    }

    #[test]
    fn a_state_that_lasts_for_one_event_is_seen() {
        let pod = |phase: &str| json!({"metadata": {"name": "a"}, "status": {"phase": phase}});
        let path = ["status", "phase"].map(str::to_owned).to_vec();
        let running = Expectation::Value { path, value: "Running".to_owned() };
        let mut objects = vec![pod("Pending")];

        let event = |kind: &str, phase: &str| json!({"type": kind, "object": pod(phase)});
        assert!(follow(&mut objects, &[event("MODIFIED", "Running")], &running));
        assert!(!follow(&mut objects, &[event("MODIFIED", "Failed")], &running));
        assert!(follow(&mut objects, &[event("DELETED", "Failed")], &Expectation::Count(0)));
    }

    #[test]
    fn conditions_are_found_by_type() {
        let object = json!({"status": {"conditions": [{"type": "A", "reason": "R"}]}});

        assert_eq!(found(&object, &["status", "conditions", "A", "reason"].map(str::to_owned)), "R");
        assert_eq!(found(&object, &["status", "replicas"].map(str::to_owned)), "null");
    }

    #[test]
    fn other_lists_are_counted_and_their_items_found_by_place() {
        let object = json!({"endpoints": [{"addresses": ["10.1.0.1", "10.1.0.2"]}]});

        assert_eq!(found(&object, &["endpoints", "0", "addresses", "count"].map(str::to_owned)), "2");
        assert_eq!(found(&object, &["endpoints", "0", "addresses", "1"].map(str::to_owned)), "10.1.0.2");
        assert_eq!(found(&object, &["endpoints", "1", "addresses"].map(str::to_owned)), "null");
    }
}
