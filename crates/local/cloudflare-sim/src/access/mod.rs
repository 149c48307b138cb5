//! `/accounts/{account_id}/access/…`: applications, policies, groups, service tokens, identity providers, the organisation.
//!
//! What the public documentation does not say (some numeric codes) is chosen here, once, and told apart below.

pub(crate) mod app;
pub(crate) mod app_policies;
pub(crate) mod app_policy;
mod domain;
mod duration;
pub(crate) mod group;
pub(crate) mod identity_provider;
pub(crate) mod organization;
pub(crate) mod policy;
mod quota;
mod rule;
pub(crate) mod secret;
pub(crate) mod service_token;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use serde_json::Value;

pub use self::quota::Quotas;
use crate::{page::Paging, reply::Refusal, state::State, table::Fail};

/// Lists show 25 objects unless asked for more.
const PAGES: Paging = Paging::Pages { default: 25, min: 1, max: 1000 };

/// Code for bodies that are not as they should be. The real service uses 12130 for these, too; here that one has a
/// single meaning, see [`misfit`].
const INVALID: u64 = 12100;

/// The answer to an id of which nothing is known.
const NOT_FOUND: Fail = Fail(404, 12135, "access.api.error.not_found");

fn invalid(message: impl std::fmt::Display) -> Refusal {
    Refusal::bad(INVALID, format!("access.api.error.invalid_request: {message}"))
}

/// A policy id that does not fit the application.
fn misfit(message: &str) -> Refusal {
    Refusal::bad(12130, format!("access.api.error.invalid_request: {message}"))
}

/// The service writes times in whole seconds.
fn seconds(state: &State) -> String {
    format!("{:.0}", (state.options.clock)())
}

/// Gives the members that say when an object was made and changed the service's own form.
fn stamp(state: &State, value: &mut Value, new: bool) {
    let now = seconds(state);
    value["updated_at"] = Value::from(now.as_str());
    if new {
        value["created_at"] = Value::from(now);
    }
}

/// Whether a member holds a length of time, if it is there.
fn check_duration(value: &Value, name: &str) -> Result<(), Refusal> {
    match value.get(name).and_then(Value::as_str) {
        Some(text) if duration::parse(text).is_none() => {
            Err(invalid(format!("{name} must be a duration such as 300ms or 2h45m")))
        }
        _ => Ok(()),
    }
}
