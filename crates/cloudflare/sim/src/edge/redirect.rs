//! Redirect rules of a zone: the first one that fits ends the request.

use serde_json::Value;

use super::{decision::EdgeOutcome, expression, request::EdgeRequest, view::StateView};
use crate::store::{flag, text};

pub(super) fn find(view: StateView<'_>, zone: &str, request: &EdgeRequest) -> Option<EdgeOutcome> {
    view.redirects(zone).filter(|rule| is_on(rule)).find_map(|rule| follow(rule, request))
}

fn is_on(rule: &Value) -> bool {
    text(rule, "action") == "redirect" && rule.get("enabled").is_none_or(|enabled| enabled == true)
}

/// A rule that cannot be read is left out: the edge serves on, and says so in its log.
fn follow(rule: &Value, request: &EdgeRequest) -> Option<EdgeOutcome> {
    match outcome(rule, request) {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::warn!(rule = text(rule, "id"), error, "Left a redirect rule out");
            None
        }
    }
}

fn outcome(rule: &Value, request: &EdgeRequest) -> Result<Option<EdgeOutcome>, String> {
    if !expression::holds(text(rule, "expression"), request)? {
        return Ok(None);
    }
    let from = &rule["action_parameters"]["from_value"];
    let target = &from["target_url"];
    let mut location = match text(target, "expression") {
        "" => text(target, "value").to_owned(),
        written => expression::write(written, request)?,
    };
    if let (true, Some(query)) = (flag(from, "preserve_query_string"), &request.query) {
        location.push(if location.contains('?') { '&' } else { '?' });
        location.push_str(query);
    }
    let status = from["status_code"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(302);
    Ok(Some(EdgeOutcome::Redirect { status, location }))
}
