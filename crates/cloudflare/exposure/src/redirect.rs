//! A redirect from HTTP to HTTPS for one name: a rule of the zone's ruleset for redirects, edited rule by rule.

use std::fmt;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use portolan_cloudflare_api::{ApiError, ErrorClass, Request};
use portolan_core::{Claim, Hostname, Mark, rfc3339};
use serde_json::{Value, json};

use crate::rules;

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

/// So long a refusal is believed where nothing changed: plans and rights are changed without a word.
const REFUSAL_KEPT: SignedDuration = SignedDuration::from_hours(1);

/// A refused rule that is not asked for again: which one with which credential, when, and why. Written `digest time why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedRedirect {
    digest: String,
    at: Timestamp,
    pub(crate) why: String,
}

impl RefusedRedirect {
    pub(crate) fn new(digest: String, at: Timestamp, why: &str) -> Self {
        Self { digest, at, why: why.to_owned() }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (digest, rest) = text.split_once(' ')?;
        let (at, why) = rest.split_once(' ')?;
        Some(Self { digest: digest.to_owned(), at: at.parse().ok()?, why: why.to_owned() })
    }

    /// Whether asking for a rule at `now` would be the same question.
    pub(crate) fn holds(&self, digest: &str, now: Timestamp) -> bool {
        self.digest == digest && now.duration_since(self.at) < REFUSAL_KEPT
    }
}

impl fmt::Display for RefusedRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.digest, rfc3339(self.at), self.why)
    }
}

/// What a rule in a zone, asked for with a credential, is known by.
pub(crate) fn digest(zone_id: &str, rule: &Value, credential: &str) -> String {
    rules::hex(&format!("{zone_id}\n{credential}\n{rule}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn a_refusal_holds_for_an_hour_for_the_same_rule_zone_and_credential() {
        let asked = |zone, name, credential| digest(zone, &json!({ "expression": name }), credential);
        let refusal = RefusedRedirect::new(asked("z1", "a", "c1"), at(0), "no more than 10 rules");

        let read = RefusedRedirect::parse(&refusal.to_string()).unwrap();

        assert_eq!(read, refusal);
        assert!(read.holds(&asked("z1", "a", "c1"), at(3599)));
        assert!(!read.holds(&asked("z1", "a", "c1"), at(3600)));
        for other in [asked("z2", "a", "c1"), asked("z1", "b", "c1"), asked("z1", "a", "c2")] {
            assert!(!read.holds(&other, at(1)));
        }
        assert_eq!((RefusedRedirect::parse(""), RefusedRedirect::parse("abc never why")), (None, None));
    }
}
