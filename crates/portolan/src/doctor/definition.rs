//! A definition (CRD) as this program has it and as a cluster has it → where they differ. Pure.

use serde_json::Value;

/// How many differences are named.
const NAMED: usize = 3;

/// A definition in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) state: DefinitionState,
}

/// How it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionState {
    /// As this program has it.
    Current,
    /// Not at all.
    Missing,
    /// Not as this program has it: where.
    Differs(String),
    /// It is there, but not served yet.
    NotEstablished(String),
    /// It may not be read.
    NotKnown(String),
}

impl Definition {
    /// Compares ours with what the cluster answered.
    pub(crate) fn compare(ours: &Value, there: Result<Option<Value>, String>) -> Self {
        let name = ours["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let state = match there {
            Err(why) => DefinitionState::NotKnown(why),
            Ok(None) => DefinitionState::Missing,
            Ok(Some(there)) => state(ours, &there),
        };
        Self { name, state }
    }
}

fn state(ours: &Value, there: &Value) -> DefinitionState {
    let mut found = Vec::new();
    differences(&ours["spec"], &there["spec"], "spec", Extra::Allowed, &mut found);
    if !found.is_empty() {
        let more = found.len().saturating_sub(NAMED);
        found.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return DefinitionState::Differs(format!("{}{more}", found.join(", ")));
    }
    match established(there) {
        Some(condition) if condition["status"] == "True" => DefinitionState::Current,
        Some(condition) => {
            DefinitionState::NotEstablished(condition["message"].as_str().unwrap_or_default().to_owned())
        }
        None => DefinitionState::NotEstablished("the server has not looked at it yet".to_owned()),
    }
}

fn established(there: &Value) -> Option<&Value> {
    let conditions = there["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Established")
}

/// Whether the cluster's definition may say more than ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    /// The server adds what is usual.
    Allowed,
    /// What a schema says more is a difference.
    Told,
}

fn differences(ours: &Value, there: &Value, place: &str, extra: Extra, found: &mut Vec<String>) {
    match (ours, there) {
        (Value::Object(ours), Value::Object(there)) => {
            for (name, value) in ours {
                let extra = if name == "openAPIV3Schema" { Extra::Told } else { extra };
                let other = there.get(name).unwrap_or(&Value::Null);
                differences(value, other, &format!("{place}.{name}"), extra, found);
            }
            let more = there.keys().filter(|name| extra == Extra::Told && !ours.contains_key(*name));
            found.extend(more.map(|name| format!("{place}.{name}")));
        }
        (Value::Array(ours), Value::Array(there)) if ours.len() == there.len() => {
            for (index, (value, other)) in ours.iter().zip(there).enumerate() {
                differences(value, other, &format!("{place}[{index}]"), extra, found);
            }
        }
        (ours, there) if is_same(ours, there) => {}
        _ => found.push(place.to_owned()),
    }
}

/// Numbers come back in another spelling, and what is empty not at all.
fn is_same(ours: &Value, there: &Value) -> bool {
    let is_nothing =
        |value: &Value| value.is_null() || value == false || value.as_array().is_some_and(Vec::is_empty) || value == "";
    ours == there || (ours.is_number() && ours.as_f64() == there.as_f64()) || (is_nothing(ours) && is_nothing(there))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours() -> Value {
        json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"ttl": {"type": "integer", "maximum": 300.0}}}}}]},
        })
    }

    /// As a server answers: with what it adds, and established.
    fn there() -> Value {
        let mut there = ours();
        there["spec"]["conversion"] = json!({"strategy": "None"});
        there["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["ttl"]["maximum"] = json!(300);
        there["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        there
    }

    fn compared(there: Value) -> DefinitionState {
        Definition::compare(&ours(), Ok(Some(there))).state
    }

    #[test]
    fn what_a_server_adds_is_no_difference() {
        assert_eq!(compared(there()), DefinitionState::Current);
    }

    #[test]
    fn an_older_schema_differs_where_it_says_less_or_more() {
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
        let mut less = there();
        less.pointer_mut(schema).unwrap().as_object_mut().unwrap().remove("ttl");
        let mut more = there();
        more.pointer_mut(schema).unwrap()["ttl"]["default"] = json!(120);

        let place = "spec.versions[0].schema.openAPIV3Schema.properties.ttl";
        assert_eq!(compared(less), DefinitionState::Differs(place.to_owned()));
        assert_eq!(compared(more), DefinitionState::Differs(format!("{place}.default")));
    }

    #[test]
    fn missing_unreadable_and_not_yet_served_are_told_apart() {
        let mut waiting = there();
        waiting["status"] = json!({});

        assert_eq!(Definition::compare(&ours(), Ok(None)).state, DefinitionState::Missing);
        assert_eq!(Definition::compare(&ours(), Err("no".into())).state, DefinitionState::NotKnown("no".into()));
        assert!(matches!(compared(waiting), DefinitionState::NotEstablished(_)));
    }

    #[test]
    fn many_differences_are_counted() {
        let mut other = there();
        other["spec"] = json!({});

        let DefinitionState::Differs(text) = compared(other) else { panic!("it differs") };
        assert_eq!(text, "spec.group, spec.versions");
    }
}
