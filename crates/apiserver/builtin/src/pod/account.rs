//! A new pod and the account that it runs as → the pod with the account's token and pull secrets
//! (`plugin/pkg/admission/serviceaccount` of Kubernetes).

use serde_json::{Value, json};

use crate::value::{existing, list, text};

/// Where programs look for the token of their account.
const TOKEN_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the volume with the token is called; a suffix follows.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// A kubelet makes pods of files with it, which have no account.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// An hour and a little: tokens that are asked for so are valid for a year, with a warning (`WarnOnlyBoundTokenExpirationSeconds`).
const TOKEN_SECONDS: u64 = 60 * 60 + 7;

/// Where a new pod stands towards accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountNeed {
    /// It has the account of this name.
    Named(String),
    /// A kubelet's own pod, which has none.
    Nobody,
    /// A kubelet's own pod that wants one: why it is refused.
    Refused(&'static str),
}

/// Which account a new pod needs.
pub fn account_need(pod: &Value) -> AccountNeed {
    let named = text(&pod["spec"], "serviceAccountName");
    if pod["metadata"]["annotations"][MIRROR].is_string() {
        let has_token = list(&pod["spec"], "volumes")
            .iter()
            .flat_map(|volume| list(&volume["projected"], "sources"))
            .any(|source| !source["serviceAccountToken"].is_null());
        return match named {
            "" if has_token => AccountNeed::Refused("a mirror pod may not use ServiceAccountToken volume projections"),
            "" => AccountNeed::Nobody,
            _ => AccountNeed::Refused("a mirror pod may not reference service accounts"),
        };
    }
    AccountNeed::Named(if named.is_empty() { "default" } else { named }.to_owned())
}

/// Gives a new pod what its account has: the volume with its token where neither of them says otherwise, and its pull secrets where
/// the pod has none.
pub fn admit_account(pod: &mut Value, account: &Value, suffix: &str) {
    let Some(spec) = existing(pod, "spec") else {
        return;
    };
    let wish = |of: &Value| of["automountServiceAccountToken"].as_bool();
    if wish(spec).or(wish(account)).unwrap_or(true) {
        mount_token(spec, suffix);
    }
    let secrets = list(account, "imagePullSecrets");
    if list(spec, "imagePullSecrets").is_empty() && !secrets.is_empty() {
        spec["imagePullSecrets"] = secrets.iter().map(|secret| json!({"name": secret["name"]})).collect();
    }
}

/// Mounts the token into every container that has nothing else in its place.
fn mount_token(spec: &mut Value, suffix: &str) {
    let is_token = |volume: &&Value| text(volume, "name").starts_with(TOKEN_VOLUME);
    let there = list(spec, "volumes").iter().find(is_token).map(|volume| text(volume, "name").to_owned());
    let name = there.clone().unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}"));
    let mut is_needed = false;
    for field in ["initContainers", "containers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            if list(container, "volumeMounts").iter().any(|mount| text(mount, "mountPath") == TOKEN_FOLDER) {
                continue;
            }
            push(container, "volumeMounts", json!({"name": name, "readOnly": true, "mountPath": TOKEN_FOLDER}));
            is_needed = true;
        }
    }
    if is_needed && there.is_none() {
        push(spec, "volumes", token_volume(&name));
    }
}

fn push(object: &mut Value, field: &str, item: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => object[field] = json!([item]),
    }
}

/// The token, the certificate of the server, and the namespace.
fn token_volume(name: &str) -> Value {
    let certificate = json!({"key": "ca.crt", "path": "ca.crt"});
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [certificate]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "web"}, "spec": spec})
    }

    fn account() -> Value {
        json!({"metadata": {"name": "sailor"}, "imagePullSecrets": [{"name": "registry"}]})
    }

    #[test]
    fn every_container_gets_the_token_unless_something_else_is_in_its_place() {
        let own = json!([{"name": "own", "mountPath": TOKEN_FOLDER}]);
        let mut pod = pod(json!({
            "initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "b", "volumeMounts": own}],
        }));

        admit_account(&mut pod, &account(), "x2b4z");

        let mount = json!([{"name": "kube-api-access-x2b4z", "readOnly": true, "mountPath": TOKEN_FOLDER}]);
        let spec = &pod["spec"];
        assert_eq!(
            (&spec["initContainers"][0]["volumeMounts"], &spec["containers"][0]["volumeMounts"]),
            (&mount, &mount)
        );
        assert_eq!(spec["containers"][1]["volumeMounts"], own);
        assert_eq!(spec["volumes"][0]["name"], "kube-api-access-x2b4z");
        assert_eq!(spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"], 3607);
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
    }

    #[test]
    fn a_volume_for_the_token_that_is_there_already_is_used() {
        let volume = json!({"name": "kube-api-access-mine", "emptyDir": {}});
        let mut pod = pod(json!({"containers": [{"name": "a"}], "volumes": [volume]}));

        admit_account(&mut pod, &account(), "x2b4z");

        assert_eq!(pod["spec"]["volumes"], json!([volume]));
        assert_eq!(pod["spec"]["containers"][0]["volumeMounts"][0]["name"], "kube-api-access-mine");
    }

    #[test]
    fn the_pods_word_about_the_token_counts_before_the_accounts() {
        let mounts = |pod_says: Value, account_says: Value| {
            let mut pod = pod(json!({"containers": [{"name": "a"}], "automountServiceAccountToken": pod_says}));
            let account = json!({"metadata": {"name": "a"}, "automountServiceAccountToken": account_says});
            admit_account(&mut pod, &account, "x");
            !pod["spec"]["volumes"].is_null()
        };

        assert!(mounts(Value::Null, Value::Null) && mounts(json!(true), json!(false)));
        assert!(!mounts(Value::Null, json!(false)) && !mounts(json!(false), json!(true)));
    }

    #[test]
    fn a_kubelets_own_pods_have_no_account() {
        let mirror = |spec: Value| json!({"metadata": {"annotations": {MIRROR: "x"}}, "spec": spec});

        assert_eq!(account_need(&pod(json!({}))), AccountNeed::Named("default".to_owned()));
        assert_eq!(account_need(&pod(json!({"serviceAccountName": "a"}))), AccountNeed::Named("a".to_owned()));
        assert_eq!(account_need(&mirror(json!({}))), AccountNeed::Nobody);
        let named = account_need(&mirror(json!({"serviceAccountName": "a"})));
        assert_eq!(named, AccountNeed::Refused("a mirror pod may not reference service accounts"));
    }
}
