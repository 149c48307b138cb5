//! The simulator's objects → what is at Cloudflare, by kind and name, in the words of plans.

use std::collections::{BTreeMap, BTreeSet};

use portolan_cloudflare_sim::Simulator;
use portolan_core::{Action, Plan};
use serde_json::Value;

use super::{ACCOUNT, TUNNELS};

/// One thing: `create DNS record A www.example.com`.
pub(super) type ObservedLine = String;

/// What is there: kind and id → name and content.
pub(super) struct Observed(BTreeMap<(&'static str, String), (String, Value)>);

impl Observed {
    pub(super) fn of(simulator: &Simulator) -> Self {
        let mut all = Self(BTreeMap::new());
        for zone in simulator.objects("zones", "") {
            let id = text(&zone, "id");
            for record in simulator.objects("dns_records", id) {
                let name = format!("{} {}", text(&record, "type"), text(&record, "name"));
                all.add("DNS record", name, text(&record, "id"), &record);
            }
            for ruleset in simulator.objects("rulesets", id) {
                for rule in ruleset["rules"].as_array().into_iter().flatten() {
                    let name = text(rule, "expression").split('"').nth(1).unwrap_or_default();
                    all.add("redirect rule", name.to_owned(), text(rule, "id"), rule);
                }
            }
        }
        for app in simulator.objects("access/apps", ACCOUNT) {
            all.add("Access application", text(&app, "domain").to_owned(), text(&app, "id"), &app);
        }
        for policy in simulator.objects("access/policies", ACCOUNT) {
            let name = text(&policy, "name").split(" [managed").next().unwrap_or_default();
            all.add("Access policy", name.to_owned(), text(&policy, "id"), &policy);
        }
        for token in simulator.objects("access/service_tokens", ACCOUNT) {
            all.add("service token", text(&token, "name").to_owned(), text(&token, "id"), &token);
        }
        let inside = &simulator.snapshot()["tunnels"];
        for tunnel in TUNNELS {
            let rules =
                inside[tunnel].pointer("/configuration/config/ingress").or(inside[tunnel].pointer("/config/ingress"));
            for rule in rules.and_then(Value::as_array).into_iter().flatten() {
                if let Some(hostname) = rule["hostname"].as_str() {
                    all.add("tunnel rule", format!("{hostname} in {tunnel}"), "", rule);
                }
            }
        }
        all
    }

    fn add(&mut self, kind: &'static str, name: String, id: &str, object: &Value) {
        let mut content = object.clone();
        for field in ["modified_on", "created_on", "updated_at", "created_at", "last_updated", "version", "expires_at"]
        {
            content.as_object_mut().map(|content| content.remove(field));
        }
        if let Some(policies) = content["policies"].as_array_mut() {
            for policy in policies {
                for field in ["updated_at", "created_at"] {
                    policy.as_object_mut().map(|policy| policy.remove(field));
                }
            }
        }
        let id = if id.is_empty() { name.clone() } else { id.to_owned() };
        self.0.insert((kind, id), (name, content));
    }

    /// The names that an application stands for, and those that are published.
    pub(super) fn names(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let of =
            |kind: &'static str| self.0.iter().filter(move |((one, _), _)| *one == kind).map(|(_, (name, _))| name);
        let rules = of("tunnel rule").filter_map(|name| Some(name.split_once(" in ")?.0.to_owned()));
        (of("Access application").cloned().collect(), rules.collect())
    }

    /// What changed until then.
    pub(super) fn until(&self, after: &Self) -> BTreeSet<ObservedLine> {
        let keys: BTreeSet<_> = self.0.keys().chain(after.0.keys()).collect();
        let changed = keys.into_iter().filter_map(|key| {
            let (verb, name) = match (self.0.get(key), after.0.get(key)) {
                (None, Some((name, _))) => ("create", name),
                (Some((name, _)), None) => ("delete", name),
                (Some(old), Some(new)) if old != new => ("update", &new.0),
                _ => return None,
            };
            Some(format!("{verb} {} {name}", key.0))
        });
        changed.collect()
    }
}

/// What a plan says would change, in the same words.
pub(super) fn planned(plan: &Plan) -> BTreeSet<ObservedLine> {
    let line = |change: &portolan_core::Change| {
        let target = &change.target;
        let place = if target.kind == "tunnel rule" { format!(" in {}", target.scope) } else { String::new() };
        format!("{} {} {}{place}", change.action.as_str(), target.kind, target.name)
    };
    let all: Vec<ObservedLine> =
        plan.changes.iter().filter(|change| change.action != Action::Release).map(line).collect();
    let unique: BTreeSet<ObservedLine> = all.iter().cloned().collect();
    assert_eq!(unique.len(), all.len(), "each change is planned once: {all:#?}");
    // What is made closed and opened when its token is there is one thing that comes.
    let comes = |line: &ObservedLine| {
        line.strip_prefix("update ").is_some_and(|what| unique.contains(&format!("create {what}")))
    };
    unique.iter().filter(|line| !comes(line)).cloned().collect()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}
