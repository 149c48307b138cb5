//! `/accounts/{account_id}/access/…`: applications, policies, groups, service tokens, identity providers, the organisation.
//!
//! Nearly every refusal of the service is 400 with code 12130 and a text that says why; few things have a code of their own.

pub(crate) mod app;
pub(crate) mod app_policies;
pub(crate) mod app_policy;
mod domain;
mod duration;
pub(crate) mod group;
pub(crate) mod identity_provider;
pub(crate) mod list;
pub(crate) mod organization;
pub(crate) mod policy;
mod quota;
mod rule;
pub(crate) mod secret;
pub(crate) mod service_token;
pub(crate) mod tag;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use serde_json::Value;

pub use self::quota::Quotas;
use crate::{
    page::Paging,
    reply::Refusal,
    state::State,
    table::{Collection, Fail, REPLACED, ROW},
};

/// What the rows of Access have in common: lists show 25 objects unless asked for more, and an object is replaced as a whole.
const ACCESS: Collection = Collection {
    actions: REPLACED,
    paging: Paging::Pages { default: 25, min: 1, max: 1000 },
    times: ("created_at", Some("updated_at")),
    not_found: NOT_FOUND,
    invalid: INVALID,
    group: "access_apps",
    statuses: (201, 202),
    ..ROW
};

/// Code of every request that the service does not take: bodies that are not as they should be, names outside of the account's
/// zones, unknown tags and policies, precedences that are not unique, and limits that are reached. The text tells them apart:
/// <https://github.com/cloudflare/terraform-provider-cloudflare/issues/2328>.
pub(crate) const INVALID: u64 = 12130;

/// What begins the text of a refusal.
const INVALID_TEXT: &str = "access.api.error.invalid_request";

/// The answer to an id of which nothing is known.
const NOT_FOUND: Fail = Fail(404, 12135, "access.api.error.not_found");

pub(crate) fn invalid(message: impl std::fmt::Display) -> Refusal {
    Refusal::bad(INVALID, format!("{INVALID_TEXT}: {message}"))
}

/// The answer to everything about Access in an account that has no Zero Trust organisation. Seen with 403, by some with 404;
/// the text is what clients look for:
/// <https://github.com/turbot/steampipe-plugin-cloudflare/blob/main/cloudflare/table_cloudflare_access_application.go>.
pub(crate) fn not_enabled() -> Refusal {
    let how = "Visit the Access dashboard at https://dash.cloudflare.com/ and click the 'Enable Access' button.";
    Refusal::new(403, 9999, format!("access.api.error.not_enabled: Access is not enabled. {how}"))
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
