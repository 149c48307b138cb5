//! A question about rights: a real request, a review or a list of rules, and what is compared of its answer.

use std::fmt;

use serde_json::{Value, json};

use super::draw::Draw;
use super::rights::{Impersonated, Rights};
use super::role_set::{Asker, GROUPS, NAMES, PATHS, RESOURCES, RoleSet, SUBRESOURCES, VERBS};
use crate::answer::ServerAnswer;
use crate::client::PeerRequest;

pub(super) const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
/// How a reason begins that names a binding.
const ALLOWED_BY: &str = "RBAC: allowed by ";
/// What a decision says of a binding that does not allow; never right, though both servers say it.
pub(super) const NAMED_WRONGLY: &str = ", which is none of ";

/// Collections of both servers that real requests are sent to: path before the namespace, plural.
const COLLECTIONS: [(&str, &str); 5] = [
    ("/api/v1", "pods"),
    ("/api/v1", "configmaps"),
    ("/api/v1", "secrets"),
    ("/api/v1", "services"),
    ("/apis/apps/v1", "deployments"),
];

/// Who asks what.
pub(super) struct AccessQuestion {
    asker: Asker,
    kind: QuestionKind,
}

enum QuestionKind {
    /// `SelfSubjectAccessReview` of these attributes.
    Own(Value),
    /// `SubjectAccessReview` of these attributes, asked by the administrator.
    Others(Value),
    /// `SelfSubjectRulesReview` in this namespace.
    Rules(String),
    /// A request that is let through or not.
    Real(&'static str, String),
}

impl AccessQuestion {
    pub(super) fn draw(draw: &mut Draw, set: &RoleSet) -> Self {
        let asker = draw.any(&set.users).clone();
        let kind = match draw.number(1, 100) {
            1..=45 => QuestionKind::Own(attributes(draw, set)),
            46..=65 => QuestionKind::Others(attributes(draw, set)),
            66..=70 => QuestionKind::Rules(draw.any(&set.namespaces).clone()),
            _ => real(draw, set),
        };
        Self { asker, kind }
    }

    pub(super) fn request(&self) -> PeerRequest {
        let spec = |spec: &Value| json!({ "spec": spec });
        let mut request = match &self.kind {
            QuestionKind::Own(attributes) => {
                PeerRequest::json("POST", &format!("{REVIEWS}/selfsubjectaccessreviews"), &spec(attributes))
            }
            QuestionKind::Others(attributes) => {
                let mut attributes = attributes.clone();
                attributes["user"] = json!(self.asker.name);
                attributes["groups"] = json!(self.asker.groups);
                return PeerRequest::json("POST", &format!("{REVIEWS}/subjectaccessreviews"), &spec(&attributes));
            }
            QuestionKind::Rules(namespace) => {
                let namespace = json!({ "namespace": namespace });
                PeerRequest::json("POST", &format!("{REVIEWS}/selfsubjectrulesreviews"), &spec(&namespace))
            }
            QuestionKind::Real("PATCH", path) => {
                let mut patch = PeerRequest::json("PATCH", path, &json!({"metadata": {"labels": {"a": "b"}}}));
                patch.content_type = Some("application/merge-patch+json".to_owned());
                patch
            }
            QuestionKind::Real("POST", path) => {
                // Never good enough to be stored.
                PeerRequest::json("POST", path, &json!({"metadata": {"name": "Not A Name"}}))
            }
            QuestionKind::Real(method, path) => PeerRequest { method, ..PeerRequest::get(path) },
        };
        request.headers.push(("Impersonate-User".to_owned(), self.asker.name.clone()));
        let groups = self.asker.groups.iter().map(|group| ("Impersonate-Group".to_owned(), group.clone()));
        request.headers.extend(groups);
        request
    }

    /// What must be alike. A binding that is named must be one that allows; which of them is as the server likes.
    pub(super) fn decision(&self, answer: &ServerAnswer, rights: &Rights) -> String {
        let (code, body) = (answer.status, answer.json());
        match &self.kind {
            QuestionKind::Own(attributes) | QuestionKind::Others(attributes) => {
                let mut status = body["status"].clone();
                let reason = status["reason"].as_str().unwrap_or_default();
                let told = match reason.strip_prefix(ALLOWED_BY) {
                    Some(named) => self.told(named, &rights.that_allow(&self.subject(), attributes)),
                    None => sorted(reason),
                };
                if status.get("reason").is_some() {
                    status["reason"] = json!(told);
                }
                format!("{code} {status}")
            }
            QuestionKind::Rules(_) => {
                let mut rules: Vec<String> = ["resourceRules", "nonResourceRules"]
                    .iter()
                    .flat_map(|field| body["status"][field].as_array().into_iter().flatten().map(Value::to_string))
                    .collect();
                rules.sort();
                let error = sorted(body["status"]["evaluationError"].as_str().unwrap_or_default());
                format!("{code} {} {error}", rules.join(" "))
            }
            QuestionKind::Real(..) if code == 403 => {
                format!("{code} {}", sorted(body["message"].as_str().unwrap_or_default()))
            }
            // What is measured is theirs.
            QuestionKind::Real(_, path) if path == "/metrics" => "let through".to_owned(),
            QuestionKind::Real(..) => format!("{code} {}", body["reason"]),
        }
    }

    fn told(&self, named: &str, allowing: &[String]) -> String {
        if allowing.iter().any(|binding| binding == named) {
            return format!("{ALLOWED_BY}one of {}", allowing.len());
        }
        format!("{ALLOWED_BY}{named}{NAMED_WRONGLY}{allowing:?}")
    }

    /// Whose rights decide: an impersonated asker has the groups that everyone gets, the one of a review has not.
    fn subject(&self) -> Impersonated<'_> {
        let mut groups = self.asker.groups.clone();
        if !matches!(self.kind, QuestionKind::Others(_)) {
            groups.push("system:authenticated".to_owned());
            if let Some(account) = self.asker.name.strip_prefix("system:serviceaccount:") {
                let namespace = account.split(':').next().unwrap_or_default();
                groups.extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
            }
        }
        Impersonated { name: &self.asker.name, groups }
    }
}

impl fmt::Display for AccessQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.kind {
            QuestionKind::Own(attributes) => format!("own review {attributes}"),
            QuestionKind::Others(attributes) => format!("review {attributes}"),
            QuestionKind::Rules(namespace) => format!("rules in {namespace}"),
            QuestionKind::Real(method, path) => format!("{method} {path}"),
        };
        write!(f, "{} {:?}: {what}", self.asker.name, self.asker.groups)
    }
}

/// Several errors are told in any order.
fn sorted(text: &str) -> String {
    let Some((head, list)) = text.split_once('[').filter(|(_, list)| list.ends_with(']')) else {
        return text.to_owned();
    };
    let mut errors: Vec<&str> = list.trim_end_matches(']').split(", ").collect();
    errors.sort_unstable();
    format!("{head}[{}]", errors.join(", "))
}

fn attributes(draw: &mut Draw, set: &RoleSet) -> Value {
    if draw.chance(20) {
        let verb = draw.one(&["get", "post", "head"]);
        return json!({"nonResourceAttributes": {"path": draw.one(&PATHS), "verb": verb}});
    }
    let mut resource = json!({
        "verb": draw.one(&VERBS), "group": draw.one(&GROUPS), "resource": draw.one(&RESOURCES),
    });
    if draw.chance(70) {
        resource["namespace"] = json!(draw.any(&set.namespaces));
    }
    if draw.chance(50) {
        resource["name"] = json!(draw.one(&NAMES));
    }
    if draw.chance(30) {
        resource["subresource"] = json!(draw.one(&SUBRESOURCES));
    }
    json!({ "resourceAttributes": resource })
}

/// A request that changes nothing even where it is allowed: the objects are not there, and what is posted is no good.
fn real(draw: &mut Draw, set: &RoleSet) -> QuestionKind {
    if draw.chance(15) {
        return QuestionKind::Real("GET", draw.one(&PATHS).to_owned());
    }
    let (root, plural) = *draw.any(&COLLECTIONS);
    let collection = if draw.chance(75) {
        format!("{root}/namespaces/{}/{plural}", draw.any(&set.namespaces))
    } else {
        return QuestionKind::Real("GET", format!("{root}/{plural}?limit=1"));
    };
    let name = draw.one(&NAMES);
    match draw.number(0, 8) {
        0 => QuestionKind::Real("GET", collection),
        1 => QuestionKind::Real("GET", format!("{collection}?fieldSelector=metadata.name%3D{name}")),
        // A pod is first asked for its service account, which is not there.
        2 if plural != "pods" => QuestionKind::Real("POST", collection),
        3 => QuestionKind::Real("DELETE", collection),
        4 => QuestionKind::Real("DELETE", format!("{collection}/{name}")),
        5 => QuestionKind::Real("PATCH", format!("{collection}/{name}")),
        6 if plural == "pods" || plural == "deployments" => {
            QuestionKind::Real("GET", format!("{collection}/{name}/status"))
        }
        7 if plural == "deployments" => QuestionKind::Real("GET", format!("{collection}/{name}/scale")),
        _ => QuestionKind::Real("GET", format!("{collection}/{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::AnswerBody;

    fn answer(reason: &str) -> ServerAnswer {
        let body = json!({"status": {"allowed": true, "reason": reason}});
        ServerAnswer { body: AnswerBody::Json(body), ..ServerAnswer::failed("") }
    }

    fn question() -> (AccessQuestion, Rights) {
        let asker = Asker { name: "bob".to_owned(), groups: Vec::new() };
        let attributes = json!({"nonResourceAttributes": {"path": "/api", "verb": "get"}});
        let rules = json!([{"verbs": ["get"], "nonResourceURLs": ["/api"]}]);
        let role = json!({"kind": "ClusterRole", "name": "r"});
        let to =
            |name: &str, subject: Value| json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        let rights = Rights::from_objects(
            vec![json!({"metadata": {"name": "r"}, "rules": rules})],
            vec![
                to("mine", json!({"kind": "User", "name": "bob"})),
                to("system:discovery", json!({"kind": "Group", "name": "system:authenticated"})),
                to("other", json!({"kind": "User", "name": "eve"})),
            ],
        );
        (AccessQuestion { asker, kind: QuestionKind::Own(attributes) }, rights)
    }

    #[test]
    fn either_of_two_bindings_that_allow_may_be_named() {
        let (question, rights) = question();
        let decide = |reason: &str| question.decision(&answer(reason), &rights);

        let mine = decide(r#"RBAC: allowed by ClusterRoleBinding "mine" of ClusterRole "r" to User "bob""#);
        let everyone = r#"to Group "system:authenticated""#;
        let by = r#"RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "r""#;
        let system = decide(&format!("{by} {everyone}"));

        assert_eq!(mine, system);
    }

    #[test]
    fn a_binding_of_somebody_else_is_a_difference() {
        let (question, rights) = question();
        let decide = |reason: &str| question.decision(&answer(reason), &rights);

        let mine = decide(r#"RBAC: allowed by ClusterRoleBinding "mine" of ClusterRole "r" to User "bob""#);

        assert_ne!(mine, decide(r#"RBAC: allowed by ClusterRoleBinding "other" of ClusterRole "r" to User "eve""#));
        assert_ne!(mine, decide(r#"RBAC: allowed by ClusterRoleBinding "mine" of ClusterRole "q" to User "bob""#));
        assert_ne!(mine, decide(""));
    }
}
