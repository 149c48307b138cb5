//! `HorizontalPodAutoscaler`.

use serde_json::{Value, json};

use crate::value::{default, existing, is_empty, object};

/// Replicas, the metric and the pace of scaling.
pub(crate) fn defaults(autoscaler: &mut Value) {
    let Some(spec) = existing(autoscaler, "spec") else {
        return;
    };
    default(spec, "minReplicas", 1);
    if is_empty(&spec["metrics"]) {
        spec["metrics"] = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    }
    let Some(behavior) = existing(spec, "behavior") else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    if let Some(up) = object(behavior, "scaleUp") {
        default(up, "stabilizationWindowSeconds", 0);
        default(
            up,
            "policies",
            json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]),
        );
        default(up, "selectPolicy", "Max");
    }
    if let Some(down) = object(behavior, "scaleDown") {
        default(down, "policies", json!([percent]));
        default(down, "selectPolicy", "Max");
    }
}
