//! Classes that objects belong to: a new pod, claim or ingress and the classes that are there → the object with its
//! class, or why it may not have that one.

use serde_json::{Value, json};

use crate::value::{existing, number, text, text_at};

/// The classes of pods that every server has.
pub fn system_priorities() -> [Value; 2] {
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": description,
        })
    };
    [
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
}

/// Gives a new pod the priority of its class, or of the default one. What the pod itself says must be the same.
///
/// # Errors
/// The reason why the pod is forbidden.
pub fn set_priority(pod: &mut Value, classes: &[Value]) -> Result<(), String> {
    let Some(spec) = existing(pod, "spec") else { return Ok(()) };
    let name = text(spec, "priorityClassName").to_owned();
    let class = if name.is_empty() {
        default_priority(classes)
    } else {
        let named = classes.iter().find(|class| text_at(class, "/metadata/name") == name);
        Some(named.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
    };
    let priority = class.map_or(0, |class| number(class, "value").unwrap_or(0));
    let policy = class.map_or("PreemptLowerPriority", |class| text(class, "preemptionPolicy"));
    if let Some(given) = number(spec, "priority").filter(|given| *given != priority) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        ));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| !policy.is_empty() && *given != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    if let Some(class) = class {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    spec["priority"] = json!(priority);
    if !policy.is_empty() {
        spec["preemptionPolicy"] = json!(policy);
    }
    Ok(())
}

/// Of several defaults the one with the lowest priority counts.
fn default_priority(classes: &[Value]) -> Option<&Value> {
    let defaults = classes.iter().filter(|class| class["globalDefault"] == json!(true));
    defaults.min_by_key(|class| number(class, "value").unwrap_or(0))
}

/// Why a class of pods may not be the default: another one is already.
pub fn second_default(class: &Value, classes: &[Value], is_new: bool) -> Option<String> {
    if class["globalDefault"] != json!(true) {
        return None;
    }
    let name = text_at(default_priority(classes)?, "/metadata/name");
    let other = is_new || name != text_at(class, "/metadata/name");
    other.then(|| format!("PriorityClass {name} is already marked as default. Only one default can exist"))
}

/// Whether a new claim names no class, so that it gets the default one.
pub fn wants_storage_class(claim: &Value) -> bool {
    let old = claim["metadata"]["annotations"].get("volume.beta.kubernetes.io/storage-class");
    claim["spec"]["storageClassName"].is_null() && old.is_none()
}

/// Whether a new ingress names no class, so that it gets the default one.
pub fn wants_ingress_class(ingress: &Value) -> bool {
    let old = ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class");
    ingress["spec"]["ingressClassName"].is_null() && old.is_none()
}

/// The newest class that is marked as the default.
pub fn default_class(classes: &[Value]) -> Option<&str> {
    const MARKS: [&str; 3] = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
        "ingressclass.kubernetes.io/is-default-class",
    ];
    let marked = |class: &&Value| MARKS.iter().any(|mark| class["metadata"]["annotations"][*mark] == json!("true"));
    let age = |class: &&Value| {
        let made = text_at(class, "/metadata/creationTimestamp").to_owned();
        (std::cmp::Reverse(made), text_at(class, "/metadata/name").to_owned())
    };
    let newest = classes.iter().filter(marked).min_by_key(age)?;
    Some(text_at(newest, "/metadata/name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, value: i64, default: bool) -> Value {
        json!({"metadata": {"name": name}, "value": value, "globalDefault": default, "preemptionPolicy": "Never"})
    }

    fn admitted(mut pod: Value, classes: &[Value]) -> Result<Value, String> {
        set_priority(&mut pod, classes).map(|()| pod)
    }

    #[test]
    fn a_pod_has_the_priority_of_its_class() {
        let pod = admitted(json!({"spec": {"priorityClassName": "high"}}), &[class("high", 7, false)]).unwrap();

        assert_eq!(pod["spec"], json!({"priorityClassName": "high", "priority": 7, "preemptionPolicy": "Never"}));
    }

    #[test]
    fn a_pod_without_a_class_gets_the_lowest_default() {
        let classes = [class("a", 9, true), class("b", 3, true), class("c", 1, false)];

        assert_eq!(admitted(json!({"spec": {}}), &classes).unwrap()["spec"]["priorityClassName"], "b");
        assert_eq!(
            admitted(json!({"spec": {}}), &[]).unwrap()["spec"],
            json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"})
        );
    }

    #[test]
    fn a_pod_may_not_contradict_its_class() {
        let classes = [class("high", 7, false)];
        let refused = |spec: Value| admitted(json!({"spec": spec}), &classes).unwrap_err();

        assert_eq!(refused(json!({"priorityClassName": "low"})), "no PriorityClass with name low was found");
        assert!(refused(json!({"priority": 5})).contains("(5) must not be provided in pod spec"));
        assert!(
            refused(json!({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}))
                .contains("computed Never")
        );
        assert!(admitted(json!({"spec": {"priorityClassName": "high", "priority": 7}}), &classes).is_ok());
    }

    #[test]
    fn only_one_class_of_pods_is_the_default() {
        let there = [class("a", 1, true)];

        assert!(second_default(&class("b", 1, true), &there, true).unwrap().contains("PriorityClass a is already"));
        assert!(second_default(&class("b", 1, true), &there, false).is_some());
        assert!(second_default(&class("a", 1, true), &there, false).is_none());
        assert!(second_default(&class("b", 1, false), &there, true).is_none());
    }

    #[test]
    fn of_several_default_classes_the_newest_counts() {
        let class = |name: &str, made: &str, mark: &str| {
            let annotations = json!({"storageclass.kubernetes.io/is-default-class": mark});
            json!({"metadata": {"name": name, "creationTimestamp": made, "annotations": annotations}})
        };
        let classes = [
            class("old", "2026-01-01T00:00:00Z", "true"),
            class("b", "2026-01-02T00:00:00Z", "true"),
            class("a", "2026-01-02T00:00:00Z", "true"),
            class("newest", "2026-01-03T00:00:00Z", "false"),
        ];

        assert_eq!(default_class(&classes), Some("a"));
        assert_eq!(default_class(&classes[3..]), None);
    }
}
