//! `PodDisruptionBudget`.

use portolan_schema::{FieldError, Path};
use serde_json::Value;

use crate::check::{Errors, at_most_all, count_or_percent, label_selector, one_of, showing};

/// One of two limits, and the pods it is about.
pub(crate) fn validate(budget: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &budget["spec"];
    let set = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if set("minAvailable") && set("maxUnavailable") {
        let error = FieldError::invalid(&path, spec, "minAvailable and maxUnavailable cannot be both set");
        let fields = [
            ("MinAvailable", &spec["minAvailable"]),
            ("Selector", &spec["selector"]),
            ("MaxUnavailable", &spec["maxUnavailable"]),
            ("UnhealthyPodEvictionPolicy", &spec["unhealthyPodEvictionPolicy"]),
        ];
        errors.push(showing(error, &fields));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        count_or_percent(errors, &spec[field], &path.field(field));
        at_most_all(errors, &spec[field], &path.field(field));
    }
    label_selector(errors, &spec["selector"], &path.field("selector"));
    one_of(errors, spec, "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"], &path);
}
