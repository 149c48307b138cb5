//! `POST …/serviceaccounts/NAME/token`: a `TokenRequest` → the same with a token in it.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use portolan_builtin::TOKEN_REQUEST;
use portolan_rbac::user;
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::account::ISSUER;
use crate::answer::Answer;
use crate::api::timestamp;
use crate::call::Call;
use crate::object;
use crate::registry::Resource;
use crate::status::{About, ApiError};

const GROUP: &str = "authentication.k8s.io";
const HOUR: i64 = 3600;
const LEAST_SECONDS: i64 = 600;
const MOST_SECONDS: i64 = 1 << 32;
/// Tokens that are put into pods ask for this long, and live on for a year if they are used later.
const WARN_ONLY_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 24 * 365 * 3600;

impl Call {
    pub(crate) fn create_token(&mut self) -> Result<Answer, ApiError> {
        static RESOURCE: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(Resource::builtin(&TOKEN_REQUEST)));
        self.resource = RESOURCE.clone();
        let options = self.write_options("CreateOptions", false)?;
        let mut request = self.object_from_body(options.field_validation)?;
        if request["spec"]["expirationSeconds"].is_null() {
            request["spec"]["expirationSeconds"] = json!(HOUR);
        }
        self.check_namespace("")?;
        let mut request = self.own_update(&Value::Null, request, &options, "token");
        let account = self.requested_account(&request)?;
        self.complete(&mut request, &account);
        check_expiration(&request)?;
        let bound = self.bound_object(&request)?;
        let claims = self.claims(&request, &account, &bound);
        let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let end = after(&self.api.clock, seconds);
        request["status"] = json!({"token": self.api.access.key.sign(&claims), "expirationTimestamp": end});
        Ok(self.show(StatusCode::CREATED, &request))
    }

    /// The account of the path, which the body must not contradict.
    fn requested_account(&self, request: &Value) -> Result<Value, ApiError> {
        let (name, namespace) = (&self.target.name, &self.target.namespace);
        let given = object::name(request);
        if !given.is_empty() && given != name {
            let root = Path::root();
            let metadata = root.field("metadata");
            let detail = "must match the service account name if specified";
            let error = FieldError::invalid(&metadata.field("name"), &json!(given), detail);
            return Err(ApiError::invalid(GROUP, "TokenRequest", name, &[error]));
        }
        if !object::namespace(request).is_empty() && object::namespace(request) != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let about = About { group: "", plural: "serviceaccounts", name };
        let account =
            self.api.find_core("serviceaccounts", namespace, name).ok_or_else(|| ApiError::not_found(about))?;
        let (given, actual) = (object::meta_text(request, "uid"), object::meta_text(&account, "uid"));
        if !given.is_empty() && given != actual {
            let why = format!(
                "the UID in the token request ({given}) does not match the UID of the service account ({actual})"
            );
            return Err(ApiError::conflict(About { group: GROUP, plural: "TokenRequest", name }, &why));
        }
        Ok(account)
    }

    fn complete(&self, request: &mut Value, account: &Value) {
        for field in ["name", "namespace", "uid"] {
            object::set_meta(request, field, account["metadata"].get(field).cloned());
        }
        object::set_meta(request, "creationTimestamp", Some(json!(self.api.now())));
        if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
            request["spec"]["audiences"] = json!([ISSUER]);
        }
    }

    /// The claim and the object that a token is bound to, with the node of a pod.
    fn bound_object(&self, request: &Value) -> Result<Vec<(&'static str, Value)>, ApiError> {
        let reference = &request["spec"]["boundObjectRef"];
        if reference.is_null() {
            return Ok(Vec::new());
        }
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let (name, uid, version) = (text("name"), text("uid"), text("apiVersion"));
        let (claim, plural, namespace) = match (version.contains('/'), text("kind")) {
            (false, "Pod") => ("pod", "pods", self.target.namespace.as_str()),
            (false, "Secret") => ("secret", "secrets", self.target.namespace.as_str()),
            (false, "Node") => ("node", "nodes", ""),
            (_, kind) => {
                let (group, version) = version.split_once('/').unwrap_or(("", version));
                let shown = format!("{group}/{version}, Kind={kind}");
                return Err(ApiError::bad_request(format!("cannot bind token to object of type {shown}")));
            }
        };
        let missing = || ApiError::not_found(About { group: "", plural, name });
        let found = self.api.find_core(plural, namespace, name).ok_or_else(missing)?;
        let own = &self.target.name;
        if claim == "pod" && found["spec"]["serviceAccountName"].as_str() != Some(own) {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {own:?} to pod running with different serviceaccount name."
            )));
        }
        if !uid.is_empty() && uid != object::meta_text(&found, "uid") {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(About { group: "", plural: text("kind"), name }, &why));
        }
        let node = found["spec"]["nodeName"].as_str().filter(|node| claim == "pod" && !node.is_empty());
        let node = node.map(|name| {
            let node = self.api.find_core("nodes", "", name);
            ("node", node.unwrap_or_else(|| json!({"metadata": {"name": name}})))
        });
        Ok(std::iter::once((claim, found)).chain(node).collect())
    }

    fn claims(&self, request: &Value, account: &Value, bound: &[(&'static str, Value)]) -> Value {
        let reference = |object: &Value| {
            let mut reference = json!({"name": object::name(object)});
            if !object::meta_text(object, "uid").is_empty() {
                reference["uid"] = json!(object::meta_text(object, "uid"));
            }
            reference
        };
        let (namespace, name) = (object::namespace(account), object::name(account));
        let mut private = json!({"namespace": namespace, "serviceaccount": reference(account)});
        for (claim, object) in bound {
            private[*claim] = reference(object);
        }
        let now = (self.api.clock)().as_second();
        let mut seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let in_pod = bound.iter().any(|(claim, _)| *claim == "pod");
        if in_pod && seconds == WARN_ONLY_SECONDS && request["spec"]["audiences"] == json!([ISSUER]) {
            private["warnafter"] = json!(now + seconds);
            seconds = EXTENDED_SECONDS;
        }
        json!({
            "aud": request["spec"]["audiences"], "exp": now + seconds, "iat": now, "iss": ISSUER,
            "jti": uuid::Uuid::new_v4().to_string(), "kubernetes.io": private, "nbf": now,
            "sub": user::account_name(namespace, name),
        })
    }
}

fn after(clock: &crate::api::Clock, seconds: i64) -> String {
    let now = clock();
    timestamp(now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now))
}

fn check_expiration(request: &Value) -> Result<(), ApiError> {
    let given = &request["spec"]["expirationSeconds"];
    let detail = match given.as_i64().unwrap_or(HOUR) {
        seconds if seconds < LEAST_SECONDS => "may not specify a duration less than 10 minutes",
        seconds if seconds > MOST_SECONDS => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(()),
    };
    let root = Path::root();
    let error = FieldError::invalid(&root.field("spec").field("expirationSeconds"), given, detail);
    Err(ApiError::invalid(GROUP, "TokenRequest", "", &[error]))
}
