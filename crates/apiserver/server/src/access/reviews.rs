//! Kinds that are questions: a review is posted, and comes back with its answer. Nothing is stored.

use std::sync::Arc;

use http::{Method, StatusCode};
use portolan_rbac::{AccessTarget, Attributes, ResourceTarget, Rule, User};
use portolan_schema::{FieldError, Path};
use serde_json::{Map, Value, json};

use super::requirements;
use crate::answer::Answer;
use crate::call::Call;
use crate::object;
use crate::status::ApiError;

const GROUP: &str = "authorization.k8s.io";

impl Call {
    /// Answers a review.
    pub(crate) fn review(&mut self, method: &Method) -> Result<Answer, ApiError> {
        let placed = !self.resource.namespaced || !self.target.namespace.is_empty();
        if !self.target.name.is_empty() || !placed {
            return Err(ApiError::no_such_resource());
        }
        if method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let options = self.write_options("CreateOptions", false)?;
        let mut review = self.object_from_body(options.field_validation)?;
        self.place(&mut review, false)?;
        for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            object::set_meta(&mut review, field, None);
        }
        let review = self.own_update(&Value::Null, review, &options, "");
        let mut answered = match self.resource.kind.as_str() {
            "SelfSubjectReview" => self.who_am_i(),
            "SelfSubjectRulesReview" => self.what_may_i(&review)?,
            "TokenReview" => self.whose_token(review)?,
            _ => self.may_they(review)?,
        };
        self.resource.default(&mut answered);
        Ok(self.show(StatusCode::CREATED, &answered))
    }

    fn who_am_i(&self) -> Value {
        self.fresh(json!({"creationTimestamp": self.api.now()}), "status", json!({"userInfo": user_info(&self.user)}))
    }

    /// An answer that has nothing of the question.
    fn fresh(&self, metadata: Value, field: &str, value: Value) -> Value {
        let mut answer = json!({
            "kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata,
        });
        answer[field] = value;
        answer
    }

    fn what_may_i(&self, review: &Value) -> Result<Value, ApiError> {
        let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let found = self.api.access.policy(&self.api.store).rules_for(&self.user, namespace);
        let resources: Vec<Value> = found.rules.iter().filter(|r| !r.resources.is_empty()).map(resource_rule).collect();
        let paths = found.rules.iter().filter(|rule| !rule.urls.is_empty());
        let paths: Vec<Value> = paths.map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls})).collect();
        let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
        if !found.unresolved.is_empty() {
            status["evaluationError"] = json!(found.unresolved);
        }
        let mut answer = self.fresh(json!({}), "status", status);
        answer["spec"] = json!({});
        Ok(answer)
    }

    /// The three kinds that ask whether someone may do something.
    fn may_they(&self, mut review: Value) -> Result<Value, ApiError> {
        let errors = self.wrong_question(&review);
        if !errors.is_empty() {
            return Err(ApiError::invalid(GROUP, "", "", &errors));
        }
        let spec = &review["spec"];
        let user =
            if self.resource.kind == "SelfSubjectAccessReview" { self.user.clone() } else { Arc::new(user_of(spec)) };
        let decision = self.api.access.policy(&self.api.store).decide(&attributes_of(&user, spec));
        let mut status = json!({"allowed": decision.allowed});
        if !decision.reason.is_empty() {
            status["reason"] = json!(decision.reason);
        }
        let ignored = requirements::ignored(&spec["resourceAttributes"]);
        if !ignored.is_empty() {
            status["evaluationError"] = json!(ignored);
        }
        review["status"] = status;
        Ok(review)
    }

    fn wrong_question(&self, review: &Value) -> Vec<FieldError> {
        let spec = &review["spec"];
        let mut errors: Vec<FieldError> = wrong_attributes(spec).into_iter().collect();
        let root = Path::root();
        let path = root.field("spec");
        let own = self.resource.kind == "SelfSubjectAccessReview";
        let nobody =
            spec["user"].as_str().unwrap_or_default().is_empty() && spec["groups"].as_array().is_none_or(Vec::is_empty);
        if !own && nobody {
            let detail = "at least one of user or group must be specified";
            errors.push(FieldError::invalid(&path.field("user"), &json!(""), detail));
        }
        errors.extend(requirements::wrong(&spec["resourceAttributes"]));
        errors.extend(self.wrong_metadata(review));
        if self.resource.namespaced {
            errors.extend(self.wrong_place(spec));
        }
        errors
    }

    fn wrong_metadata(&self, review: &Value) -> Option<FieldError> {
        let allowed: &[&str] =
            if self.resource.namespaced { &["managedFields", "namespace"] } else { &["managedFields"] };
        let given = review["metadata"].as_object().cloned().unwrap_or_default();
        let given: Map<String, Value> = given.into_iter().filter(|(key, _)| key != "managedFields").collect();
        if given.keys().all(|key| allowed.contains(&key.as_str())) {
            return None;
        }
        let detail = if self.resource.namespaced { "must be empty except for namespace" } else { "must be empty" };
        let root = Path::root();
        Some(FieldError::invalid(&root.field("metadata"), &Value::Object(given), detail))
    }

    fn wrong_place(&self, spec: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let root = Path::root();
        let path = root.field("spec");
        let resource = &spec["resourceAttributes"];
        let namespace = resource["namespace"].as_str().unwrap_or_default();
        if !resource.is_null() && namespace != self.target.namespace {
            let path = path.field("resourceAttributes");
            errors.push(FieldError::invalid(
                &path.field("namespace"),
                &json!(namespace),
                "must match metadata.namespace",
            ));
        }
        let paths = &spec["nonResourceAttributes"];
        if !paths.is_null() {
            let detail = "disallowed on this kind of request";
            errors.push(FieldError::invalid(&path.field("nonResourceAttributes"), paths, detail));
        }
        errors
    }
}

fn wrong_attributes(spec: &Value) -> Option<FieldError> {
    let root = Path::root();
    let path = root.field("spec");
    let (resource, paths) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    match (resource.is_null(), paths.is_null()) {
        (false, false) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            Some(FieldError::invalid(&path.field("nonResourceAttributes"), paths, detail))
        }
        (true, true) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Some(FieldError::invalid(&path.field("resourceAttributes"), &Value::Null, detail))
        }
        (true, false) | (false, true) => None,
    }
}

fn user_of(spec: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

fn attributes_of<'a>(user: &'a User, spec: &Value) -> Attributes<'a> {
    let read = |attributes: &Value, field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
    let resource = &spec["resourceAttributes"];
    if resource.is_null() {
        let paths = &spec["nonResourceAttributes"];
        return Attributes { user, verb: read(paths, "verb"), target: AccessTarget::Path(read(paths, "path")) };
    }
    let text = |field: &str| read(resource, field);
    let target = ResourceTarget {
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
    };
    Attributes { user, verb: text("verb"), target: AccessTarget::Resource(target) }
}

fn resource_rule(rule: &Rule) -> Value {
    let mut shown = json!({"verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources});
    if !rule.names.is_empty() {
        shown["resourceNames"] = json!(rule.names);
    }
    shown
}

/// A user as reviews show it.
pub(super) fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
