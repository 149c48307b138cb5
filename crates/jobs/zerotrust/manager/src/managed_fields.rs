//! Who owns which fields of a Deployment: our entries in its `managedFields`, found and taken out.
//!
//! What a configuration says is applied, so that the Deployment tells who holds a field. What applying cannot do
//! (putting back, replacing a whole object) is written plainly, which leaves a second entry: it is taken out
//! afterwards, so that whoever deployed the operator meets no conflict over a field that is held no longer.

use serde_json::Value;

/// Under this name a configuration's fields are held.
pub const MANAGER: &str = "portolan-operator-config";

/// Which entries of ours there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    /// What was applied.
    pub(crate) applied: bool,
    /// What was written plainly.
    pub(crate) updated: bool,
}

impl Owned {
    /// Our entries of an object.
    pub(crate) fn of(object: &Value) -> Self {
        let has = |operation: &str| entries(object).any(|entry| is_ours(entry) && entry["operation"] == operation);
        Self { applied: has("Apply"), updated: has("Update") }
    }
}

/// Which of our entries stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Applied,
    Nothing,
}

/// The object without those of our entries that do not stay; none where there are none to take out.
pub(crate) fn disowned(object: &Value, keep: Keep) -> Option<Value> {
    let stays = |entry: &Value| !is_ours(entry) || (keep == Keep::Applied && entry["operation"] == "Apply");
    if entries(object).all(stays) {
        return None;
    }
    let left: Vec<Value> = entries(object).filter(|entry| stays(entry)).cloned().collect();
    let mut object = object.clone();
    // An empty list would be taken for no word about owners; one empty entry forgets them all.
    let left = if left.is_empty() { vec![serde_json::json!({})] } else { left };
    object["metadata"]["managedFields"] = Value::Array(left);
    Some(object)
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten()
}

fn is_ours(entry: &Value) -> bool {
    entry["manager"] == MANAGER
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(entries: &[(&str, &str)]) -> Value {
        let entries: Vec<Value> =
            entries.iter().map(|(manager, operation)| json!({"manager": manager, "operation": operation})).collect();
        json!({"metadata": {"managedFields": entries}})
    }

    #[test]
    fn only_our_own_entries_are_taken_out() {
        let all = owned(&[("helm", "Apply"), (MANAGER, "Apply"), (MANAGER, "Update")]);
        assert_eq!(Owned::of(&all), Owned { applied: true, updated: true });

        assert_eq!(disowned(&all, Keep::Applied), Some(owned(&[("helm", "Apply"), (MANAGER, "Apply")])));
        assert_eq!(disowned(&all, Keep::Nothing), Some(owned(&[("helm", "Apply")])));
    }

    #[test]
    fn an_object_without_entries_of_ours_stays_as_it_is() {
        let theirs = owned(&[("helm", "Apply")]);

        assert_eq!(disowned(&theirs, Keep::Nothing), None);
        assert_eq!(disowned(&json!({}), Keep::Nothing), None);
        assert_eq!(Owned::of(&theirs), Owned { applied: false, updated: false });
    }
}
