//! A service account's token → the user that it stands for, if everything that it is bound to still exists.

use portolan_rbac::User;
use serde_json::Value;

use super::key::Foreign;
use crate::api::Api;
use crate::object;
use crate::status::{About, ApiError};

/// Who signs tokens, and for whom they are unless they say otherwise.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Clocks may differ by this much.
const LEEWAY_SECONDS: i64 = 60;

/// A token that was accepted.
pub(crate) struct Accepted {
    pub(crate) user: User,
    /// The audiences that were asked for and that the token has.
    pub(crate) audiences: Vec<String>,
}

/// An object that a token names.
struct Bound<'a> {
    plural: &'static str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

impl Api {
    /// Accepts a token for some audiences; none are the server's own.
    ///
    /// # Errors
    /// What a review says about it.
    pub(crate) fn accept_token(&self, token: &str, audiences: &[String]) -> Result<Accepted, String> {
        let claims = self.access.key.verify(token, ISSUER).map_err(|why| match why {
            Foreign::Unknown => "invalid bearer token".to_owned(),
            Foreign::NoKey => "[invalid bearer token, invalid signature, no keys found]".to_owned(),
            Foreign::Forged => "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]".to_owned(),
        })?;
        let also = |why: String| format!("[invalid bearer token, {why}]");
        let audiences = shared_audiences(&claims, audiences).map_err(also)?;
        self.check_times(&claims).map_err(also)?;
        let user = self.account_of(&claims).map_err(also)?;
        Ok(Accepted { user, audiences })
    }

    fn check_times(&self, claims: &Value) -> Result<(), String> {
        let now = (self.clock)().as_second();
        let time = |claim: &str| claims[claim].as_i64();
        if time("nbf").is_some_and(|start| now + LEEWAY_SECONDS < start) {
            return Err("service account token is not valid yet".to_owned());
        }
        if time("exp").is_some_and(|end| now - LEEWAY_SECONDS > end) {
            return Err("service account token has expired".to_owned());
        }
        if time("iat").is_some_and(|made| now + LEEWAY_SECONDS < made) {
            return Err("service account token is issued in the future".to_owned());
        }
        Ok(())
    }

    fn account_of(&self, claims: &Value) -> Result<User, String> {
        let private = &claims["kubernetes.io"];
        let namespace = private["namespace"].as_str().unwrap_or_default();
        let reference = |field: &str| {
            let (name, uid) = (private[field]["name"].as_str()?, private[field]["uid"].as_str().unwrap_or_default());
            Some((name, uid))
        };
        let (name, uid) = reference("serviceaccount").unwrap_or_default();
        self.check_account(namespace, name, uid)?;
        let mut user = User::service_account(namespace, name, uid);
        if let Some((name, uid)) = reference("secret") {
            self.check_bound("secret", &Bound { plural: "secrets", namespace, name, uid })?;
        }
        let pod = reference("pod");
        if let Some((name, uid)) = pod {
            self.check_bound("pod", &Bound { plural: "pods", namespace, name, uid })?;
            add_extra(&mut user, "pod-name", name);
            add_extra(&mut user, "pod-uid", uid);
        }
        if let Some(id) = claims["jti"].as_str() {
            add_extra(&mut user, "credential-id", &format!("JTI={id}"));
        }
        if let Some((name, uid)) = reference("node") {
            if pod.is_none() {
                self.check_bound("node", &Bound { plural: "nodes", namespace: "", name, uid })?;
            }
            add_extra(&mut user, "node-name", name);
            if !uid.is_empty() {
                add_extra(&mut user, "node-uid", uid);
            }
        }
        Ok(user)
    }

    fn check_account(&self, namespace: &str, name: &str, uid: &str) -> Result<(), String> {
        let Some(account) = self.find_core("serviceaccounts", namespace, name) else {
            return Err(ApiError::not_found(About { group: "", plural: "serviceaccounts", name }).message);
        };
        let actual = object::meta_text(&account, "uid");
        if actual != uid {
            return Err(format!("service account UID ({actual}) does not match claim ({uid})"));
        }
        if self.was_deleted(&account) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        Ok(())
    }

    fn check_bound(&self, kind: &str, bound: &Bound<'_>) -> Result<(), String> {
        let invalidated = || "service account token has been invalidated".to_owned();
        let found = self.find_core(bound.plural, bound.namespace, bound.name).ok_or_else(invalidated)?;
        let (actual, uid) = (object::meta_text(&found, "uid"), bound.uid);
        if actual != uid {
            return Err(format!("{kind} UID ({actual}) does not match service account {kind} ref claim ({uid})"));
        }
        if self.was_deleted(&found) { Err(invalidated()) } else { Ok(()) }
    }

    /// Whether an object has been going for longer than clocks may differ.
    fn was_deleted(&self, found: &Value) -> bool {
        let time =
            found["metadata"]["deletionTimestamp"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        time.is_some_and(|time| time.as_second() < (self.clock)().as_second() - LEEWAY_SECONDS)
    }

    /// An object of the core group.
    pub(crate) fn find_core(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let registry = self.registry();
        let resource = registry.find("", "v1", plural)?;
        self.store.get(&resource.key(namespace, name)).map(|stored| self.object(resource, &stored))
    }
}

fn add_extra(user: &mut User, key: &str, value: &str) {
    user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
}

fn shared_audiences(claims: &Value, wanted: &[String]) -> Result<Vec<String>, String> {
    let has: Vec<String> = match &claims["aud"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => vec![ISSUER.to_owned()],
    };
    let wanted = if wanted.is_empty() { &[ISSUER.to_owned()] } else { wanted };
    let shared: Vec<String> = has.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
    if shared.is_empty() {
        let list = |items: &[String]| {
            let items: Vec<String> = items.iter().map(|item| portolan_schema::go::quote(item)).collect();
            format!("[{}]", items.join(" "))
        };
        return Err(format!("token audiences {} is invalid for the target audiences {}", list(&has), list(wanted)));
    }
    Ok(shared)
}
