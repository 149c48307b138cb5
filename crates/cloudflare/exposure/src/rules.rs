//! A tunnel's configuration and our edits → the configuration with our rules, everything else untouched. Pure, in place.
//!
//! What is ours is a rule with our hostname and no `path`; path rules of the same host are others'. The order is the one in
//! which `cloudflared` looks: exact names before wildcards, longer wildcards first, the catch-all last.

use std::fmt::Write as _;

use portolan_core::Hostname;
use portolan_publication::Rule;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::wall;

#[cfg(test)]
mod tests;

/// What a rule for names that nobody publishes answers.
const CATCH_ALL: &str = "http_status:404";

/// One name's edit of a tunnel's configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleEdits {
    /// A rule stands for the name, so.
    Ensure {
        /// The name.
        hostname: Hostname,
        /// Where its requests go.
        rule: Rule,
    },
    /// No rule of ours stands for the name.
    Remove(Hostname),
}

/// Applies edits to a configuration, in order. A configuration that was never written (`null`) becomes one when a rule is
/// added, and stays what it is otherwise.
pub fn merge(config: &mut Value, edits: &[RuleEdits]) {
    for edit in edits {
        match edit {
            RuleEdits::Ensure { hostname, rule } => ensure(config, hostname, rule),
            RuleEdits::Remove(hostname) => remove(config, hostname),
        }
    }
}

/// The rule that is ours or would be: with the hostname and without a path.
pub fn find<'a>(config: &'a Value, hostname: &Hostname) -> Option<&'a Value> {
    ingress(config)?.iter().find(|rule| is_for(rule, hostname))
}

/// Whether a rule does what is wanted; fields that we do not write do not matter.
pub fn matches(found: &Value, wanted: &Rule) -> bool {
    text(found, "service") == wanted.service && origin_request(found) == wanted.origin_request
}

/// The same, but for what the rule asks of requests: what depends on the application is not what the rule is told by.
pub(crate) fn matches_but_wall(found: &Value, wanted: &Rule) -> bool {
    let found = (text(found, "service"), without_wall(&origin_request(found)));
    found == (wanted.service.as_str(), without_wall(&wanted.origin_request))
}

/// Whether a rule asks something of requests.
pub(crate) fn is_walled(found: &Value) -> bool {
    origin_request(found).contains_key(wall::MEMBER)
}

/// Tells whether a rule found later is just the one that was about to be written.
pub fn digest(hostname: &Hostname, rule: &Rule) -> String {
    digest_of(&rule.tunnel_id, hostname, &rule.service, &rule.origin_request)
}

/// The digest of a rule as it stands in a tunnel's configuration.
pub(crate) fn digest_found(tunnel_id: &str, hostname: &Hostname, found: &Value) -> String {
    digest_of(tunnel_id, hostname, text(found, "service"), &origin_request(found))
}

/// The rule as it is written.
pub(crate) fn body(hostname: &Hostname, rule: &Rule) -> Value {
    let mut body = json!({"hostname": hostname.as_str(), "service": rule.service});
    if !rule.origin_request.is_empty() {
        body["originRequest"] = Value::Object(rule.origin_request.clone());
    }
    body
}

fn digest_of(tunnel_id: &str, hostname: &Hostname, service: &str, origin_request: &Map<String, Value>) -> String {
    hex(&json!([tunnel_id, hostname.as_str(), service, without_wall(origin_request)]).to_string())
}

/// The beginning of a text's digest.
pub(crate) fn hex(content: &str) -> String {
    Sha256::digest(content).iter().take(8).fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    })
}

fn ensure(config: &mut Value, hostname: &Hostname, rule: &Rule) {
    let rules = ingress_mut(config);
    match rules.iter_mut().find(|found| is_for(found, hostname)) {
        Some(found) if matches(found, rule) => {}
        Some(found) => replace(found, rule),
        None => rules.insert(position(rules, hostname), body(hostname, rule)),
    }
    if !rules.last().is_some_and(is_catch_all) {
        rules.push(json!({"service": CATCH_ALL}));
    }
}

fn remove(config: &mut Value, hostname: &Hostname) {
    let Some(rules) = config.get_mut("ingress").and_then(Value::as_array_mut) else { return };
    if let Some(index) = rules.iter().position(|rule| is_for(rule, hostname)) {
        rules.remove(index);
    }
}

/// Writes our fields into a rule of ours; fields that are not ours stay.
fn replace(found: &mut Value, rule: &Rule) {
    found["service"] = json!(rule.service);
    if !rule.origin_request.is_empty() {
        found["originRequest"] = Value::Object(rule.origin_request.clone());
    } else if let Some(fields) = found.as_object_mut() {
        fields.remove("originRequest");
    }
}

/// Where a new rule goes: after others' path rules of the same host and, for a wildcard, after the exact names that it
/// would hide; before the wildcards that are less specific, and before the catch-all. Where others' order makes both
/// impossible, the rule still stands before what would hide it.
fn position(rules: &[Value], hostname: &Hostname) -> usize {
    let end = rules.len() - usize::from(rules.last().is_some_and(is_catch_all));
    let first = |test: &dyn Fn(&Value) -> bool| rules[..end].iter().position(test).unwrap_or(end);
    let after_last = |test: &dyn Fn(&Value) -> bool| rules[..end].iter().rposition(test).map_or(0, |index| index + 1);
    let preferred = first(&|rule| is_less_specific(host(rule), hostname));
    let latest =
        first(&|rule| is_less_specific(host(rule), hostname) && covers(host(rule), hostname) && !has_path(rule));
    let earliest = after_last(&|rule| is_same(host(rule), hostname) || hides(hostname, host(rule)));
    preferred.max(earliest).min(latest.max(preferred))
}

/// Whether the rule's pattern is a wildcard that should come after the name.
fn is_less_specific(pattern: &str, hostname: &Hostname) -> bool {
    match (suffix(pattern), suffix(hostname.as_str())) {
        (Some(_), None) => true,
        (Some(theirs), Some(ours)) => labels(theirs) < labels(ours),
        (None, _) => false,
    }
}

/// Whether requests for the name (all of them) match the pattern.
fn covers(pattern: &str, hostname: &Hostname) -> bool {
    let name = suffix(hostname.as_str()).unwrap_or(hostname.as_str());
    match suffix(pattern) {
        Some("") => true,
        Some(theirs) => name.strip_suffix(theirs).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
        None => false,
    }
}

/// Whether our wildcard would hide the pattern if it came first.
fn hides(ours: &Hostname, pattern: &str) -> bool {
    let Some(ours) = suffix(ours.as_str()) else { return false };
    let below = |name: &str| name.strip_suffix(ours).is_some_and(|rest| rest.ends_with('.'));
    match suffix(pattern) {
        None => below(pattern),
        Some(theirs) => below(theirs),
    }
}

/// What follows the star of a wildcard: `*.example.com` → `example.com`, `*` → nothing.
fn suffix(pattern: &str) -> Option<&str> {
    if pattern == "*" { Some("") } else { pattern.strip_prefix("*.") }
}

fn labels(name: &str) -> usize {
    if name.is_empty() { 0 } else { name.split('.').count() }
}

fn is_for(rule: &Value, hostname: &Hostname) -> bool {
    is_same(host(rule), hostname) && !has_path(rule)
}

fn is_same(name: &str, hostname: &Hostname) -> bool {
    name.trim_end_matches('.').eq_ignore_ascii_case(hostname.as_str())
}

fn has_path(rule: &Value) -> bool {
    !text(rule, "path").is_empty()
}

/// Only the last rule is asked: others without a hostname have a path, or make the ones behind them unreachable.
fn is_catch_all(rule: &Value) -> bool {
    matches!(host(rule), "" | "*") && !has_path(rule)
}

fn host(rule: &Value) -> &str {
    text(rule, "hostname")
}

fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn origin_request(rule: &Value) -> Map<String, Value> {
    let mut fields = rule.get("originRequest").and_then(Value::as_object).cloned().unwrap_or_default();
    fields.retain(|_, value| !value.is_null());
    fields
}

fn without_wall(origin_request: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = origin_request.clone();
    fields.remove(wall::MEMBER);
    fields
}

fn ingress(config: &Value) -> Option<&Vec<Value>> {
    config.get("ingress")?.as_array()
}

fn ingress_mut(config: &mut Value) -> &mut Vec<Value> {
    if !config.is_object() {
        *config = json!({});
    }
    let rules = &mut config["ingress"];
    if !rules.is_array() {
        *rules = json!([]);
    }
    rules.as_array_mut().expect("it was just made a list")
}
