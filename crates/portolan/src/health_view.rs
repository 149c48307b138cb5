//! An object of a server, as far as its health is concerned.

use serde_json::Value;

pub(crate) use portolan_core::ObjectHealth as Health;

use crate::failure::Outcome;
use crate::kinds::{Kinds, ServedKind};
use crate::server::{Server, ServerRequest};

/// The group of the cloudflare job's kinds.
pub(crate) const GROUP: &str = "networking.cloudflare-operator.io";

/// An object and its health.
#[derive(Clone, Debug)]
pub(crate) struct HealthView {
    pub(crate) kind: String,
    pub(crate) object: Value,
}

impl HealthView {
    /// `namespace/name`, or the name alone for objects of the cluster.
    pub(crate) fn key(&self) -> String {
        match self.text("/metadata/namespace") {
            "" => self.name().to_owned(),
            namespace => format!("{namespace}/{}", self.name()),
        }
    }

    /// `DNSRecord apps/www`.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind, self.key())
    }

    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// A text at a JSON pointer; empty where there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A condition by its type.
    pub(crate) fn condition(&self, wanted: &str) -> Option<&Value> {
        let conditions = self.object["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == wanted)
    }

    /// How it is.
    pub(crate) fn health(&self) -> Health {
        if !self.text("/metadata/deletionTimestamp").is_empty() {
            return Health::Deleting;
        }
        let Some(ready) = self.condition("Ready") else { return Health::Pending };
        let generation = self.object["metadata"]["generation"].as_i64();
        let observed =
            ready["observedGeneration"].as_i64().or_else(|| self.object["status"]["observedGeneration"].as_i64());
        match ready["status"].as_str() {
            _ if observed.is_some() && observed < generation => Health::Pending,
            Some("True") => Health::Ready,
            Some("False") => Health::NotReady,
            _ => Health::Pending,
        }
    }

    /// `ConflictError: …`, from the `Ready` condition; says so where there is none.
    pub(crate) fn reason(&self) -> String {
        let Some(ready) = self.condition("Ready") else { return "no controller has looked at it yet".to_owned() };
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        match (text("reason"), text("message")) {
            (reason, message) if message.is_empty() => reason,
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// All objects of the kinds in `group` that `wanted` accepts, in the order of kind, namespace and name.
pub(crate) async fn all(
    server: &Server,
    kinds: &Kinds,
    group: &str,
    wanted: impl Fn(&ServedKind) -> bool,
) -> Outcome<Vec<HealthView>> {
    let mut seen = Vec::new();
    for kind in kinds.in_group(group).into_iter().filter(|kind| wanted(kind)) {
        for object in list(server, kind).await? {
            seen.push(HealthView { kind: kind.kind.clone(), object });
        }
    }
    Ok(seen)
}

/// All objects of a kind, page by page.
pub(crate) async fn list(server: &Server, kind: &ServedKind) -> Outcome<Vec<Value>> {
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("{}?limit=500{next}", kind.collection_path(None));
        let mut page = server.call(ServerRequest::get(&path)).await?.body;
        if let Some(items) = page["items"].as_array_mut() {
            objects.append(items);
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={}", crate::kinds::segment(token)),
            None => return Ok(objects),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(object: Value) -> HealthView {
        HealthView { kind: "DNSRecord".to_owned(), object }
    }

    fn ready(status: &str, observed: i64) -> HealthView {
        let condition =
            json!({"type": "Ready", "status": status, "reason": "R", "message": "m", "observedGeneration": observed});
        seen(json!({"metadata": {"name": "a", "generation": 2}, "status": {"conditions": [condition]}}))
    }

    #[test]
    fn ready_counts_only_for_the_spec_as_it_stands() {
        assert_eq!(ready("True", 2).health(), Health::Ready);
        assert_eq!(ready("True", 1).health(), Health::Pending);
        assert_eq!(ready("False", 2).health(), Health::NotReady);
        assert_eq!(seen(json!({"metadata": {"name": "a"}})).health(), Health::Pending);
    }

    #[test]
    fn an_object_on_its_way_out_is_deleting_whatever_it_says() {
        let mut object = ready("True", 2).object;
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");

        assert_eq!(seen(object).health(), Health::Deleting);
    }

    #[test]
    fn the_reason_says_what_the_condition_says() {
        assert_eq!(ready("False", 2).reason(), "R: m");
        assert!(seen(json!({})).reason().contains("no controller"));
    }
}
