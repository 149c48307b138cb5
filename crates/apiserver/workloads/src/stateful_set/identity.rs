//! A `StatefulSet` and an ordinal in, the pod that has this place out; and a pod in, its place out.

use serde_json::{Value, json};

use super::claims::claim_name;
use crate::common::kind::STATEFUL_SET;
use crate::common::object::{given_number, label, list, name, number, text};
use crate::common::pod::from_template;

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
const REVISION: &str = "controller-revision-hash";

/// The name before the last dash, and the number after it.
pub(super) fn parent_and_ordinal(pod: &str) -> Option<(&str, i32)> {
    let (parent, digits) = pod.rsplit_once('-')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain).map(|ordinal| (parent, ordinal))
}

/// The place of a pod in its set.
pub(super) fn ordinal(pod: &Value) -> Option<i64> {
    parent_and_ordinal(name(pod)).map(|(_, ordinal)| i64::from(ordinal))
}

/// Whether the name of a pod makes it a member of the set.
pub(super) fn is_member(set: &Value, pod: &Value) -> bool {
    parent_and_ordinal(name(pod)).is_some_and(|(parent, _)| parent == name(set))
}

/// How many pods a set wants.
pub(super) fn wanted(set: &Value) -> i64 {
    given_number(set, "/spec/replicas").unwrap_or(1)
}

/// The ordinals that a set wants.
pub(super) fn ordinals(set: &Value) -> std::ops::Range<i64> {
    let start = number(set, "/spec/ordinals/start");
    start..start + wanted(set)
}

/// Whether a pod has one of these.
pub(super) fn in_range(set: &Value, pod: &Value) -> bool {
    ordinal(pod).is_some_and(|ordinal| ordinals(set).contains(&ordinal))
}

/// The revision that a pod was made by.
pub(super) fn revision_of(pod: &Value) -> &str {
    label(pod, REVISION).unwrap_or_default()
}

/// Whether name and labels of a pod are those of its place.
pub(super) fn identity_matches(set: &Value, pod: &Value) -> bool {
    is_member(set, pod) && label(pod, POD_NAME) == Some(name(pod))
}

/// The labels of a place.
pub(super) fn identity_labels(pod: &Value) -> Value {
    json!({POD_NAME: name(pod), POD_INDEX: ordinal(pod).unwrap_or_default().to_string()})
}

/// The pod of a place, made by a revision of the template.
pub(super) fn new_pod(set: &Value, revision: &str, template: &Value, ordinal: i64) -> Value {
    let mut pod = from_template(template, set, &STATEFUL_SET);
    let pod_name = format!("{}-{ordinal}", name(set));
    pod["metadata"]["name"] = json!(pod_name);
    pod["metadata"]["labels"][POD_NAME] = json!(pod_name);
    pod["metadata"]["labels"][POD_INDEX] = json!(ordinal.to_string());
    pod["metadata"]["labels"][REVISION] = json!(revision);
    pod["spec"]["hostname"] = json!(pod_name);
    let service = text(set, "/spec/serviceName");
    if service.is_empty() {
        pod["spec"].as_object_mut().map(|spec| spec.remove("subdomain"));
    } else {
        pod["spec"]["subdomain"] = json!(service);
    }
    mount_claims(set, &mut pod, ordinal);
    pod
}

/// Volumes of the claims of a place; they win over volumes of the template with the same name.
fn mount_claims(set: &Value, pod: &mut Value, ordinal: i64) {
    let templates = list(set, "/spec/volumeClaimTemplates");
    if templates.is_empty() {
        return;
    }
    let volume = |template: &Value| {
        let claim = json!({"claimName": claim_name(set, template, ordinal)});
        json!({"name": name(template), "persistentVolumeClaim": claim})
    };
    let mut volumes: Vec<Value> = templates.iter().map(volume).collect();
    let claimed = |volume: &&Value| templates.iter().any(|template| volume["name"] == name(template));
    volumes.extend(list(pod, "/spec/volumes").iter().filter(|volume| !claimed(volume)).cloned());
    pod["spec"]["volumes"] = json!(volumes);
}
