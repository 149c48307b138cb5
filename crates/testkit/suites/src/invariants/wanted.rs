//! What users want at Cloudflare, field by field, in words of its own: an object's spec in, fields that differ out.
//!
//! Nothing here is shared with the operator: how it reads specs and compares bodies is what is checked.

use serde_json::{Value, json};

use super::comment;
use crate::cloudflare::live;

/// The shortest comment that Cloudflare cuts: 100 characters in a zone of the free plan.
const SHORTEST_CUT: usize = 100;

/// A field that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldDifference {
    field: &'static str,
    wanted: Value,
    real: Value,
}

impl std::fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} should be {} and is {}", self.field, self.wanted, self.real)
    }
}

/// Everything by which a user's object and what stands for it differ; the others are what it may refer to.
pub(super) fn differences(object: &Value, there: &Value, others: &[Value], state: &Value) -> Vec<FieldDifference> {
    let fields = match object["kind"].as_str() {
        Some("DNSRecord") => record(&object["spec"], there),
        Some("VirtualNetwork") => vec![("name", network_name(object), there["name"].clone())],
        Some("NetworkRoute") => route(&object["spec"], there, others, state),
        _ => return Vec::new(),
    };
    let mut found: Vec<FieldDifference> = fields
        .into_iter()
        .filter(|(_, wanted, real)| wanted != real)
        .map(|(field, wanted, real)| FieldDifference { field, wanted, real })
        .collect();
    found.extend(comment_difference(&object["spec"]["comment"], comment(there)));
    found
}

type WantedField = (&'static str, Value, Value);

/// A record. What comes from another object of the cluster is looked at where that is tested.
fn record(spec: &Value, there: &Value) -> Vec<WantedField> {
    let kind = spec["type"].as_str().unwrap_or_default();
    let proxied = spec["proxied"] == true;
    // What Cloudflare stands in front of always has an automatic time to live.
    let ttl = if proxied { 1 } else { spec["ttl"].as_u64().unwrap_or(1) };
    let mut fields =
        vec![("ttl", json!(ttl), there["ttl"].clone()), ("proxied", json!(proxied), json!(there["proxied"] == true))];
    if !spec["type"].is_null() {
        fields.push(("type", spec["type"].clone(), there["type"].clone()));
    }
    // Short names are below a zone that only its id names.
    if spec["name"].as_str().is_some_and(|name| name.contains('.')) {
        fields.push(("name", plain(&spec["name"]), plain(&there["name"])));
    }
    if spec["data"].is_object() {
        fields.push(("data", parts(spec), members(&there["data"], &parts(spec))));
    } else if !spec["content"].is_null() {
        fields.push(("content", value(kind, &spec["content"]), value(kind, &there["content"])));
    }
    if kind == "MX" {
        fields.push(("priority", spec["priority"].clone(), there["priority"].clone()));
    }
    fields
}

/// The parts of a value that the spec says; the priority of an SRV record is one of them at Cloudflare.
fn parts(spec: &Value) -> Value {
    let mut parts = spec["data"].clone();
    if spec["type"] == "SRV" && parts["priority"].is_null() {
        parts["priority"] = spec["priority"].clone();
    }
    parts
}

/// Those members that the wanted value has, too.
fn members(real: &Value, wanted: &Value) -> Value {
    let names = wanted.as_object().into_iter().flatten().map(|(name, _)| name);
    Value::Object(names.map(|name| (name.clone(), real[name.as_str()].clone())).collect())
}

/// A value in one way of writing it: texts without quotes, everything else without case and final dot.
fn value(kind: &str, content: &Value) -> Value {
    match content.as_str() {
        Some(text) if kind == "TXT" => json!(unquoted(text)),
        _ => plain(content),
    }
}

fn plain(text: &Value) -> Value {
    text.as_str().map_or_else(|| text.clone(), |text| json!(text.trim_end_matches('.').to_lowercase()))
}

/// A text out of its quoted pieces (`"one" "two"` is `onetwo`); one that begins without a quote is as it is.
fn unquoted(text: &str) -> String {
    if !text.starts_with('"') {
        return text.to_owned();
    }
    let (mut out, mut inside, mut characters) = (String::new(), false, text.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' if inside => out.extend(characters.next()),
            '"' => inside = !inside,
            _ if inside => out.push(character),
            _ => {}
        }
    }
    out
}

fn network_name(object: &Value) -> Value {
    let spec = &object["spec"]["name"];
    if spec.is_null() { object["metadata"]["name"].clone() } else { spec.clone() }
}

fn route(spec: &Value, there: &Value, others: &[Value], state: &Value) -> Vec<WantedField> {
    let mut fields = vec![("network", spec["network"].clone(), there["network"].clone())];
    if let Some(tunnel) = tunnel_id(&spec["tunnelRef"], others, state) {
        fields.push(("tunnel", tunnel, there["tunnel_id"].clone()));
    }
    if let Some(network) = virtual_network_id(&spec["virtualNetworkRef"]["name"], others, state) {
        fields.push(("virtual network", network, there["virtual_network_id"].clone()));
    }
    fields
}

/// The id of the tunnel that a reference means, by id or by name.
fn tunnel_id(reference: &Value, others: &[Value], state: &Value) -> Option<Value> {
    let referred = |one: &&Value| {
        one["kind"] == reference["kind"]
            && one["metadata"]["name"] == reference["name"]
            && (reference["namespace"].is_null() || one["metadata"]["namespace"] == reference["namespace"])
    };
    let tunnel = &others.iter().find(referred)?["spec"]["existingTunnel"];
    if !tunnel["id"].is_null() {
        return Some(tunnel["id"].clone());
    }
    let named = live(state, "cfd_tunnel").into_iter().find(|one| one["name"] == tunnel["name"]);
    named.map(|one| one["id"].clone())
}

/// The id of the network that a name means; of the account's default one where none is named.
fn virtual_network_id(name: &Value, others: &[Value], state: &Value) -> Option<Value> {
    let networks = live(state, "virtual_networks");
    let found = if name.is_null() {
        networks.into_iter().find(|one| one["is_default_network"] == true)
    } else {
        let object = others.iter().find(|one| one["kind"] == "VirtualNetwork" && one["metadata"]["name"] == *name)?;
        let called = network_name(object);
        networks.into_iter().find(|one| one["name"] == called)
    };
    found.map(|one| one["id"].clone())
}

/// What users say stands behind the mark, cut where it does not fit.
fn comment_difference(wanted: &Value, there: &str) -> Option<FieldDifference> {
    let wanted = wanted.as_str().unwrap_or_default().trim();
    let real = there.strip_prefix("[managed").and_then(|rest| rest.split_once(']')).map_or(there, |(_, rest)| rest);
    let real = real.trim();
    let cut = there.chars().count() >= SHORTEST_CUT && wanted.starts_with(real.trim_end_matches('…'));
    let same = wanted == real || cut;
    (!same).then(|| FieldDifference { field: "comment", wanted: json!(wanted), real: json!(real) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_without_their_quotes() {
        assert_eq!(unquoted(r#""one" "two""#), "onetwo");
        assert_eq!(unquoted(r#""say \"hi\" \\""#), r#"say "hi" \"#);
        assert_eq!(unquoted(r#"v=spf1 "x""#), r#"v=spf1 "x""#);
    }

    #[test]
    fn a_comment_that_was_cut_is_as_wanted_and_a_short_one_is_not() {
        let long = "x".repeat(150);
        let cut = format!("[managed:DNSRecord/a/b#1] {}", &long[..90]);

        assert_eq!(comment_difference(&json!(long), &cut), None);
        assert!(comment_difference(&json!("xy"), "[managed:DNSRecord/a/b#1] x").is_some());
    }
}
