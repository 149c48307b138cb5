//! A failed pod, or the indexes that succeeded, in; what the policies of a Job make of it out.

use serde_json::Value;

use super::indexes::Indexes;
use crate::common::object::{given_number, list, name, namespace, number, text};

/// What a failed pod means for its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One failure more.
    Count,
    /// No failure at all.
    Ignore,
    /// The index has failed.
    FailIndex,
    /// The Job has failed, for this reason.
    FailJob(String),
}

/// By the first rule that matches.
pub(super) fn meaning(job: &Value, pod: &Value) -> Meaning {
    let mut rules = list(job, "/spec/podFailurePolicy/rules").iter().enumerate();
    rules.find_map(|(index, rule)| by_rule(index, rule, pod)).unwrap_or(Meaning::Count)
}

fn by_rule(index: usize, rule: &Value, pod: &Value) -> Option<Meaning> {
    let action = text(rule, "/action");
    let (space, pod_name) = (namespace(pod), name(pod));
    let message = if let Some(wanted) = rule.get("onExitCodes").filter(|wanted| wanted.is_object()) {
        let container = exited(pod, wanted)?;
        let code = number(container, "/state/terminated/exitCode");
        let container = name_of(container);
        format!(
            "Container {container} for pod {space}/{pod_name} failed with exit code {code} matching {action} rule at \
             index {index}"
        )
    } else {
        let condition = list(pod, "/status/conditions").iter().find(|condition| listed(rule, condition))?;
        let kind = text(condition, "/type");
        format!("Pod {space}/{pod_name} has condition {kind} matching {action} rule at index {index}")
    };
    match action {
        "Ignore" => Some(Meaning::Ignore),
        "FailIndex" => Some(Meaning::FailIndex),
        "Count" => Some(Meaning::Count),
        "FailJob" => Some(Meaning::FailJob(message)),
        _ => None,
    }
}

fn name_of(container: &Value) -> &str {
    text(container, "/name")
}

fn listed(rule: &Value, condition: &Value) -> bool {
    let same = |pattern: &Value| pattern["type"] == condition["type"] && pattern["status"] == condition["status"];
    list(rule, "/onPodConditions").iter().any(same)
}

/// The first container that ended as the rule says.
fn exited<'a>(pod: &'a Value, wanted: &Value) -> Option<&'a Value> {
    let named = text(wanted, "/containerName");
    let matches = |container: &&Value| {
        let code = given_number(container, "/state/terminated/exitCode").filter(|code| *code != 0);
        let listed = |code: i64| list(wanted, "/values").iter().any(|value| value.as_i64() == Some(code));
        let fits = |code: i64| match text(wanted, "/operator") {
            "In" => listed(code),
            "NotIn" => !listed(code),
            _ => false,
        };
        (named.is_empty() || name_of(container) == named) && code.is_some_and(fits)
    };
    let containers = list(pod, "/status/containerStatuses").iter();
    containers.chain(list(pod, "/status/initContainerStatuses")).find(matches)
}

/// The message of the first rule of the success policy that is met.
pub(super) fn success(job: &Value, completions: i64, succeeded: &Indexes) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let met = |rule: &Value| {
        let enough = |count: i64| given_number(rule, "/succeededCount").is_some_and(|wanted| count >= wanted);
        let Some(wanted) = rule.get("succeededIndexes").and_then(Value::as_str) else {
            return enough(succeeded.total());
        };
        let wanted = Indexes::parse(wanted, completions);
        let shared = wanted.shared(succeeded);
        !wanted.is_empty() && (shared == wanted.total() || enough(shared))
    };
    let rule = list(job, "/spec/successPolicy/rules").iter().position(met)?;
    Some(format!("Matched rules at index {rule}"))
}
