//! `HorizontalPodAutoscaler`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, required};
use crate::meta::invalid;
use crate::names;
use crate::value::{default, existing, is_empty, list, number, object, text};

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
        default(up, "policies", json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]));
        default(up, "selectPolicy", "Max");
    }
    if let Some(down) = object(behavior, "scaleDown") {
        default(down, "policies", json!([percent]));
        default(down, "selectPolicy", "Max");
    }
}

/// Limits, and what is scaled.
pub(crate) fn validate(autoscaler: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &autoscaler["spec"];
    let least = number(spec, "minReplicas").unwrap_or(1);
    let most = number(spec, "maxReplicas").unwrap_or(0);
    if least < 1 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.field("minReplicas"), &json!(least), detail));
    }
    let measured = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == 0 && !list(spec, "metrics").iter().any(measured) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&path.field("metrics"), detail));
    }
    if most < 1 {
        errors.push(FieldError::required(&path.field("maxReplicas"), "must be set and greater than 0"));
    }
    if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path.field("maxReplicas"), &json!(most), detail));
    }
    let target = &spec["scaleTargetRef"];
    let path = path.field("scaleTargetRef");
    for field in ["kind", "name"] {
        if required(errors, target, field, &path) {
            let value = text(target, field);
            invalid(errors, &path.field(field), value, names::path_segment(value));
        }
    }
    let api_version = text(target, "apiVersion");
    let core_kinds = text(target, "kind") == "ReplicationController" && api_version == "v1";
    if !api_version.contains('/') && !core_kinds {
        let detail = "apiVersion must specify API group";
        errors.push(FieldError::invalid(&path.field("apiVersion"), &json!(api_version), detail));
    }
}
