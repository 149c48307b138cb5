//! Slices as they shall be → the steps that make them so.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{CONTROLLER, HEADLESS, MANAGED_BY, SERVICE_NAME, SLICES};
use crate::serving::{self, is_going, is_headless, list, map_patch, text};
use crate::{Part, Step, Target};

const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// A slice as it shall be.
pub(super) struct Draft {
    origin: Origin,
    family: String,
    ports: Vec<Value>,
    pub(super) endpoints: Vec<Value>,
}

/// What a draft is made of.
enum Origin {
    New,
    /// A slice with other endpoints, labels or hints.
    Changed(Arc<Value>),
    /// A slice that nobody needs any longer; nothing of it but its name is kept.
    Reused(Arc<Value>),
}

/// What changes among the slices of a service.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) create: Vec<Draft>,
    pub(super) update: Vec<Draft>,
    pub(super) delete: Vec<Arc<Value>>,
}

impl Changes {
    pub(super) fn add(&mut self, other: Self) {
        self.create.extend(other.create);
        self.update.extend(other.update);
        self.delete.extend(other.delete);
    }

    /// Whether a slice is updated or deleted.
    pub(super) fn touches(&self, slice: &Arc<Value>) -> bool {
        let of = |draft: &Draft| matches!(&draft.origin, Origin::Changed(old) | Origin::Reused(old) if Arc::ptr_eq(old, slice));
        self.update.iter().any(of) || self.delete.iter().any(|gone| Arc::ptr_eq(gone, slice))
    }

    /// New slices take over those that would be deleted: one write instead of two.
    fn reuse(&mut self, service: &Value) {
        let mut kept = Vec::new();
        for slice in std::mem::take(&mut self.delete) {
            match self.create.pop() {
                Some(draft) if super::is_owned_by(&slice, service) => {
                    self.update.push(Draft { origin: Origin::Reused(slice), ..draft });
                }
                draft => {
                    self.create.extend(draft);
                    kept.push(slice);
                }
            }
        }
        self.delete = kept;
    }
}

impl Draft {
    pub(super) fn new(family: &str, ports: Vec<Value>) -> Self {
        Self { origin: Origin::New, family: family.to_owned(), ports, endpoints: Vec::new() }
    }

    pub(super) fn changing(slice: Arc<Value>) -> Self {
        Self {
            family: text(&slice, "/addressType").to_owned(),
            ports: list(&slice, "/ports").to_vec(),
            endpoints: list(&slice, "/endpoints").to_vec(),
            origin: Origin::Changed(slice),
        }
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self.origin, Origin::New)
    }

    /// Whether a slice already is as this one, which has no endpoints and no ports.
    pub(super) fn is_like(&self, slice: &Value, service: &Value) -> bool {
        super::is_owned_by(slice, service)
            && list(slice, "/ports").is_empty()
            && list(slice, "/endpoints").is_empty()
            && slice["metadata"]["labels"] == Value::Object(labels(service))
    }
}

/// The service that slices are for, and when the change happened that they follow.
pub(super) struct Wanted<'a> {
    pub(super) service: &'a Value,
    pub(super) trigger_time: Option<&'a str>,
}

impl Wanted<'_> {
    /// Creations first, deletions last: no endpoint is missing in between.
    pub(super) fn steps(&self, mut changes: Changes) -> Vec<Step> {
        changes.reuse(self.service);
        let mut steps = Vec::new();
        if !is_going(self.service) {
            steps.extend(changes.create.iter().map(|draft| self.create(draft)));
        }
        steps.extend(changes.update.iter().filter_map(|draft| self.update(draft)));
        steps.extend(changes.delete.iter().map(|slice| Step::Delete { target: target(slice) }));
        steps
    }

    fn create(&self, draft: &Draft) -> Step {
        let metadata = &self.service["metadata"];
        let owner = json!({
            "apiVersion": "v1", "kind": "Service", "name": metadata["name"], "uid": metadata["uid"],
            "controller": true, "blockOwnerDeletion": true,
        });
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "generateName": format!("{}-", text(self.service, "/metadata/name")), "namespace": metadata["namespace"],
                "labels": labels(self.service), "annotations": self.annotations(&Value::Null), "ownerReferences": [owner],
            },
            "addressType": draft.family, "endpoints": draft.endpoints, "ports": draft.ports,
        });
        Step::Create { collection: SLICES, object }
    }

    fn update(&self, draft: &Draft) -> Option<Step> {
        let (old, annotations) = match &draft.origin {
            Origin::New => return None,
            Origin::Changed(old) => (old, self.annotations(&old["metadata"]["annotations"])),
            Origin::Reused(old) => (old, self.annotations(&Value::Null)),
        };
        let mut metadata = Map::new();
        for (field, new) in [("labels", labels(self.service)), ("annotations", annotations)] {
            metadata.extend(map_patch(&old["metadata"][field], &new).map(|patch| (field.to_owned(), patch)));
        }
        let mut patch = json!({"metadata": metadata});
        for (field, new) in [("endpoints", &draft.endpoints), ("ports", &draft.ports)] {
            if list(old, &format!("/{field}")) != new.as_slice() {
                patch[field] = json!(new);
            }
        }
        Some(Step::Patch { target: target(old), part: Part::Main, patch })
    }

    fn annotations(&self, old: &Value) -> Map<String, Value> {
        let mut annotations = old.as_object().cloned().unwrap_or_default();
        match self.trigger_time {
            Some(time) => annotations.insert(TRIGGER_TIME.to_owned(), json!(time)),
            None => annotations.remove(TRIGGER_TIME),
        };
        annotations
    }
}

/// The service's labels, and those that say whose slice it is.
pub(super) fn labels(service: &Value) -> Map<String, Value> {
    let mut labels = serving::labels(service);
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels.insert(SERVICE_NAME.to_owned(), service["metadata"]["name"].clone());
    labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
    labels
}

/// The slice as it was looked at: a plan for another state of it would lose endpoints.
pub(super) fn target(slice: &Value) -> Target {
    let own = |pointer: &str| text(slice, pointer).to_owned();
    Target {
        collection: SLICES,
        namespace: own("/metadata/namespace"),
        name: own("/metadata/name"),
        uid: own("/metadata/uid"),
        version: Some(own("/metadata/resourceVersion")),
    }
}
