//! What the users of a history said last: manifests in, objects of the cluster that say otherwise out.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::manifests as m;

/// Everything that users applied and did not delete since.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    wishes: BTreeMap<String, Value>,
}

impl Users {
    /// Notes a manifest and what the cluster answered: whoever applies to an object that is going, loses it with the object.
    pub(super) fn applied(&mut self, manifest: &Value, answer: &Value) {
        if answer["metadata"]["deletionTimestamp"].is_null() {
            self.wishes.insert(m::id(manifest), manifest.clone());
        }
    }

    /// Notes that an object is not wanted any longer.
    pub(super) fn deleted(&mut self, id: &str) {
        self.wishes.remove(id);
    }

    /// What the cluster says otherwise than its users: objects that are missing, changed, or there though nobody wants them.
    pub(super) fn contradictions(&self, objects: &[Value]) -> Vec<String> {
        let going = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        let lost = self.wishes.iter().filter_map(|(id, wish)| {
            let found = objects.iter().find(|object| m::id(object) == *id && !going(object));
            match found {
                None => Some(format!("{id} was asked for and is not there")),
                Some(object) => changed(wish, object).map(|field| format!("{id}: somebody changed {field}")),
            }
        });
        let unwanted = objects.iter().filter(|object| !self.wishes.contains_key(&m::id(object)) && !going(object));
        lost.chain(unwanted.map(|object| format!("{} is there and nobody asks for it", m::id(object)))).collect()
    }
}

/// A field of the spec that is not as its user wrote it.
fn changed(wish: &Value, object: &Value) -> Option<String> {
    let fields = wish["spec"].as_object()?;
    let differs = |(name, value): &(&String, &Value)| object["spec"][name.as_str()] != **value;
    fields.iter().find(differs).map(|(name, _)| name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn going(mut object: Value) -> Value {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-05T08:00:00Z");
        object
    }

    fn users() -> (Users, Value) {
        let (mut users, www) = (Users::default(), m::record("www", "192.0.2.1"));
        users.applied(&www, &www);
        (users, www)
    }

    #[test]
    fn a_cluster_that_says_what_its_users_said_contradicts_nothing() {
        let (mut users, www) = users();
        let old = m::network("old");
        users.applied(&old, &old);
        users.deleted(&m::id(&old));

        assert_eq!(users.contradictions(&[www, going(old)]), [""; 0]);
    }

    #[test]
    fn objects_that_went_changed_or_came_by_themselves_are_found() {
        let (users, www) = users();
        let found = |objects: &[Value]| users.contradictions(objects).join("; ");

        assert!(found(&[]).contains("is not there"));
        assert!(found(&[going(www.clone())]).contains("is not there"));
        assert!(found(&[m::record("www", "192.0.2.9")]).contains("changed content"));
        assert!(found(&[www, m::network("corp")]).contains("nobody asks for it"));
    }

    #[test]
    fn what_is_applied_to_an_object_that_is_going_is_lost_with_it() {
        let (mut users, www) = users();
        users.deleted(&m::id(&www));

        users.applied(&www, &going(www.clone()));

        assert_eq!(users.contradictions(&[going(www)]), [""; 0]);
    }
}
