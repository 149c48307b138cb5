//! One rule of a role: what it allows, and which other rules it covers.

use serde_json::{Map, Value, json};

use crate::attributes::{AccessTarget, Attributes, ResourceTarget};
use crate::text::{quoted_list, texts};

const ALL: &str = "*";

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    /// Such as `get`; `*` is all.
    pub verbs: Vec<String>,
    /// API groups; `*` is all, the empty one is the core.
    pub groups: Vec<String>,
    /// `pods`, `pods/log`, `*/log` or `*`.
    pub resources: Vec<String>,
    /// Objects by name; none is all.
    pub names: Vec<String>,
    /// Paths that are no resources; a star at the end stands for anything.
    pub urls: Vec<String>,
}

impl Rule {
    /// Reads a `PolicyRule`.
    pub fn parse(rule: &Value) -> Self {
        Self {
            verbs: texts(&rule["verbs"]),
            groups: texts(&rule["apiGroups"]),
            resources: texts(&rule["resources"]),
            names: texts(&rule["resourceNames"]),
            urls: texts(&rule["nonResourceURLs"]),
        }
    }

    /// The rules of a role.
    pub fn parse_all(role: &Value) -> Vec<Self> {
        role["rules"].as_array().into_iter().flatten().map(Self::parse).collect()
    }

    /// A `PolicyRule`.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let lists = [
            ("apiGroups", &self.groups),
            ("nonResourceURLs", &self.urls),
            ("resourceNames", &self.names),
            ("resources", &self.resources),
        ];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            fields.insert(name.to_owned(), json!(list));
        }
        fields.insert("verbs".to_owned(), json!(self.verbs));
        Value::Object(fields)
    }

    /// Whether a request is allowed by this rule.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, &attributes.verb)
            && match &attributes.target {
                AccessTarget::Resource(target) => self.allows_resource(target),
                AccessTarget::Path(path) => self.urls.iter().any(|url| covers_url(url, path)),
            }
    }

    fn allows_resource(&self, target: &ResourceTarget) -> bool {
        has_or_all(&self.groups, &target.group)
            && self.names_resource(target)
            && (self.names.is_empty() || self.names.contains(&target.name))
    }

    fn names_resource(&self, target: &ResourceTarget) -> bool {
        self.resources.iter().any(|resource| {
            resource == ALL || is_combined(resource, target) || is_of_any(resource, &target.subresource)
        })
    }

    /// Whether everything that a rule of single items allows is allowed by this one.
    pub(crate) fn covers(&self, single: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| {
            own.iter().any(|o| o == ALL) || wanted.iter().all(|wanted| own.contains(wanted))
        };
        let names =
            self.names.is_empty() || (!single.names.is_empty() && single.names.iter().all(|n| self.names.contains(n)));
        all(&self.verbs, &single.verbs)
            && all(&self.groups, &single.groups)
            && single.resources.iter().all(|resource| self.covers_resource(resource))
            && names
            && single.urls.iter().all(|path| self.urls.iter().any(|url| covers_url(url, path)))
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        let of_any = wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        self.resources.iter().any(|own| own == ALL || own == wanted || Some(own) == of_any.as_ref())
    }

    /// The same as rules with one verb, group, resource and name each.
    pub(crate) fn broken_down(&self) -> Vec<Self> {
        let one = |item: &String| vec![item.clone()];
        let mut singles = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let single =
                        Self { groups: one(group), resources: one(resource), verbs: one(verb), ..Self::default() };
                    match self.names.as_slice() {
                        [] => singles.push(single),
                        names => singles.extend(names.iter().map(|n| Self { names: one(n), ..single.clone() })),
                    }
                }
            }
        }
        for url in &self.urls {
            let single = |verb: &String| Self { urls: one(url), verbs: one(verb), ..Self::default() };
            singles.extend(self.verbs.iter().map(single));
        }
        singles
    }

    /// As messages about escalation show it.
    pub(crate) fn compact(&self) -> String {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown: Vec<String> = parts
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", quoted_list(list)))
            .collect();
        format!("{{{}}}", shown.join(", "))
    }
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == ALL || item == wanted)
}

/// `pods` or `pods/log`, compared without joining.
fn is_combined(resource: &str, target: &ResourceTarget) -> bool {
    if target.subresource.is_empty() {
        return resource == target.resource;
    }
    let rest = resource.strip_prefix(target.resource.as_str()).and_then(|rest| rest.strip_prefix('/'));
    rest == Some(target.subresource.as_str())
}

/// `*/log`.
fn is_of_any(resource: &str, subresource: &str) -> bool {
    !subresource.is_empty() && resource.strip_prefix("*/") == Some(subresource)
}

fn covers_url(url: &str, path: &str) -> bool {
    url == ALL || url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;

    fn rule(text: &str) -> Rule {
        Rule::parse(&serde_json::from_str(text).unwrap())
    }

    fn allows(rule: &Rule, verb: &str, combined: &str, name: &str) -> bool {
        let (resource, subresource) = combined.split_once('/').unwrap_or((combined, ""));
        let target = ResourceTarget {
            resource: resource.into(),
            subresource: subresource.into(),
            name: name.into(),
            ..ResourceTarget::default()
        };
        let user = User::default();
        rule.allows(&Attributes { user: &user, verb: verb.into(), target: AccessTarget::Resource(target) })
    }

    #[test]
    fn a_resource_is_not_its_subresources() {
        let pods = rule(r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]}"#);

        assert!(allows(&pods, "get", "pods", "a"));
        assert!(!allows(&pods, "get", "pods/log", "a"));
        assert!(allows(&pods, "get", "deployments/scale", "a"));
        assert!(!allows(&pods, "get", "scale", "a"));
        assert!(!allows(&pods, "list", "pods", ""));
    }

    #[test]
    fn a_rule_with_names_allows_no_collection() {
        let one = rule(r#"{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"]}"#);

        assert!(allows(&one, "get", "pods/log", "a"));
        assert!(!allows(&one, "get", "pods", "b"));
        assert!(!allows(&one, "list", "pods", ""));
    }

    #[test]
    fn a_star_ends_a_path_only() {
        let user = User::default();
        let paths = rule(r#"{"verbs": ["get"], "nonResourceURLs": ["/healthz/*", "/a*b"]}"#);
        let allowed = |path: &str| {
            paths.allows(&Attributes { user: &user, verb: "get".into(), target: AccessTarget::Path(path.into()) })
        };

        assert!(allowed("/healthz/ping"));
        assert!(!allowed("/healthz"));
        assert!(!allowed("/axb"));
        assert!(allowed("/a*b"));
    }

    #[test]
    fn a_rule_is_shown_with_what_it_has() {
        let shown = rule(r#"{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}"#).compact();

        assert_eq!(shown, r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#);
    }
}
