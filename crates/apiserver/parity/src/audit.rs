//! The audit log of the real API server → what each account asked for, and what it was answered.
//!
//! Only requests of service accounts are written down: everybody else here is an administrator.

use std::path::Path;

use serde_json::Value;

/// What kube-apiserver writes down.
pub(crate) const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
  "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}]
}"#;

/// A request of a service account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Audited {
    /// The account, as `namespace:name`.
    pub account: String,
    /// Such as `get`, `list` or `patch`.
    pub verb: String,
    /// The group, empty for the core one.
    pub group: String,
    /// The resource, and its subresource after a slash. For what is no resource, the path.
    pub resource: String,
    /// The namespace; none asks for all, or for what is in none.
    pub namespace: Option<String>,
    /// The name, if one was asked for.
    pub name: Option<String>,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// All requests that were written down so far.
pub(crate) fn read(log: &Path) -> std::io::Result<Vec<Audited>> {
    let text = match std::fs::read_to_string(log) {
        // Nothing was written down yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    // The last line may still be written.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter_map(|event| audited(&event)).collect())
}

fn audited(event: &Value) -> Option<Audited> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let resource = match (text("/objectRef/resource"), text("/objectRef/subresource")) {
        (Some(resource), Some(subresource)) => format!("{resource}/{subresource}"),
        (Some(resource), None) => resource,
        (None, _) => text("/requestURI")?,
    };
    Some(Audited {
        account: text("/user/username")?.strip_prefix("system:serviceaccount:")?.to_owned(),
        verb: text("/verb")?,
        group: text("/objectRef/apiGroup").unwrap_or_default(),
        resource,
        namespace: text("/objectRef/namespace"),
        name: text("/objectRef/name"),
        code: event
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok())?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_known_by_its_account_and_what_it_asked_for() {
        let event = json!({
            "stage": "ResponseComplete", "verb": "patch", "requestURI": "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "user": {"username": "system:serviceaccount:operator:worker", "groups": ["system:serviceaccounts"]},
            "objectRef": {"resource": "deployments", "subresource": "scale", "namespace": "a", "name": "b", "apiGroup": "apps"},
            "responseStatus": {"code": 403},
        });

        let seen = audited(&event).expect("it is complete");

        assert_eq!((seen.account.as_str(), seen.verb.as_str(), seen.code), ("operator:worker", "patch", 403));
        assert_eq!((seen.group.as_str(), seen.resource.as_str()), ("apps", "deployments/scale"));
        assert_eq!((seen.namespace.as_deref(), seen.name.as_deref()), (Some("a"), Some("b")));
    }

    #[test]
    fn what_is_no_resource_is_known_by_its_path_and_what_is_no_account_is_left_out() {
        let discovery = json!({
            "verb": "get", "requestURI": "/apis", "user": {"username": "system:serviceaccount:operator:worker"},
            "responseStatus": {"code": 200},
        });
        let mut other = discovery.clone();
        other["user"]["username"] = json!("system:admin");

        assert_eq!(audited(&discovery).map(|seen| seen.resource), Some("/apis".to_owned()));
        assert_eq!(audited(&other), None);
    }
}
