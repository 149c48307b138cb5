//! What controllers tell → `Event` objects, as `kubectl describe` shows them.
//!
//! The same said again is counted. Ten messages of one reason about one object become one that is counted from then on.
//! Of one object, 25 are written at once and then one in five minutes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use portolan_workloads::{Event, EventType};
use serde_json::{Value, json};

use super::perform::MANAGER;
use crate::api::{Api, timestamp};
use crate::call::Call;
use crate::controllers::call;
use crate::object;
use crate::status::ApiError;
use crate::strategy::ObjectPart;

const SIMILAR: usize = 10;
const SIMILAR_WITHIN_SECONDS: i64 = 600;
const BURST: f64 = 25.0;
const SECONDS_PER_EVENT: f64 = 300.0;
/// Objects and messages that are remembered.
const MOST_REMEMBERED: usize = 4096;

pub(in crate::controllers) struct Recorder {
    api: Arc<Api>,
    similar: Recent<Similar>,
    written: Recent<WrittenEvent>,
    allowed: Recent<Allowance>,
    last_nanosecond: i128,
}

/// Messages of one reason about one object.
#[derive(Clone, Default)]
struct Similar {
    messages: BTreeSet<String>,
    last: Option<Timestamp>,
}

/// An event that was written.
#[derive(Clone)]
struct WrittenEvent {
    name: String,
    first: String,
    count: u64,
}

/// How many more events may be written about an object.
#[derive(Clone)]
struct Allowance {
    left: f64,
    at: Timestamp,
}

impl Recorder {
    pub(in crate::controllers) fn new(api: Arc<Api>) -> Self {
        let (similar, written, allowed) = (Recent::default(), Recent::default(), Recent::default());
        Self { api, similar, written, allowed, last_nanosecond: 0 }
    }

    /// Writes an event, or counts one that was written. An event that cannot be written is not worth a failure.
    pub(in crate::controllers) async fn record(&mut self, component: &'static str, event: Event) {
        let now = (self.api.clock)();
        let subject = EventSubject::of(component, &event);
        let (message, key) = self.combined(&subject, &event, now);
        let mut written = self.written.get(&key).cloned().unwrap_or_else(|| WrittenEvent {
            name: self.name(&event.about, now),
            first: timestamp(now),
            count: 0,
        });
        written.count += 1;
        self.written.put(key, written.clone());
        if !self.is_allowed(&subject.spam_key(), now) {
            return;
        }
        if let Err(error) = self.write(component, &event, &message, &written).await {
            tracing::debug!(reason = event.reason, error = error.message, "Could not write an event");
        }
    }

    /// The message to write, and what it is counted by.
    fn combined(&mut self, subject: &EventSubject, event: &Event, now: Timestamp) -> (String, String) {
        let mut similar = self.similar.get(&subject.similar_key()).cloned().unwrap_or_default();
        let fresh = similar.last.is_some_and(|last| now.as_second() - last.as_second() <= SIMILAR_WITHIN_SECONDS);
        if !fresh {
            similar.messages.clear();
        }
        similar.messages.insert(event.message.clone());
        similar.last = Some(now);
        let many = similar.messages.len() >= SIMILAR;
        if many {
            similar.messages.pop_first();
        }
        self.similar.put(subject.similar_key(), similar);
        if many {
            (format!("(combined from similar events): {}", event.message), subject.similar_key())
        } else {
            (event.message.clone(), format!("{}\n{}", subject.similar_key(), event.message))
        }
    }

    fn is_allowed(&mut self, key: &str, now: Timestamp) -> bool {
        let mut allowance = self.allowed.get(key).cloned().unwrap_or(Allowance { left: BURST, at: now });
        let passed = now.duration_since(allowance.at).as_secs_f64().max(0.0);
        allowance.left = (allowance.left + passed / SECONDS_PER_EVENT).min(BURST);
        allowance.at = now;
        let allowed = allowance.left >= 1.0;
        if allowed {
            allowance.left -= 1.0;
        }
        self.allowed.put(key.to_owned(), allowance);
        allowed
    }

    /// The object's name and the time; two events of one moment differ.
    fn name(&mut self, about: &Value, now: Timestamp) -> String {
        self.last_nanosecond = now.as_nanosecond().max(self.last_nanosecond + 1);
        format!("{}.{:x}", object::name(about), self.last_nanosecond)
    }

    async fn write(
        &self,
        component: &str,
        event: &Event,
        message: &str,
        written: &WrittenEvent,
    ) -> Result<(), ApiError> {
        let namespace = match object::namespace(&event.about) {
            "" => "default",
            namespace => namespace,
        };
        let registry = self.api.registry();
        let resource = registry.find("", "v1", "events").ok_or_else(ApiError::no_such_resource)?;
        let call: Call = call(&self.api, resource, namespace, &written.name);
        let now = timestamp((self.api.clock)());
        if written.count > 1 {
            let count = |live: &mut Value| {
                live["count"] = json!(written.count);
                live["lastTimestamp"] = json!(now);
                live["message"] = json!(message);
                true
            };
            match call.system_change(ObjectPart::Main, MANAGER, count).await {
                Err(error) if error.reason == "NotFound" => {}
                other => return other.map(|_| ()),
            }
        }
        let object = event_object(component, event, message, written, namespace, &now);
        call.system_create(MANAGER, object).await.map(|_| ())
    }
}

fn event_object(
    component: &str,
    event: &Event,
    message: &str,
    written: &WrittenEvent,
    namespace: &str,
    now: &str,
) -> Value {
    let about = &event.about;
    let mut involved = json!({"kind": about["kind"], "apiVersion": about["apiVersion"]});
    for field in ["namespace", "name", "uid", "resourceVersion"] {
        let value = object::meta_text(about, field);
        if !value.is_empty() {
            involved[field] = json!(value);
        }
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": written.name, "namespace": namespace},
        "involvedObject": involved, "reason": event.reason, "message": message, "type": type_text(event.event_type),
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
        "firstTimestamp": written.first, "lastTimestamp": now, "count": written.count, "eventTime": null,
    })
}

fn type_text(event_type: EventType) -> &'static str {
    match event_type {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    }
}

/// Who tells what about which object.
struct EventSubject {
    object: String,
    reason: &'static str,
}

impl EventSubject {
    fn of(component: &str, event: &Event) -> Self {
        let about = &event.about;
        let kind = about["kind"].as_str().unwrap_or_default();
        let parts = [
            component,
            kind,
            object::namespace(about),
            object::name(about),
            object::meta_text(about, "uid"),
            type_text(event.event_type),
        ];
        Self { object: parts.join("\n"), reason: event.reason }
    }

    fn spam_key(&self) -> String {
        self.object.clone()
    }

    fn similar_key(&self) -> String {
        format!("{}\n{}", self.object, self.reason)
    }
}

/// What was used last, at most [`MOST_REMEMBERED`].
struct Recent<V> {
    entries: HashMap<String, (u64, V)>,
    clock: u64,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), clock: 0 }
    }
}

impl<V> Recent<V> {
    fn get(&self, key: &str) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Remembers a value; where there are too many, the older half is forgotten.
    fn put(&mut self, key: String, value: V) {
        self.clock += 1;
        self.entries.insert(key, (self.clock, value));
        if self.entries.len() > MOST_REMEMBERED {
            let mut times: Vec<u64> = self.entries.values().map(|(time, _)| *time).collect();
            let middle = times.len() / 2;
            let (_, median, _) = times.select_nth_unstable(middle);
            let median = *median;
            self.entries.retain(|_, (time, _)| *time > median);
        }
    }
}
