//! Volumes and mounts of a user's → whether pods may have them. What a user writes here runs beside every zone of a server, so nothing
//! of the node gets in, and nothing lies over what the server itself has.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use serde_json::Value;

use crate::finding::Finding;

/// Where mounts may be.
const PLACES: [&str; 2] = ["/data/", "/var/log/bind/"];
/// What names of a user's objects begin with that pods may mount.
const PREFIX: &str = "bindy-";
/// Volumes that pods have by themselves.
pub(crate) const OWN_VOLUMES: [&str; 7] =
    ["zones", "cache", "config", "rndc-key", "named-conf", "named-conf-options", "named-conf-zones"];

/// What is wrong with volumes and mounts.
pub fn pod_shape(volumes: &[Value], mounts: &[Value], field: &str, found: &mut Vec<Finding>) {
    let names = checked_volumes(volumes, field, found);
    let mut paths = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let field = format!("{field}.volumeMounts[{index}]");
        let Ok(mount) = serde_json::from_value::<VolumeMount>(mount.clone()) else {
            found.push(Finding::refused(field, "is no mount; write name and mountPath, as in a pod"));
            continue;
        };
        if !names.contains(&mount.name) {
            found.push(Finding::refused(format!("{field}.name"), "names none of the volumes beside it"));
        }
        check_paths(&mount, &field, found);
        if !paths.insert(mount.mount_path.trim_end_matches('/').to_owned()) {
            found.push(Finding::refused(format!("{field}.mountPath"), "is mounted twice"));
        }
    }
}

fn checked_volumes(volumes: &[Value], field: &str, found: &mut Vec<Finding>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let field = format!("{field}.volumes[{index}]");
        let Ok(typed) = serde_json::from_value::<Volume>(volume.clone()) else {
            found.push(Finding::refused(field, "is no volume; write name and its source, as in a pod"));
            continue;
        };
        if let Some(message) = name_trouble(&typed.name, &names) {
            found.push(Finding::refused(format!("{field}.name"), message));
        }
        if let Some(message) = source_trouble(volume, &typed) {
            found.push(Finding::refused(field, message));
        }
        names.insert(typed.name);
    }
    names
}

fn name_trouble(name: &str, others: &BTreeSet<String>) -> Option<&'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label =
        (1..=63).contains(&name.len()) && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-');
    match () {
        () if !is_label => Some("is no name of a volume; write letters in lower case, digits and hyphens"),
        () if OWN_VOLUMES.contains(&name) => {
            Some("is the name of a volume that pods have by themselves; choose another")
        }
        () if others.contains(name) => Some("is the name of two volumes"),
        () => None,
    }
}

/// A volume has its name and one source of those that are allowed.
fn source_trouble(raw: &Value, volume: &Volume) -> Option<String> {
    let sources: Vec<&String> = raw.as_object()?.keys().filter(|key| *key != "name").collect();
    let [source] = sources.as_slice() else {
        return Some("has to have one source: emptyDir, configMap, secret or persistentVolumeClaim".to_owned());
    };
    let object = match source.as_str() {
        "emptyDir" => return None,
        "configMap" => volume.config_map.as_ref().map(|source| source.name.clone()),
        "secret" => volume.secret.as_ref().map(|source| source.secret_name.clone().unwrap_or_default()),
        "persistentVolumeClaim" => volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone()),
        other => {
            let other = portolan_core::text::shorten(other, 40);
            return Some(format!("{other} is not allowed; use emptyDir, configMap, secret or persistentVolumeClaim"));
        }
    };
    let fits = object.as_deref().is_some_and(|name| name.starts_with(PREFIX));
    (!fits).then(|| format!("the name of what a {source} volume holds has to begin with {PREFIX}"))
}

fn check_paths(mount: &VolumeMount, field: &str, found: &mut Vec<Finding>) {
    let climbs = |path: &str| path.split('/').any(|part| part == "..");
    let path = mount.mount_path.as_str();
    let below = |place: &str| path.strip_prefix(place).is_some_and(|rest| !rest.is_empty());
    if !PLACES.into_iter().any(below) || climbs(path) || path.contains([':', '\0', '\n']) {
        let shown = portolan_core::text::shorten(path, 80);
        found.push(Finding::refused(
            format!("{field}.mountPath"),
            format!("{shown:?} is not allowed; mount below /data/ or /var/log/bind/, without .."),
        ));
    }
    for (name, path) in [("subPath", &mount.sub_path), ("subPathExpr", &mount.sub_path_expr)] {
        if path.as_deref().is_some_and(|path| climbs(path) || path.starts_with('/')) {
            found.push(Finding::refused(format!("{field}.{name}"), "has to stay within the volume, without .."));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(volumes: Value, mounts: Value) -> String {
        let list = |value: Value| value.as_array().cloned().unwrap();
        let mut found = Vec::new();
        pod_shape(&list(volumes), &list(mounts), "spec", &mut found);
        crate::finding::sentence(&found, crate::Weight::Refused).unwrap_or_default()
    }

    fn mounted(path: &str) -> String {
        said(json!([{"name": "data", "emptyDir": {}}]), json!([{"name": "data", "mountPath": path}]))
    }

    #[test]
    fn what_a_user_may_mount_is_taken() {
        let volumes = json!([
            {"name": "a", "emptyDir": {"medium": "Memory"}}, {"name": "b", "configMap": {"name": "bindy-extra"}},
            {"name": "c", "secret": {"secretName": "bindy-tls"}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "bindy-logs"}},
        ]);

        assert_eq!(said(volumes, json!([{"name": "d", "mountPath": "/var/log/bind/query", "subPath": "a/b"}])), "");
    }

    #[test]
    fn scenario_65_nothing_of_the_node_and_no_way_up() {
        for (volume, sentence) in [
            (json!({"name": "a", "hostPath": {"path": "/"}}), "hostPath is not allowed"),
            (json!({"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}), "one source"),
            (json!({"name": "a"}), "one source"),
            (json!({"name": "a", "secret": {"secretName": "cluster-admin"}}), "begin with bindy-"),
            (json!({"name": "a", "projected": {"sources": []}}), "projected is not allowed"),
            (json!({"name": "cache", "emptyDir": {}}), "by themselves"),
            (json!({"name": "A b", "emptyDir": {}}), "is no name"),
            (json!(7), "is no volume"),
            (json!({"name": "a", "configMap": 7}), "is no volume"),
        ] {
            let said = said(json!([volume]), json!([]));
            assert!(said.contains(sentence), "{volume} said {said:?}");
        }
        for path in ["/data/../etc", "/data/", "/etc", "data/x", "/data/x/..", "/var/log/bindings", "/data/a:b"] {
            assert!(mounted(path).contains("mount below /data/"), "{path}");
        }
        assert_eq!((mounted("/data/x"), mounted("/var/log/bind/..data")), (String::new(), String::new()));
    }

    #[test]
    fn mounts_name_their_volumes_and_stay_within_them() {
        let volumes = json!([{"name": "a", "emptyDir": {}}]);
        for (mounts, sentence) in [
            (json!([{"name": "b", "mountPath": "/data/x"}]), "names none"),
            (json!([{"name": "a", "mountPath": "/data/x", "subPath": "../y"}]), "within the volume"),
            (json!([{"name": "a", "mountPath": "/data/x", "subPathExpr": "a/../../b"}]), "within the volume"),
            (json!([{"name": "a", "mountPath": "/data/x"}, {"name": "a", "mountPath": "/data/x/"}]), "mounted twice"),
            (json!(["a"]), "is no mount"),
        ] {
            let said = said(volumes.clone(), mounts.clone());
            assert!(said.contains(sentence), "{mounts} said {said:?}");
        }
    }
}
