//! A pod's containers → its quality-of-service class.

use serde_json::Value;

use crate::quantity::Quantity;
use crate::value::{entries, list_at};

/// `Guaranteed`, `Burstable` or `BestEffort`, by requests and limits for CPU and memory.
pub(crate) fn quality_class(pod: &Value) -> &'static str {
    let containers = list_at(pod, "/spec/containers").iter().chain(list_at(pod, "/spec/initContainers"));
    let of_containers: Vec<&Value> = containers.map(|container| &container["resources"]).collect();
    let whole = &pod["spec"]["resources"];
    // What the pod asks for as a whole counts instead of what its containers do.
    let asked = if whole.is_null() { of_containers } else { vec![whole] };
    let mut any = false;
    let mut all_limited = true;
    for resources in asked {
        let limits = computed(&resources["limits"]);
        let requests = computed(&resources["requests"]);
        any |= !limits.is_empty() || !requests.is_empty();
        let equal = limits.len() == 2
            && requests.iter().all(|(name, request)| limits.iter().any(|(n, limit)| n == name && limit == request));
        all_limited &= equal;
    }
    match (any, all_limited) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// CPU and memory above zero.
fn computed(resources: &Value) -> Vec<(&str, Quantity)> {
    entries(resources)
        .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
        .filter_map(|(name, value)| Some((name.as_str(), Quantity::from_value(value)?)))
        .filter(|(_, quantity)| !quantity.is_zero() && !quantity.is_negative())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        let both = json!({"cpu": "1", "memory": "1Gi"});

        assert_eq!(quality_class(&pod(json!({}))), "BestEffort");
        assert_eq!(quality_class(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(quality_class(&pod(json!({"requests": both, "limits": both}))), "Guaranteed");
    }
}
