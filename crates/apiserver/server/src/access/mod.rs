//! Who asks, and whether they may: tokens and headers → a user; a user and a request → go on, 401 or 403.
//!
//! `system:masters` may do everything and costs nothing: the server's own token, clients in process and controllers.
//! Everyone else is judged by the roles and bindings in the store, followed as they change.

mod account;
pub(crate) mod aggregation;
pub(crate) mod bootstrap;
mod escalation;
mod gate;
mod key;
mod policy;
mod requirements;
mod reviews;
mod token_request;
mod token_reviews;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use http::StatusCode;
use portolan_rbac::impersonation::ImpersonationMode;
use portolan_rbac::{Denial, Policy, User, user};

pub(crate) use gate::Caller;
pub(crate) use key::TokenKey;

use crate::status::{About, ApiError, Details};
use crate::store::Store;

/// Names that are remembered with the mode in which they last acted as someone else.
const MOST_MODES: usize = 10_000;

/// What decides about requests.
pub(crate) struct AccessControl {
    key: TokenKey,
    policies: policy::Followed,
    /// The token of the server's own kubeconfig, once it listens.
    own_token: OnceLock<Arc<str>>,
    /// By the name of who acted as someone else.
    modes: Mutex<HashMap<String, ImpersonationMode>>,
}

impl AccessControl {
    pub(crate) fn new(key: TokenKey) -> Self {
        Self { key, policies: policy::Followed::default(), own_token: OnceLock::new(), modes: Mutex::default() }
    }

    /// The roles and bindings as they are now.
    pub(crate) fn policy(&self, store: &Store) -> Arc<Policy> {
        self.policies.now(store)
    }

    /// Takes note of the token that may do everything.
    pub(crate) fn set_own_token(&self, token: &Arc<str>) {
        // A server that listens twice has the same token twice.
        let _ = self.own_token.set(token.clone());
    }

    fn is_own_token(&self, token: &str) -> bool {
        self.own_token.get().is_some_and(|own| gate::equal_in_constant_time(own, token))
    }

    fn last_mode(&self, user: &str) -> Option<ImpersonationMode> {
        self.modes.lock().expect("only read and inserted to").get(user).copied()
    }

    fn remember_mode(&self, user: &str, mode: ImpersonationMode) {
        let mut modes = self.modes.lock().expect("only read and inserted to");
        if modes.len() >= MOST_MODES {
            modes.clear();
        }
        modes.insert(user.to_owned(), mode);
    }
}

/// Who brings the server's own token, and every client in process that names no one else.
pub(crate) fn administrator() -> Arc<User> {
    static ADMINISTRATOR: LazyLock<Arc<User>> =
        LazyLock::new(|| Arc::new(User::new("system:admin", [user::MASTERS, user::AUTHENTICATED])));
    ADMINISTRATOR.clone()
}

/// 403 for a request that no role allows.
fn forbidden(denial: &Denial) -> ApiError {
    if denial.resource.is_empty() {
        return ApiError {
            code: StatusCode::FORBIDDEN,
            reason: "Forbidden",
            message: format!("forbidden: {}", denial.why),
            details: Some(Box::new(Details::default())),
            plain: false,
            next: None,
        };
    }
    ApiError::forbidden(About { group: &denial.group, plural: &denial.resource, name: &denial.name }, &denial.why)
}
