//! What happens to pods and claims → Event objects, as a kubelet writes them: the same said again is counted.

use std::collections::HashMap;
use std::sync::Mutex;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// Events that are remembered, so that they can be counted.
const MOST_REMEMBERED: usize = 4096;

/// Whether an event is news or a worry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSort {
    Normal,
    Warning,
}

impl EventSort {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object that an event is about.
#[derive(Clone, Debug)]
pub(super) struct EventSubject {
    kind: &'static str,
    namespace: String,
    name: String,
    uid: String,
    version: Option<String>,
}

impl EventSubject {
    /// An object of the core group.
    pub(super) fn new(kind: &'static str, metadata: &ObjectMeta) -> Self {
        Self {
            kind,
            namespace: metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone(),
        }
    }
}

impl From<&Pod> for EventSubject {
    fn from(pod: &Pod) -> Self {
        Self::new("Pod", &pod.metadata)
    }
}

/// Writes events.
pub(super) struct EventRecorder {
    client: kube::Client,
    node: String,
    written: Mutex<HashMap<String, CountedEvent>>,
}

#[derive(Clone)]
struct CountedEvent {
    name: String,
    count: u64,
}

impl EventRecorder {
    pub(super) fn new(client: kube::Client, node: &str) -> Self {
        Self { client, node: node.to_owned(), written: Mutex::default() }
    }

    /// Writes or counts an event. One that cannot be written is not worth a failure.
    pub(super) async fn tell(
        &self,
        about: &EventSubject,
        sort: EventSort,
        reason: &str,
        message: String,
        container: Option<&str>,
    ) {
        let key = format!("{}\n{reason}\n{message}\n{}", about.uid, container.unwrap_or_default());
        let now = Timestamp::now();
        let counted = self.count(key, &about.name, now);
        let api: Api<Event> = Api::namespaced(self.client.clone(), &about.namespace);
        let result = if counted.count == 1 {
            let event = self.event(about, sort, reason, &message, container, &counted, now);
            match serde_json::from_value(event) {
                Ok(event) => api.create(&PostParams::default(), &event).await.map(drop),
                Err(error) => Err(kube::Error::SerdeError(error)),
            }
        } else {
            let patch = json!({"count": counted.count, "lastTimestamp": seconds(now)});
            api.patch(&counted.name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        };
        if let Err(error) = result {
            tracing::debug!(reason, %error, "Could not write an event");
        }
    }

    fn count(&self, key: String, name: &str, now: Timestamp) -> CountedEvent {
        let mut written = self.written.lock().expect("nobody panics with it");
        if written.len() >= MOST_REMEMBERED {
            written.clear();
        }
        let next = format!("{name}.{:x}", now.as_nanosecond());
        let counted = written.entry(key).or_insert(CountedEvent { name: next, count: 0 });
        counted.count += 1;
        counted.clone()
    }

    #[expect(clippy::too_many_arguments, reason = "an event has that many parts")]
    fn event(
        &self,
        about: &EventSubject,
        sort: EventSort,
        reason: &str,
        message: &str,
        container: Option<&str>,
        counted: &CountedEvent,
        now: Timestamp,
    ) -> Value {
        let mut object = json!({
            "apiVersion": "v1", "kind": about.kind, "name": about.name, "namespace": about.namespace, "uid": about.uid,
            "resourceVersion": about.version,
        });
        if let Some(container) = container {
            object["fieldPath"] = json!(format!("spec.containers{{{container}}}"));
        }
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": counted.name, "namespace": about.namespace},
            "involvedObject": object, "reason": reason, "message": message, "type": sort.as_str(),
            "source": {"component": "kubelet", "host": self.node}, "reportingComponent": "kubelet",
            "reportingInstance": self.node, "firstTimestamp": seconds(now), "lastTimestamp": seconds(now), "count": 1,
        })
    }
}

fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
