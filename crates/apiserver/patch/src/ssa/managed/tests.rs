use serde_json::json;

use super::*;

fn entry(manager: &str, operation: Operation, time: &str, field: &str) -> ManagedEntry {
    let mut entry = ManagedEntry::new(manager, operation, "v1", "");
    entry.time = Time::parse(time);
    entry.set = FieldSet::of_fields(&[&[field]]);
    entry
}

fn managed(entries: Vec<ManagedEntry>) -> Managed {
    let mut managed = Managed::default();
    for entry in entries {
        managed.insert(entry);
    }
    managed
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap()).collect()
}

#[test]
fn an_applier_is_one_owner_in_all_versions() {
    let identifier = |operation, version| ManagedEntry::new("m", operation, version, "status").identifier();

    assert_eq!(identifier(Operation::Apply, "a/v1"), identifier(Operation::Apply, "a/v2"));
    assert_ne!(identifier(Operation::Update, "a/v1"), identifier(Operation::Update, "a/v2"));
    assert_eq!(
        identifier(Operation::Update, "a/v1"),
        r#"{"manager":"m","operation":"Update","apiVersion":"a/v1","subresource":"status"}"#
    );
}

#[test]
fn a_nameless_manager_is_unknown() {
    assert_eq!(ManagedEntry::new("", Operation::Update, "v1", "").manager, "unknown");
}

#[test]
fn appliers_come_first_then_the_oldest_then_by_name() {
    let managed = managed(vec![
        entry("late", Operation::Update, "2026-01-02T00:00:00Z", "a"),
        entry("b", Operation::Update, "2026-01-01T00:00:00Z", "b"),
        entry("a", Operation::Update, "2026-01-01T00:00:00Z", "c"),
        entry("timeless", Operation::Update, "", "d"),
        entry("applier", Operation::Apply, "2026-01-03T00:00:00Z", "e"),
    ]);

    assert_eq!(names(&managed.encode().unwrap()), ["applier", "timeless", "a", "b", "late"]);
}

#[test]
fn an_entry_reads_back_as_it_was_written() {
    let list = json!([{
        "manager": "m", "operation": "Apply", "apiVersion": "apps/v1", "subresource": "status",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}},
    }]);

    assert_eq!(Managed::decode(&list).unwrap().encode().unwrap(), list);
}

#[test]
fn malformed_entries_are_refused() {
    let good = json!({
        "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}},
    });
    for (name, bad) in [
        ("operation", json!("Merge")),
        ("apiVersion", json!("")),
        ("fieldsType", json!("FieldsV2")),
        ("fieldsType", json!("")),
        ("fieldsV1", json!({"a": {}})),
        ("time", json!("noon")),
        ("manager", json!(1)),
    ] {
        let mut entry = good.clone();
        entry[name] = bad;

        assert_eq!(Managed::decode(&json!([entry])), Err(Malformed), "{name}");
    }
    assert!(Managed::decode(&json!([good])).is_ok());
}

#[test]
fn an_empty_list_or_one_empty_entry_is_a_reset() {
    assert!(is_reset(&json!([])));
    assert!(is_reset(&json!([{}])));
    assert!(!is_reset(&json!([{"manager": "m"}])));
    assert!(!is_reset(&json!([{}, {}])));
    assert!(!is_reset(&json!(null)));
}

#[test]
fn the_oldest_updaters_are_folded_into_one() {
    let updaters = (0..12).map(|at| {
        entry(&format!("u{at:02}"), Operation::Update, &format!("2026-01-{:02}T00:00:00Z", at + 1), &format!("f{at}"))
    });
    let mut managed = managed(updaters.collect());

    managed.cap();

    let list = managed.encode().unwrap();
    assert_eq!(names(&list)[0], "ancient-changes");
    assert_eq!(list.as_array().unwrap().len(), 10);
    assert_eq!(list[0]["fieldsV1"], json!({"f:f0": {}, "f:f1": {}, "f:f2": {}}));
    assert_eq!(list[0]["time"], "2026-01-03T00:00:00Z");
}

#[test]
fn appliers_are_never_folded() {
    let appliers = (0..12).map(|at| entry(&format!("a{at}"), Operation::Apply, "2026-01-01T00:00:00Z", "f"));
    let mut managed = managed(appliers.collect());

    managed.cap();

    assert_eq!(managed.entries.len(), 12);
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let mut object = json!({"metadata": {"managedFields": [{"apiVersion": "a/v1"}, {"apiVersion": "a/v2"}, {}]}});

    keep_versions(&mut object, &["a/v2"]);

    assert_eq!(object["metadata"]["managedFields"], json!([{"apiVersion": "a/v2"}, {}]));
}
