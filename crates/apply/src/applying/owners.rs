//! An object's `managedFields` → who owns what of it, and the same list with one owner's fields in another's name. Pure.

use portolan_patch::ssa::{FieldSet, fields_v1};
use serde_json::{Map, Value, json};

/// How an owner came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

/// One owner of an object's fields, but for those of subresources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldOwner<'a> {
    pub(crate) manager: &'a str,
    pub(crate) operation: Operation,
    /// When it wrote last, in RFC 3339; empty where that is not known.
    pub(crate) time: &'a str,
    entry: &'a Value,
}

impl<'a> FieldOwner<'a> {
    fn read(entry: &'a Value) -> Option<Self> {
        if entry["subresource"].as_str().is_some_and(|name| !name.is_empty()) {
            return None;
        }
        let operation = match entry["operation"].as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let time = entry["time"].as_str().unwrap_or_default();
        Some(Self { manager: entry["manager"].as_str()?, operation, time, entry })
    }

    /// How many fields it owns of what users write: everything but the rest of the metadata and the status.
    pub(crate) fn weight(&self) -> usize {
        let Some(fields) = self.entry["fieldsV1"].as_object() else { return 0 };
        let content = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "f:metadata" | "f:status"));
        content.map(|(_, below)| leaves(below).max(1)).sum::<usize>() + self.annotations().map_or(0, leaves)
    }

    /// Whether it owns an annotation.
    pub(crate) fn owns_annotation(&self, name: &str) -> bool {
        self.annotations().is_some_and(|fields| fields.get(format!("f:{name}")).is_some())
    }

    fn annotations(&self) -> Option<&'a Value> {
        self.entry["fieldsV1"]["f:metadata"].get("f:annotations")
    }

    fn fields(&self) -> FieldSet {
        fields_v1::decode(&self.entry["fieldsV1"]).unwrap_or_default()
    }
}

fn leaves(fields: &Value) -> usize {
    let below = |fields: &Map<String, Value>| -> usize {
        fields.iter().filter(|(name, _)| name.as_str() != ".").map(|(_, below)| leaves(below).max(1)).sum()
    };
    fields.as_object().map_or(0, below)
}

/// The owners of an object's fields.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = FieldOwner<'_>> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten().filter_map(FieldOwner::read)
}

/// `managedFields` in which the fields of some owners are applied by `manager`, with those that it applied itself; nothing
/// where there are no such owners. So does `kubectl apply --server-side` with what it applied on the client's side before.
pub(crate) fn handed_over(object: &Value, from: impl Fn(&FieldOwner<'_>) -> bool, manager: &str) -> Option<Value> {
    let own = |owner: &FieldOwner<'_>| owner.manager == manager && owner.operation == Operation::Apply;
    let is_from = |owner: &FieldOwner<'_>| !own(owner) && from(owner);
    let given: Vec<FieldOwner<'_>> = owners(object).filter(is_from).collect();
    let first = given.first()?;
    let taking: Vec<FieldOwner<'_>> = given.iter().copied().chain(owners(object).filter(own)).collect();
    let fields = taking.iter().fold(FieldSet::default(), |all, owner| all.union(&owner.fields()));
    let time = taking.iter().map(|owner| owner.time).max().filter(|time| !time.is_empty());
    let mut entry = json!({
        "manager": manager, "operation": "Apply", "apiVersion": first.entry["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": fields_v1::encode(&fields),
    });
    if let Some(time) = time {
        entry["time"] = json!(time);
    }
    let all = object["metadata"]["managedFields"].as_array()?.iter();
    let kept = all.filter(|entry| FieldOwner::read(entry).is_none_or(|owner| !own(&owner) && !from(&owner))).cloned();
    Some(std::iter::once(entry).chain(kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn what_two_appliers_owned_becomes_one_s_and_the_rest_stays() {
        let status =
            json!({"manager": "old", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}});
        let object = json!({"metadata": {"managedFields": [
            entry("old", "Apply", json!({"f:spec": {"f:a": {}}})),
            entry("new", "Apply", json!({"f:spec": {"f:b": {}}})),
            entry("edit", "Update", json!({"f:spec": {"f:c": {}}})),
            status,
        ]}});

        let after = handed_over(&object, |owner| owner.manager == "old", "new").unwrap();

        assert_eq!(after.as_array().unwrap().len(), 3);
        assert_eq!(after[0]["fieldsV1"], json!({"f:spec": {"f:a": {}, "f:b": {}}}));
        assert_eq!((&after[1]["manager"], &after[2]["subresource"]), (&json!("edit"), &json!("status")));
        assert_eq!(handed_over(&object, |owner| owner.manager == "nobody", "new"), None);
    }

    #[test]
    fn what_users_write_weighs_and_the_rest_does_not() {
        let fields = json!({
            "f:metadata": {"f:annotations": {".": {}, "f:a": {}, "f:b": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:c": {}, "f:d": {"f:e": {}}}, "f:status": {"f:g": {}},
        });
        let object = json!({"metadata": {"managedFields": [entry("a", "Update", fields)]}});

        let owner = owners(&object).next().unwrap();

        assert_eq!(owner.weight(), 4);
        assert!(owner.owns_annotation("a") && !owner.owns_annotation("c"));
    }

    #[test]
    fn malformed_entries_own_nothing() {
        let object =
            json!({"metadata": {"managedFields": [1, {"manager": "a"}, {"manager": 1, "operation": "Apply"}]}});

        assert_eq!(owners(&object).count(), 0);
    }
}
