//! A service with a selector → the `EndpointSlice`s that name its pods.
//!
//! As the endpointslice controller of kube-controller-manager makes them: a slice for every address family and set of
//! ports, at most 100 endpoints in each. Slices that are there are filled before new ones are made, and as few as possible are
//! written. Pods whose node is not known are left out, unless the service publishes pods that are not ready.
//! Hints by the `topology-mode` annotation are not made; those by `spec.trafficDistribution` are.

mod draft;
pub(crate) mod endpoint;
mod fill;
mod hints;
pub(crate) mod ports;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::common::kind::{NODES, PODS, SERVICE, SERVICES};
use crate::common::object::{is_deleting, label, list, name_of, namespace, owners, text, uid};
use crate::common::step::{delete, exact_target};
use crate::serving::{self, has_selector, services_of};
use crate::{Controller, ObjectName, Plan, View};
use draft::{Draft, SliceChanges, WantedService};
use endpoint::EndpointIdentity;
use fill::Endpoints;

pub(crate) const SLICES: &str = "endpointslices.discovery.k8s.io";
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// The slices of services.
pub(crate) struct EndpointSlices;

impl Controller for EndpointSlices {
    fn component(&self) -> &'static str {
        "endpoint-slice-controller"
    }

    fn collection(&self) -> &'static str {
        SERVICES
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS, NODES, SLICES]
    }

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<ObjectName> {
        match collection {
            PODS => services_of(view, object),
            NODES => on_node(view, object),
            _ => service_of(object).into_iter().collect(),
        }
    }

    fn plan(&self, view: &dyn View, service: &Value) -> Plan {
        if !has_selector(service) {
            return Plan::default();
        }
        let pods = serving::pods(view, service);
        let there = slices_of(view, service);
        let is_known = |pod: &Value| endpoint::is_known(&there, pod);
        let trigger_time = serving::trigger_time(service, &pods, there.is_empty(), is_known);
        let wanted = WantedService { service, trigger_time };
        let families = families(service);
        let mut steps = Vec::new();
        for family in &families {
            let own: Vec<Arc<Value>> = there.iter().filter(|slice| slice["addressType"] == *family).cloned().collect();
            steps.extend(wanted.steps(plan_family(view, service, &pods, &own, family)));
        }
        let foreign = there.iter().filter(|slice| !families.contains(&text(slice, "/addressType")));
        steps.extend(foreign.map(|slice| delete(exact_target(SLICES, slice))));
        steps.into_iter().collect()
    }
}

/// The service that a slice of ours belongs to.
fn service_of(slice: &Value) -> Option<ObjectName> {
    let name = label(slice, SERVICE_NAME).filter(|_| label(slice, MANAGED_BY) == Some(CONTROLLER))?;
    Some(ObjectName { namespace: namespace(slice).to_owned(), name: name.to_owned() })
}

/// The services of the pods on a node.
fn on_node(view: &dyn View, node: &Value) -> Vec<ObjectName> {
    let mut names: Vec<ObjectName> = Vec::new();
    view.visit(PODS, "", &mut |pod| {
        if pod["spec"]["nodeName"] == node["metadata"]["name"] {
            names.extend(services_of(view, pod));
        }
    });
    names.sort();
    names.dedup();
    names
}

/// The slices that are ours and stay.
fn slices_of(view: &dyn View, service: &Value) -> Vec<Arc<Value>> {
    let all = slices_by(view, CONTROLLER, &name_of(service));
    all.into_iter().filter(|slice| !is_deleting(slice)).collect()
}

/// The slices that a controller made under a name.
pub(crate) fn slices_by(view: &dyn View, controller: &str, name: &ObjectName) -> Vec<Arc<Value>> {
    let marks = [(SERVICE_NAME, name.name.as_str()), (MANAGED_BY, controller)];
    let marks = marks.map(|(key, value)| (key.to_owned(), Value::from(value)));
    view.labelled(SLICES, &name.namespace, &Map::from_iter(marks))
}

/// The address families of a service.
fn families(service: &Value) -> Vec<&str> {
    let given: Vec<&str> = list(service, "/spec/ipFamilies").iter().filter_map(Value::as_str).collect();
    match text(service, "/spec/clusterIP") {
        _ if !given.is_empty() => given,
        "" | "None" => vec!["IPv4", "IPv6"],
        address if address.contains(':') => vec!["IPv6"],
        _ => vec!["IPv4"],
    }
}

/// What changes among the slices of one family.
fn plan_family(
    view: &dyn View,
    service: &Value,
    pods: &[Arc<Value>],
    there: &[Arc<Value>],
    family: &str,
) -> SliceChanges {
    let (owned, strays): (Vec<_>, Vec<_>) = there.iter().cloned().partition(|slice| is_owned_by(slice, service));
    let mut by_ports: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
    for slice in owned {
        by_ports.entry(ports::key(list(&slice, "/ports"))).or_default().push(slice);
    }
    let mut changes = SliceChanges { delete: strays, ..SliceChanges::default() };
    for (key, wanted) in endpoints_by_ports(view, service, pods, family) {
        changes.add(fill::fill(service, by_ports.remove(&key).unwrap_or_default(), wanted, family));
    }
    changes.delete.extend(by_ports.into_values().flatten());
    if there.len() == changes.delete.len() && changes.create.is_empty() {
        keep_one(service, &mut changes, family);
    }
    hints::add(service, there, &mut changes);
    changes
}

/// A service without endpoints has one slice that says so.
fn keep_one(service: &Value, changes: &mut SliceChanges, family: &str) {
    let empty = Draft::new(family, Vec::new());
    match changes.delete.as_slice() {
        [only] if empty.is_like(only, service) => changes.delete.clear(),
        _ => changes.create.push(empty),
    }
}

/// The endpoints that the service's pods make, by the ports that they serve.
fn endpoints_by_ports(
    view: &dyn View,
    service: &Value,
    pods: &[Arc<Value>],
    family: &str,
) -> BTreeMap<String, Endpoints> {
    let mut all: BTreeMap<String, Endpoints> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| serving::has_address(pod)) {
        let ports = ports::of(service, pod);
        let entry = all.entry(ports::key(&ports)).or_insert_with(|| Endpoints { ports, ..Endpoints::default() });
        let node = view.get(NODES, "", text(pod, "/spec/nodeName"));
        if node.is_none() && service["spec"]["publishNotReadyAddresses"] != true {
            continue;
        }
        let endpoint = endpoint::of(pod, node.as_deref(), service, family);
        if !list(&endpoint, "/addresses").is_empty() {
            entry.endpoints.insert(EndpointIdentity::of(&endpoint), endpoint);
        }
    }
    all
}

fn is_owned_by(slice: &Value, service: &Value) -> bool {
    let owns = |owner: &Value| {
        owner["uid"] == uid(service) && owner["kind"] == SERVICE.name && owner["apiVersion"] == SERVICE.api_version
    };
    owners(slice).iter().any(owns)
}
