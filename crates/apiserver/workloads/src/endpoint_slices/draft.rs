//! Slices as they shall be → the steps that make them so.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{CONTROLLER, MANAGED_BY, SERVICE_NAME, SLICES};
use crate::Step;
use crate::common::diff::{map_patch, or_null};
use crate::common::kind::SERVICE;
use crate::common::object::{is_deleting, list, name, namespace, text};
use crate::common::owner::controller_reference;
use crate::common::step::{change, delete, exact_target};
use crate::serving::{TRIGGER_TIME, annotated, labels_of_endpoints};

/// A slice as it shall be.
pub(super) struct Draft {
    origin: DraftOrigin,
    family: String,
    ports: Vec<Value>,
    pub(super) endpoints: Vec<Value>,
}

/// What a draft is made of.
enum DraftOrigin {
    New,
    /// A slice with other endpoints, labels or hints.
    Changed(Arc<Value>),
    /// A slice that nobody needs any longer; nothing of it but its name is kept.
    Reused(Arc<Value>),
}

/// What changes among the slices of a service.
#[derive(Default)]
pub(super) struct SliceChanges {
    pub(super) create: Vec<Draft>,
    pub(super) update: Vec<Draft>,
    pub(super) delete: Vec<Arc<Value>>,
}

impl SliceChanges {
    pub(super) fn add(&mut self, other: Self) {
        self.create.extend(other.create);
        self.update.extend(other.update);
        self.delete.extend(other.delete);
    }

    /// Whether a slice is updated or deleted.
    pub(super) fn touches(&self, slice: &Arc<Value>) -> bool {
        let of = |draft: &Draft| matches!(&draft.origin, DraftOrigin::Changed(old) | DraftOrigin::Reused(old) if Arc::ptr_eq(old, slice));
        self.update.iter().any(of) || self.delete.iter().any(|gone| Arc::ptr_eq(gone, slice))
    }

    /// New slices take over those that would be deleted: one write instead of two.
    fn reuse(&mut self, service: &Value) {
        let mut kept = Vec::new();
        for slice in std::mem::take(&mut self.delete) {
            match self.create.pop() {
                Some(draft) if super::is_owned_by(&slice, service) => {
                    self.update.push(Draft { origin: DraftOrigin::Reused(slice), ..draft });
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
        Self { origin: DraftOrigin::New, family: family.to_owned(), ports, endpoints: Vec::new() }
    }

    pub(super) fn changing(slice: Arc<Value>) -> Self {
        Self {
            family: text(&slice, "/addressType").to_owned(),
            ports: list(&slice, "/ports").to_vec(),
            endpoints: list(&slice, "/endpoints").to_vec(),
            origin: DraftOrigin::Changed(slice),
        }
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self.origin, DraftOrigin::New)
    }

    /// Whether a slice already is as this one, which has no endpoints and no ports.
    pub(super) fn is_like(&self, slice: &Value, service: &Value) -> bool {
        super::is_owned_by(slice, service)
            && list(slice, "/ports").is_empty()
            && list(slice, "/endpoints").is_empty()
            && slice["metadata"]["labels"] == labels(service)
    }
}

/// The service that slices are for, and when the change happened that they follow.
pub(super) struct WantedService<'a> {
    pub(super) service: &'a Value,
    pub(super) trigger_time: Option<&'a str>,
}

impl WantedService<'_> {
    /// Creations first, deletions last: no endpoint is missing in between.
    pub(super) fn steps(&self, mut changes: SliceChanges) -> Vec<Step> {
        changes.reuse(self.service);
        let mut steps = Vec::new();
        if !is_deleting(self.service) {
            steps.extend(changes.create.iter().map(|draft| self.create(draft)));
        }
        steps.extend(changes.update.iter().filter_map(|draft| self.update(draft)));
        steps.extend(changes.delete.iter().map(|slice| delete(exact_target(SLICES, slice))));
        steps
    }

    fn create(&self, draft: &Draft) -> Step {
        let owner = controller_reference(self.service, &SERVICE);
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "generateName": format!("{}-", name(self.service)), "namespace": namespace(self.service),
                "labels": labels(self.service), "annotations": self.annotations(&Value::Null), "ownerReferences": [owner],
            },
            "addressType": draft.family, "endpoints": draft.endpoints, "ports": draft.ports,
        });
        Step::Create { collection: SLICES, object }
    }

    fn update(&self, draft: &Draft) -> Option<Step> {
        let (old, annotations) = match &draft.origin {
            DraftOrigin::New => return None,
            DraftOrigin::Changed(old) => (old, self.annotations(&old["metadata"]["annotations"])),
            DraftOrigin::Reused(old) => (old, self.annotations(&Value::Null)),
        };
        let mut metadata = Map::new();
        for (field, new) in [("labels", labels(self.service)), ("annotations", annotations)] {
            metadata.extend(map_patch(&old["metadata"][field], &new).map(|patch| (field.to_owned(), patch)));
        }
        let mut patch = json!({"metadata": metadata});
        for (field, new) in [("endpoints", &draft.endpoints), ("ports", &draft.ports)] {
            if list(old, &format!("/{field}")) != new.as_slice() {
                patch[field] = or_null(new.clone());
            }
        }
        // Another state of the slice may have other endpoints, which this would lose.
        Some(change(exact_target(SLICES, old), patch))
    }

    fn annotations(&self, old: &Value) -> Value {
        annotated(old, &[(TRIGGER_TIME, self.trigger_time)])
    }
}

/// The service's labels, and those that say whose slice it is.
pub(super) fn labels(service: &Value) -> Value {
    let mut labels = labels_of_endpoints(service);
    labels.insert(SERVICE_NAME.to_owned(), json!(name(service)));
    labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
    Value::Object(labels)
}
