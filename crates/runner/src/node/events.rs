//! What happens to pods → Event objects, as a kubelet writes them: the same said again is counted.

use std::collections::HashMap;
use std::sync::Mutex;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::pod::containers::{name, namespace, uid};

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
        pod: &Pod,
        sort: EventSort,
        reason: &str,
        message: String,
        container: Option<&str>,
    ) {
        let key = format!("{}\n{reason}\n{message}\n{}", uid(pod), container.unwrap_or_default());
        let now = Timestamp::now();
        let counted = self.count(key, pod, now);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace(pod));
        let result = if counted.count == 1 {
            let event = self.event(pod, sort, reason, &message, container, &counted, now);
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

    fn count(&self, key: String, pod: &Pod, now: Timestamp) -> CountedEvent {
        let mut written = self.written.lock().expect("nobody panics with it");
        if written.len() >= MOST_REMEMBERED {
            written.clear();
        }
        let next = format!("{}.{:x}", name(pod), now.as_nanosecond());
        let counted = written.entry(key).or_insert(CountedEvent { name: next, count: 0 });
        counted.count += 1;
        counted.clone()
    }

    #[expect(clippy::too_many_arguments, reason = "an event has that many parts")]
    fn event(
        &self,
        pod: &Pod,
        sort: EventSort,
        reason: &str,
        message: &str,
        container: Option<&str>,
        counted: &CountedEvent,
        now: Timestamp,
    ) -> Value {
        let mut about = json!({
            "apiVersion": "v1", "kind": "Pod", "name": name(pod), "namespace": namespace(pod), "uid": uid(pod),
            "resourceVersion": pod.metadata.resource_version,
        });
        if let Some(container) = container {
            about["fieldPath"] = json!(format!("spec.containers{{{container}}}"));
        }
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": counted.name, "namespace": namespace(pod)},
            "involvedObject": about, "reason": reason, "message": message, "type": sort.as_str(),
            "source": {"component": "kubelet", "host": self.node}, "reportingComponent": "kubelet",
            "reportingInstance": self.node, "firstTimestamp": seconds(now), "lastTimestamp": seconds(now), "count": 1,
        })
    }
}

fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
