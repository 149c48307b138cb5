//! A pod's status as a kubelet or a runner reports it → what is wrong with it.

use std::net::IpAddr;

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::ip::address;
use crate::meta::invalid;
use crate::names;
use crate::value::{is_empty, list, number, text, text_at};

/// Conditions that need no domain in their type.
const OWN_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// The class never changes; a report that leaves it out keeps it.
pub(crate) fn keep_quality_class(new: &mut Value, old: &Value) {
    if is_empty(&new["status"]["qosClass"]) && !old["status"]["qosClass"].is_null() {
        new["status"]["qosClass"] = old["status"]["qosClass"].clone();
    }
}

/// Conditions, class, containers that came back from their end, and addresses.
pub(crate) fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("status");
    let (status, before) = (&new["status"], &old["status"]);
    validate_conditions(status, &path.field("conditions"), errors);
    validate_nomination(new, old, &path.field("nominatedNodeName"), errors);
    if status["qosClass"] != before["qosClass"] {
        errors.push(FieldError::invalid(&path.field("qosClass"), &status["qosClass"], "field is immutable"));
    }
    for (field, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        let states = States { old: list(before, field), new: list(status, field) };
        states.validate(&old["spec"], containers, &path.field(field), errors);
    }
    validate_addresses(status, "podIPs", &path.field("podIPs"), errors);
    validate_host(status, &path.field("hostIPs"), errors);
}

fn validate_conditions(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = path.index(index);
        if number(condition, "observedGeneration").is_some_and(|generation| generation < 0) {
            let detail = "must be a non-negative integer";
            errors.push(FieldError::invalid(
                &path.field("observedGeneration"),
                &condition["observedGeneration"],
                detail,
            ));
        }
        let kind = text(condition, "type");
        if !OWN_CONDITIONS.contains(&kind) {
            invalid(errors, &path.field("Type"), kind, names::qualified_name(kind));
        }
    }
}

fn validate_nomination(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, before) = (text_at(new, "/status/nominatedNodeName"), text_at(old, "/status/nominatedNodeName"));
    if name == before || name.is_empty() {
        return;
    }
    invalid(errors, path, name, names::dns_subdomain(name));
    if !text_at(old, "/spec/nodeName").is_empty() {
        errors.push(FieldError::forbidden(path, "may not be set on pods that are already bound to a node"));
    }
}

/// What is reported of containers, before and now.
struct States<'a> {
    old: &'a [Value],
    new: &'a [Value],
}

impl States<'_> {
    /// A container that ended runs again only where something restarts it.
    fn validate(&self, spec: &Value, containers: &str, path: &Path<'_>, errors: &mut Errors) {
        for (index, before) in self.old.iter().enumerate() {
            let ended = &before["state"]["terminated"];
            let now = self.new.iter().find(|status| status["name"] == before["name"]);
            let came_back = !ended.is_null() && now.is_some_and(|now| now["state"]["terminated"].is_null());
            let container = list(spec, containers).iter().find(|container| container["name"] == before["name"]);
            let restarts = container.is_some_and(|c| is_restarted(c, spec, number(ended, "exitCode").unwrap_or(0)));
            if came_back && !restarts {
                let detail = "may not be transitioned to non-terminated state";
                errors.push(FieldError::forbidden(&path.index(index).field("state"), detail));
            }
        }
    }
}

/// By the container's own rules, its own policy, or the pod's.
fn is_restarted(container: &Value, spec: &Value, exit_code: i64) -> bool {
    let policy = match text(container, "restartPolicy") {
        "" => text(spec, "restartPolicy"),
        own => own,
    };
    let ruled = |rule: &Value| {
        let among = rule["exitCodes"]["values"].as_array().is_some_and(|v| v.contains(&json!(exit_code)));
        match text(&rule["exitCodes"], "operator") {
            "In" => among,
            "NotIn" => !among,
            _ => false,
        }
    };
    let rules = list(container, "restartPolicyRules");
    match policy {
        _ if rules.iter().any(|rule| ruled(rule) && text(rule, "action") == "Restart") => true,
        "Always" => true,
        "OnFailure" => exit_code != 0,
        _ => false,
    }
}

/// Each is an address, and there is at most one of each family.
fn validate_addresses(status: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let items = list(status, field);
    let parsed: Vec<Option<IpAddr>> =
        items.iter().enumerate().map(|(index, item)| address(errors, text(item, "ip"), &path.index(index))).collect();
    let dual = matches!(parsed.as_slice(), [Some(one), Some(two)] if one.is_ipv4() != two.is_ipv4());
    if items.len() > 1 && !dual {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(path, &status[field], detail));
    }
}

/// The host's addresses begin with the one that stands alone.
fn validate_host(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(first) = list(status, "hostIPs").first() else { return };
    if text(first, "ip") != text(status, "hostIP") {
        errors.push(FieldError::invalid(&path.index(0).field("ip"), &first["ip"], "must be equal to `hostIP`"));
    }
    validate_addresses(status, "hostIPs", path, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{keep_quality_class, validate_status};

    fn pod(status: Value) -> Value {
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a"}, {"name": "b", "restartPolicy": "Always"}]}, "status": status})
    }

    fn complaints(new: Value, old: Value) -> Vec<String> {
        let mut errors = Vec::new();
        validate_status(&pod(new), &pod(old), &mut errors);
        errors.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn what_a_kubelet_reports_is_accepted() {
        let running = json!({
            "phase": "Running", "podIP": "127.77.0.1", "podIPs": [{"ip": "127.77.0.1"}, {"ip": "fd00::1"}],
            "hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodReadyToStartContainers", "status": "True"}],
            "containerStatuses": [{"name": "a", "state": {"running": {}}}],
        });

        assert_eq!(complaints(running, json!({"phase": "Pending"})), Vec::<String>::new());
    }

    #[test]
    fn only_containers_that_are_restarted_come_back_from_their_end() {
        let ended =
            |name: &str| json!({"containerStatuses": [{"name": name, "state": {"terminated": {"exitCode": 0}}}]});
        let again = |name: &str| json!({"containerStatuses": [{"name": name, "state": {"running": {}}}]});

        assert_eq!(complaints(again("a"), ended("a")), ["status.containerStatuses[0].state"]);
        assert_eq!(complaints(again("b"), ended("b")), Vec::<String>::new());
    }

    #[test]
    fn addresses_are_one_of_each_family() {
        let status =
            json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "hostIP": "10.0.0.9", "hostIPs": [{"ip": "x"}]});

        assert_eq!(complaints(status, json!({})), ["status.podIPs", "status.hostIPs[0].ip", "status.hostIPs[0]"]);
    }

    #[test]
    fn the_class_stays() {
        let mut new = pod(json!({"phase": "Running"}));

        keep_quality_class(&mut new, &pod(json!({"qosClass": "Burstable"})));

        assert_eq!(new["status"]["qosClass"], "Burstable");
        assert_eq!(complaints(json!({"qosClass": "x"}), json!({"qosClass": "y"})), ["status.qosClass"]);
    }
}
