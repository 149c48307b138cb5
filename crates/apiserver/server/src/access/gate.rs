//! A request's headers → the user that it runs as, if it may run at all.

use std::sync::Arc;

use http::header::{self, HeaderMap};
use http::request::Parts;
use percent_encoding::percent_decode_str;
use portolan_rbac::impersonation::{self, Header, act_as};
use portolan_rbac::request::{AskedFor, ListQuery, asked};
use portolan_rbac::{Attributes, User, user};
use portolan_schema::names::path_segment;

use super::forbidden;
use crate::api::Api;
use crate::request::Query;
use crate::selector::FieldSelector;
use crate::status::ApiError;

/// How it is known who asks.
#[derive(Clone)]
pub(crate) enum Caller {
    /// In process: always this user.
    Known(Arc<User>),
    /// By a bearer token.
    Bearer,
}

impl Caller {
    /// Who sends a request.
    fn identify(&self, api: &Api, headers: &HeaderMap) -> Result<Arc<User>, ApiError> {
        if let Self::Known(user) = self {
            return Ok(user.clone());
        }
        let token = bearer(headers).ok_or_else(ApiError::unauthorized)?;
        if api.access.is_own_token(token) {
            return Ok(super::administrator());
        }
        match api.accept_token(token, &[]) {
            Ok(accepted) => {
                let mut known = accepted.user;
                known.join(user::AUTHENTICATED);
                Ok(Arc::new(known))
            }
            Err(_) => Err(ApiError::unauthorized()),
        }
    }

    /// The user that a request runs as: authenticated, perhaps as someone else, and allowed.
    pub(crate) fn admit(&self, api: &Api, parts: &Parts) -> Result<Arc<User>, ApiError> {
        let caller = self.identify(api, &parts.headers)?;
        let acts = parts.headers.keys().any(|name| name.as_str().starts_with("impersonate-"));
        if !acts && caller.is_privileged() {
            return Ok(caller);
        }
        let asked = asked_by(parts);
        let user = if acts { impersonated(api, caller, &parts.headers, &asked)? } else { caller };
        if user.is_privileged() {
            return Ok(user);
        }
        let attributes = Attributes { user: &user, verb: asked.verb, target: asked.target };
        let decision = api.access.policy(&api.store).decide(&attributes);
        if decision.allowed { Ok(user) } else { Err(forbidden(&attributes.denied(&decision.reason))) }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, rest) = given.split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn impersonated(api: &Api, caller: Arc<User>, headers: &HeaderMap, asked: &AskedFor) -> Result<Arc<User>, ApiError> {
    let values: Vec<(&str, String)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let wanted = impersonation::wanted(values.iter().map(|(name, value)| Header { name, value }))
        .map_err(ApiError::bad_request)?;
    let Some(wanted) = wanted else { return Ok(caller) };
    let policy = api.access.policy(&api.store);
    let last = api.access.last_mode(&caller.name);
    let (user, mode) = act_as(&policy, &caller, &wanted, asked, last).map_err(|denial| forbidden(&denial))?;
    if last != Some(mode) {
        api.access.remember_mode(&caller.name, mode);
    }
    Ok(Arc::new(user))
}

fn asked_by(parts: &Parts) -> AskedFor {
    let path = percent_decode_str(parts.uri.path()).decode_utf8_lossy();
    asked(parts.method.as_str(), &path, || {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let selector = FieldSelector::parse(query.get("fieldSelector")).ok();
        let name = selector.and_then(|selector| selector.exact("metadata.name").map(str::to_owned));
        ListQuery { watch: query.flag("watch"), name: name.filter(|name| path_segment(name).is_empty()) }
    })
}

pub(super) fn equal_in_constant_time(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
