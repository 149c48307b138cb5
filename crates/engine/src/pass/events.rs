//! Notices in, `events.k8s.io/v1` events out: each once, and again only after a silence.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use portolan_core::{Clock, Notice, reasons, text};
use tokio::time::Instant;

use crate::pass::status::in_time;

/// The API's limit on a note.
const LONGEST_NOTE: usize = 1024;
/// How many sent events are remembered before old ones are swept out.
const MOST_REMEMBERED: usize = 4096;

/// Writes events. Clones share the memory of what was said.
#[derive(Clone)]
pub struct Events {
    client: Client,
    clock: Clock,
    memory: Arc<Mutex<Memory>>,
}

impl Events {
    /// Events that are not repeated within `silence`.
    pub fn new(client: Client, clock: Clock, silence: Duration) -> Self {
        Self { client, clock, memory: Arc::new(Mutex::new(Memory { sent: BTreeMap::new(), silence })) }
    }

    /// Writes an event about an object, unless the same was written lately. Events are a courtesy: a failure is
    /// logged and nothing else.
    pub async fn tell(&self, regarding: &ObjectReference, notice: &Notice) {
        portolan_core::waypoint!();
        let told = EventKey::of(regarding, notice);
        if !self.memory.lock().expect("nothing panics while it is held").is_new(told, Instant::now()) {
            return;
        }
        let event = event(regarding, notice, (self.clock)(), told);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api = Api::<Event>::namespaced(self.client.clone(), &namespace);
        if let Err(error) = in_time(api.create(&PostParams::default(), &event)).await {
            tracing::debug!(reason = notice.reason, %error, "An event could not be written");
        }
    }
}

/// What makes two events the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventKey(u64);

impl EventKey {
    fn of(regarding: &ObjectReference, notice: &Notice) -> Self {
        let mut hasher = DefaultHasher::new();
        (&regarding.kind, &regarding.namespace, &regarding.name, &regarding.uid).hash(&mut hasher);
        notice.reason.hash(&mut hasher);
        // A delete that fails again and again differs in its message only.
        if notice.reason != reasons::DELETE_FAILED {
            notice.message.hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}

/// What was sent, and when. Pure.
struct Memory {
    sent: BTreeMap<EventKey, Instant>,
    silence: Duration,
}

impl Memory {
    fn is_new(&mut self, told: EventKey, now: Instant) -> bool {
        if self.sent.get(&told).is_some_and(|sent| now < *sent + self.silence) {
            return false;
        }
        if self.sent.len() >= MOST_REMEMBERED {
            self.sent.retain(|_, sent| now < *sent + self.silence);
        }
        if self.sent.len() >= MOST_REMEMBERED {
            self.sent.clear();
        }
        self.sent.insert(told, now);
        true
    }
}

fn event(regarding: &ObjectReference, notice: &Notice, now: jiff::Timestamp, told: EventKey) -> Event {
    let name = regarding.name.as_deref().unwrap_or_default();
    // Names of events are unique in time, as those of other writers.
    let name = format!("{}.{:x}{:016x}", text::truncate(name, 200), now.as_microsecond(), told.0);
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(regarding.namespace.clone().unwrap_or_else(|| "default".to_owned())),
            ..ObjectMeta::default()
        },
        action: Some("Reconcile".to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(shortened(&notice.message)),
        reason: Some(notice.reason.to_owned()),
        regarding: Some(regarding.clone()),
        reporting_controller: Some("portolan.dev/portolan".to_owned()),
        reporting_instance: Some("portolan".to_owned()),
        type_: Some(notice.severity.as_str().to_owned()),
        ..Event::default()
    }
}

/// The API counts bytes.
fn shortened(message: &str) -> String {
    let mut end = message.len().min(LONGEST_NOTE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> ObjectReference {
        ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() }
    }

    fn memory() -> Memory {
        Memory { sent: BTreeMap::new(), silence: Duration::from_secs(600) }
    }

    #[test]
    fn the_same_event_is_new_again_only_after_the_silence() {
        let (mut memory, now) = (memory(), Instant::now());
        let told = EventKey::of(&about("a"), &Notice::warning("SyncFailed", "503"));

        assert!(memory.is_new(told, now));
        assert!(!memory.is_new(told, now + Duration::from_secs(599)));
        assert!(memory.is_new(told, now + Duration::from_secs(600)));
    }

    #[test]
    fn other_objects_reasons_and_messages_are_other_events() {
        let first = EventKey::of(&about("a"), &Notice::warning("SyncFailed", "503"));

        assert_ne!(first, EventKey::of(&about("b"), &Notice::warning("SyncFailed", "503")));
        assert_ne!(first, EventKey::of(&about("a"), &Notice::warning("Other", "503")));
        assert_ne!(first, EventKey::of(&about("a"), &Notice::warning("SyncFailed", "500")));
    }

    #[test]
    fn failed_deletes_are_the_same_whatever_they_say() {
        let first = EventKey::of(&about("a"), &Notice::warning(reasons::DELETE_FAILED, "503"));

        assert_eq!(first, EventKey::of(&about("a"), &Notice::warning(reasons::DELETE_FAILED, "500")));
    }

    #[test]
    fn the_memory_stays_bounded() {
        let (mut memory, now) = (memory(), Instant::now());
        for number in 0..10_000 {
            assert!(memory.is_new(EventKey(number), now));
        }

        assert!(memory.sent.len() <= MOST_REMEMBERED);
    }

    #[test]
    fn long_notes_are_cut_where_a_character_ends() {
        assert_eq!(shortened(&"ü".repeat(600)).len(), 1024);
        assert_eq!(shortened(&format!("a{}", "ü".repeat(600))).len(), 1023);
    }
}
