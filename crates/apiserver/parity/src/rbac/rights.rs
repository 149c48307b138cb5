//! Roles and bindings as a server lists them → every binding that allows a request.
//!
//! The real server asks its bindings in the order of a Go map, which is the same each time but for where it begins:
//! of two bindings that allow, the one right after the other may be named once in hundreds of answers. So a binding
//! that is named must be one of those that allow, and not the one that the other server named.

use serde_json::Value;

use crate::client::{Client, PeerRequest};

const ROOT: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Someone who asks, with all groups.
pub(super) struct Impersonated<'a> {
    pub(super) name: &'a str,
    pub(super) groups: Vec<String>,
}

/// The roles and bindings of a server.
pub(super) struct Rights {
    roles: Vec<Value>,
    bindings: Vec<Value>,
}

impl Rights {
    /// Those that a server has now.
    pub(super) async fn of(client: &Client) -> Self {
        let mut lists = Vec::new();
        for plural in ["clusterroles", "roles", "clusterrolebindings", "rolebindings"] {
            let answer = client.send(&PeerRequest::get(&format!("{ROOT}/{plural}"))).await;
            assert!(answer.status == 200, "{plural} cannot be listed: {}", answer.json()["message"]);
            lists.push(answer.json()["items"].as_array().cloned().unwrap_or_default());
        }
        let mut halves = lists.chunks(2).map(<[Vec<Value>]>::concat);
        let (roles, bindings) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        Self { roles, bindings }
    }

    #[cfg(test)]
    pub(super) fn from_objects(roles: Vec<Value>, bindings: Vec<Value>) -> Self {
        Self { roles, bindings }
    }

    /// The bindings that allow, in the words of a review's reason.
    pub(super) fn that_allow(&self, asker: &Impersonated<'_>, attributes: &Value) -> Vec<String> {
        let namespace = attributes["resourceAttributes"]["namespace"].as_str().unwrap_or_default();
        let meant = self.bindings.iter().filter(|binding| {
            let own = namespace_of(binding);
            own.is_empty() || own == namespace
        });
        meant.filter_map(|binding| self.allows(binding, asker, attributes)).collect()
    }

    fn allows(&self, binding: &Value, asker: &Impersonated<'_>, attributes: &Value) -> Option<String> {
        let own = namespace_of(binding);
        let subject = binding["subjects"].as_array()?.iter().find(|subject| is(subject, own, asker))?;
        let (kind, role) = (text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"]));
        let home = if kind == "Role" { own } else { "" };
        let role_found =
            self.roles.iter().find(|found| text(&found["metadata"]["name"]) == role && namespace_of(found) == home)?;
        let rules = role_found["rules"].as_array()?;
        rules.iter().any(|rule| permits(rule, attributes)).then(|| {
            let name = text(&binding["metadata"]["name"]);
            let by = if own.is_empty() {
                format!("ClusterRoleBinding \"{name}\"")
            } else {
                format!("RoleBinding \"{name}/{own}\"")
            };
            format!("{by} of {kind} \"{role}\" to {}", described(subject, own))
        })
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn namespace_of(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

/// Whether the subject of a binding in this namespace is the asker.
fn is(subject: &Value, namespace: &str, asker: &Impersonated<'_>) -> bool {
    let name = text(&subject["name"]);
    match text(&subject["kind"]) {
        "User" => name == asker.name,
        "Group" => asker.groups.iter().any(|group| group == name),
        _ => format!("system:serviceaccount:{}:{name}", home(subject, namespace)) == asker.name,
    }
}

/// The namespace of a service account: its own or that of the binding.
fn home<'a>(subject: &'a Value, namespace: &'a str) -> &'a str {
    subject["namespace"].as_str().unwrap_or(namespace)
}

fn described(subject: &Value, namespace: &str) -> String {
    let (kind, name) = (text(&subject["kind"]), text(&subject["name"]));
    if kind == "ServiceAccount" {
        return format!("{kind} \"{name}/{}\"", home(subject, namespace));
    }
    format!("{kind} \"{name}\"")
}

/// `RuleAllows` of `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`.
fn permits(rule: &Value, attributes: &Value) -> bool {
    let any = |field: &str, wanted: &dyn Fn(&str) -> bool| {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(wanted)
    };
    if let Some(request) = attributes.get("nonResourceAttributes") {
        let (path, verb) = (text(&request["path"]), text(&request["verb"]));
        let matches = |url: &str| url == path || url.strip_suffix('*').is_some_and(|start| path.starts_with(start));
        return any("verbs", &|given| given == "*" || given == verb) && any("nonResourceURLs", &matches);
    }
    let request = &attributes["resourceAttributes"];
    let part = |field: &str| text(&request[field]);
    let (resource, below) = (part("resource"), part("subresource"));
    let whole = if below.is_empty() { resource.to_owned() } else { format!("{resource}/{below}") };
    let is_meant = |given: &str| given == "*" || given == whole || (!below.is_empty() && given == format!("*/{below}"));
    let named = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
    any("verbs", &|given| given == "*" || given == part("verb"))
        && any("apiGroups", &|given| given == "*" || given == part("group"))
        && any("resources", &is_meant)
        && (named || any("resourceNames", &|given| given == part("name")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rights() -> Rights {
        let role = |name: &str, rule: Value| json!({"metadata": {"name": name}, "rules": [rule]});
        let to = |name: &str, role: &str, subject: Value| {
            let role = json!({"kind": "ClusterRole", "name": role});
            json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
        };
        let mut local = to("b", "pods", json!({"kind": "ServiceAccount", "name": "sa"}));
        local["metadata"]["namespace"] = json!("n");
        Rights {
            roles: vec![
                role("urls", json!({"verbs": ["get"], "nonResourceURLs": ["/api", "/x/*"]})),
                role(
                    "pods",
                    json!({"verbs": ["*"], "apiGroups": [""], "resources": ["*/log"], "resourceNames": ["a"]}),
                ),
            ],
            bindings: vec![
                to("mine", "urls", json!({"kind": "User", "name": "bob"})),
                to("ours", "urls", json!({"kind": "Group", "name": "all"})),
                local,
            ],
        }
    }

    #[test]
    fn every_binding_that_allows_is_found_and_no_other() {
        let bob = Impersonated { name: "bob", groups: vec!["all".to_owned()] };
        let path = |path: &str| json!({"nonResourceAttributes": {"path": path, "verb": "get"}});

        let mine = r#"ClusterRoleBinding "mine" of ClusterRole "urls" to User "bob""#;
        let ours = r#"ClusterRoleBinding "ours" of ClusterRole "urls" to Group "all""#;
        assert_eq!(rights().that_allow(&bob, &path("/api")), [mine, ours]);
        assert_eq!(rights().that_allow(&bob, &path("/x/y")), [mine, ours]);
        assert!(rights().that_allow(&bob, &path("/metrics")).is_empty());
    }

    #[test]
    fn an_account_has_the_namespace_of_its_binding() {
        let account = Impersonated { name: "system:serviceaccount:n:sa", groups: Vec::new() };
        let ask = |namespace: &str, name: &str| {
            json!({"resourceAttributes": {"verb": "get", "group": "", "resource": "pods", "subresource": "log",
                "namespace": namespace, "name": name}})
        };

        let local = r#"RoleBinding "b/n" of ClusterRole "pods" to ServiceAccount "sa/n""#;
        assert_eq!(rights().that_allow(&account, &ask("n", "a")), [local]);
        assert!(rights().that_allow(&account, &ask("n", "b")).is_empty());
        assert!(rights().that_allow(&account, &ask("m", "a")).is_empty());
    }
}
