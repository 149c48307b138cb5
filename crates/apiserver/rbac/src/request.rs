//! A method and a path → the verb and the target that roles speak of.

use crate::attributes::{AccessTarget, ResourceTarget};

/// What a request asks for, before it is known who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedFor {
    /// Such as `list`; empty where the method means nothing to resources.
    pub verb: String,
    /// What is asked for.
    pub target: AccessTarget,
}

/// What a list's query says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Changes are asked for.
    pub watch: bool,
    /// The one object that a field selector leaves.
    pub name: Option<String>,
}

/// Reads a request. The path is decoded; the query of a list is only read where there is a list.
pub fn asked(method: &str, path: &str, list: impl FnOnce() -> ListQuery) -> AskedFor {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => resource(method, "", version, rest, list),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => resource(method, group, version, rest, list),
        _ => AskedFor { verb: method.to_lowercase(), target: AccessTarget::Path(path.to_owned()) },
    }
}

fn resource(method: &str, group: &str, version: &str, parts: &[&str], list: impl FnOnce() -> ListQuery) -> AskedFor {
    let (verb, parts) = match parts {
        [special @ ("watch" | "proxy"), rest @ ..] => (*special, rest),
        parts => (verb_of(method), parts),
    };
    let mut target = located(parts, verb);
    group.clone_into(&mut target.group);
    version.clone_into(&mut target.version);
    let verb = match verb {
        "get" if target.name.is_empty() => {
            let query = list();
            target.name = query.name.unwrap_or_default();
            if query.watch { "watch" } else { "list" }
        }
        "delete" if target.name.is_empty() => "deletecollection",
        other => other,
    };
    AskedFor { verb: verb.to_owned(), target: AccessTarget::Resource(target) }
}

fn verb_of(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// Namespace, resource, name and subresource. A namespace is in itself.
fn located(parts: &[&str], verb: &str) -> ResourceTarget {
    let (namespace, parts) = match parts {
        ["namespaces", namespace, "status" | "finalize", ..] => (*namespace, parts),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        ["namespaces", namespace] => (*namespace, parts),
        parts => ("", parts),
    };
    let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
    ResourceTarget {
        resource: part(0),
        name: part(1),
        subresource: if verb == "proxy" { String::new() } else { part(2) },
        namespace: namespace.to_owned(),
        ..ResourceTarget::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(method: &str, path: &str, query: ListQuery) -> String {
        let asked = asked(method, path, || query);
        match asked.target {
            AccessTarget::Path(path) => format!("{} {path}", asked.verb),
            AccessTarget::Resource(t) => {
                format!(
                    "{} {}:{} {} {}/{} {}",
                    asked.verb, t.group, t.version, t.namespace, t.resource, t.name, t.subresource
                )
            }
        }
    }

    fn plain(method: &str, path: &str) -> String {
        seen(method, path, ListQuery::default())
    }

    #[test]
    fn methods_become_verbs_by_what_they_are_applied_to() {
        assert_eq!(plain("GET", "/api/v1/namespaces/web/pods"), "list :v1 web pods/ ");
        assert_eq!(plain("HEAD", "/api/v1/namespaces/web/pods/a"), "get :v1 web pods/a ");
        assert_eq!(
            plain("DELETE", "/apis/apps/v1/namespaces/web/deployments"),
            "deletecollection apps:v1 web deployments/ "
        );
        assert_eq!(plain("POST", "/api/v1/namespaces/web/pods/a/eviction"), "create :v1 web pods/a eviction");
        assert_eq!(plain("OPTIONS", "/api/v1/nodes"), " :v1  nodes/ ");
    }

    #[test]
    fn a_namespace_is_in_itself() {
        assert_eq!(plain("GET", "/api/v1/namespaces/web"), "get :v1 web namespaces/web ");
        assert_eq!(plain("PUT", "/api/v1/namespaces/web/finalize"), "update :v1 web namespaces/web finalize");
        assert_eq!(plain("GET", "/api/v1/namespaces"), "list :v1  namespaces/ ");
    }

    #[test]
    fn a_watch_is_a_query_or_an_old_path() {
        let watch = ListQuery { watch: true, name: Some("a".into()) };

        assert_eq!(seen("GET", "/api/v1/pods", watch), "watch :v1  pods/a ");
        assert_eq!(plain("GET", "/api/v1/watch/namespaces/web/pods"), "watch :v1 web pods/ ");
    }

    #[test]
    fn everything_else_is_a_path() {
        assert_eq!(plain("GET", "/apis/apps/v1"), "get /apis/apps/v1");
        assert_eq!(plain("GET", "/api/v1/"), "get /api/v1/");
        assert_eq!(plain("POST", "/healthz/ping"), "post /healthz/ping");
    }
}
