//! A pod's spec → the spec without what a real server leaves out by default: features that are not on yet.

use serde_json::Value;

use crate::value::{existing, is_empty, list_mut, remove};

/// Takes out the fields of features that are off.
pub(crate) fn drop_disabled(spec: &mut Value) {
    remove(spec, "schedulingGroup");
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        for container in list_mut(spec, field) {
            drop_stop_signal(container);
        }
    }
    for volume in list_mut(spec, "volumes") {
        if let Some(projected) = existing(volume, "projected") {
            for source in list_mut(projected, "sources") {
                remove(source, "clusterTrustBundle");
                remove(source, "podCertificate");
            }
        }
    }
}

fn drop_stop_signal(container: &mut Value) {
    let Some(lifecycle) = existing(container, "lifecycle") else { return };
    if remove(lifecycle, "stopSignal").is_some() && is_empty(lifecycle) {
        remove(container, "lifecycle");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lifecycle_that_only_had_a_signal_goes_with_it() {
        let mut spec = json!({"containers": [
            {"lifecycle": {"stopSignal": "SIGTERM"}},
            {"lifecycle": {"stopSignal": "SIGTERM", "preStop": {"sleep": {"seconds": 1}}}},
            {"lifecycle": {}},
        ]});

        drop_disabled(&mut spec);

        let rest = json!([{}, {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}, {"lifecycle": {}}]);
        assert_eq!(spec["containers"], rest);
    }
}
