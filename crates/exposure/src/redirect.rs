//! A redirect from HTTP to HTTPS for one name: a rule of the zone's ruleset for redirects, edited rule by rule.

use http::Method;
use portolan_cloudflare_api::{ApiError, ErrorClass, Request};
use portolan_core::{Claim, Hostname, Mark};
use serde_json::{Value, json};

/// The phase in which redirects are made.
const PHASE: &str = "http_request_dynamic_redirect";
/// Characters of a description.
const DESCRIPTION_LIMIT: usize = 500;

const ENTRY_POINT: &str = "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint";
const RULESETS: &str = "/zones/{zone_id}/rulesets";
const RULES: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";
const RULE: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}";

/// What a zone has of redirects.
#[derive(Clone, Debug, PartialEq)]
pub enum Redirects {
    /// Its ruleset; `null` where it has none.
    Ruleset(Value),
    /// The credential may not see it.
    Denied(String),
}

/// Whether a refusal says nothing about whether redirects can be had at all.
pub(crate) fn may_pass(error: &ApiError) -> bool {
    matches!(error.class, ErrorClass::Transient | ErrorClass::RateLimit)
}

/// Reads a zone's ruleset.
pub(crate) fn read(zone_id: &str) -> Request {
    Request::get(ENTRY_POINT, &[zone_id, PHASE])
}

/// Makes a zone's ruleset with a first rule.
pub(crate) fn create_ruleset(zone_id: &str, rule: &Value) -> Request {
    let body = json!({"name": "default", "kind": "zone", "phase": PHASE, "rules": [rule]});
    Request::new(Method::POST, RULESETS, &[zone_id]).with_body(body)
}

/// Whether a request makes a ruleset.
pub(crate) fn makes_ruleset(request: &Request) -> bool {
    request.template == RULESETS
}

/// Adds a rule.
pub(crate) fn create(zone_id: &str, ruleset_id: &str, rule: &Value) -> Request {
    Request::new(Method::POST, RULES, &[zone_id, ruleset_id]).with_body(rule.clone())
}

/// Changes a rule.
pub(crate) fn update(zone_id: &str, ruleset_id: &str, rule_id: &str, rule: &Value) -> Request {
    Request::new(Method::PATCH, RULE, &[zone_id, ruleset_id, rule_id]).with_body(rule.clone())
}

/// Deletes a rule.
pub(crate) fn delete(zone_id: &str, ruleset_id: &str, rule_id: &str) -> Request {
    Request::new(Method::DELETE, RULE, &[zone_id, ruleset_id, rule_id])
}

/// The rule that sends a name's plain requests to HTTPS.
pub(crate) fn body(hostname: &Hostname, mark: &Mark) -> Value {
    let host = match hostname.as_str().strip_prefix('*') {
        Some(suffix) => format!("ends_with(http.host, \"{suffix}\")"),
        None => format!("http.host eq \"{hostname}\""),
    };
    json!({
        "action": "redirect",
        "action_parameters": {"from_value": {
            "status_code": 301,
            "target_url": {"expression": "concat(\"https://\", http.host, http.request.uri.path)"},
            "preserve_query_string": true,
        }},
        "expression": format!("({host} and not ssl)"),
        "description": mark.write("HTTP to HTTPS", DESCRIPTION_LIMIT),
        "enabled": true,
    })
}

/// Our rule in a ruleset.
pub(crate) fn find<'a>(ruleset: &'a Value, mark: &Mark) -> Option<&'a Value> {
    rules(ruleset).iter().find(|rule| matches!(mark.claim(text(rule, "description")), Claim::Ours { .. }))
}

/// The rule with an id, unless it carries somebody else's mark.
pub(crate) fn by_id<'a>(ruleset: &'a Value, id: &str, mark: &Mark) -> Option<&'a Value> {
    let rule = rules(ruleset).iter().find(|rule| text(rule, "id") == id)?;
    (!matches!(mark.claim(text(rule, "description")), Claim::Foreign(_))).then_some(rule)
}

/// Whether a found rule does what is wanted.
pub(crate) fn is(found: &Value, wanted: &Value) -> bool {
    ["action", "action_parameters", "expression"].iter().all(|field| found.get(*field) == wanted.get(*field))
        && found.get("enabled").and_then(Value::as_bool).unwrap_or(true)
}

/// The id of a ruleset or rule.
pub(crate) fn id(value: &Value) -> Option<String> {
    value.get("id").and_then(Value::as_str).map(str::to_owned)
}

fn rules(ruleset: &Value) -> &[Value] {
    ruleset.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
