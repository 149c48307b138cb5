use proptest::{collection::btree_map, prelude::*};
use serde_json::json;

use super::*;
use crate::reasons;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn synced() -> NewCondition {
    NewCondition::ready(reasons::SYNCED, "DNS record is in sync")
}

fn broken() -> NewCondition {
    NewCondition::not_ready(reasons::ERROR, "the API is away")
}

#[test]
fn the_transition_time_moves_only_when_the_status_flips() {
    let first = merge(&[], &[synced()], 1, at(0));
    let again = merge(&first, &[NewCondition::ready(reasons::ADOPTED, "now ours")], 2, at(60));
    let flipped = merge(&again, &[broken()], 2, at(120));

    assert_eq!(again[0].last_transition_time, "1970-01-01T00:00:00Z");
    assert_eq!((again[0].reason.as_str(), again[0].observed_generation), ("Adopted", Some(2)));
    assert_eq!(flipped[0].last_transition_time, "1970-01-01T00:02:00Z");
}

#[test]
fn conditions_of_others_stay_untouched() {
    let theirs = Condition {
        r#type: "Audited".to_owned(),
        status: ConditionStatus::Unknown,
        reason: String::new(),
        message: "by somebody".to_owned(),
        observed_generation: None,
        last_transition_time: String::new(),
    };

    let merged = merge(std::slice::from_ref(&theirs), &[synced()], 1, at(0));

    assert_eq!(merged[0], theirs);
    assert!(is_ready(&merged));
}

#[test]
fn stalled_and_reconciling_are_shown_only_while_true() {
    let stalled = merge(&[], &[broken(), NewCondition::stalled(reasons::INVALID_CONFIG, "fix the name")], 1, at(0));
    let cleared = merge(&stalled, &[synced(), NewCondition::not_stalled(), NewCondition::settled()], 2, at(9));

    assert_eq!(find(&stalled, STALLED).unwrap().status, ConditionStatus::True);
    assert_eq!(cleared.iter().map(|c| c.r#type.as_str()).collect::<Vec<_>>(), ["Ready"]);
}

#[test]
fn the_last_statement_about_a_type_counts() {
    let merged = merge(&[], &[synced(), broken()], 1, at(0));

    assert_eq!(merged.len(), 1);
    assert!(!is_ready(&merged));
}

#[test]
fn a_condition_is_written_as_kubernetes_does() {
    let merged = merge(&[], &[synced()], 3, at(1));

    assert_eq!(
        serde_json::to_value(&merged).unwrap(),
        json!([{
            "type": "Ready", "status": "True", "reason": "Synced", "message": "DNS record is in sync",
            "observedGeneration": 3, "lastTransitionTime": "1970-01-01T00:00:01Z",
        }])
    );
}

#[test]
fn a_condition_without_times_and_reasons_is_read_and_written_back_as_it_was() {
    let there = json!({ "type": "Ready", "status": "False", "message": "" });

    let condition: Condition = serde_json::from_value(there.clone()).unwrap();

    assert_eq!(serde_json::to_value(&condition).unwrap(), there);
    assert_eq!(merge(&[condition], &[broken()], 1, at(5))[0].last_transition_time, "1970-01-01T00:00:05Z");
}

#[test]
fn a_message_longer_than_kubernetes_takes_is_cut() {
    let merged = merge(&[], &[NewCondition::not_ready(reasons::ERROR, "ü".repeat(40_000))], 1, at(0));

    assert_eq!(merged[0].message.chars().count(), 32_768);
}

#[test]
fn the_schema_allows_the_three_statuses_and_asks_for_type_and_status() {
    let schema = serde_json::to_value(schemars::schema_for!(Condition)).unwrap();

    assert_eq!(schema["properties"]["status"]["enum"], json!(["True", "False", "Unknown"]));
    assert_eq!(schema["properties"]["lastTransitionTime"]["format"], "date-time");
    assert_eq!(schema["required"], json!(["type", "status"]));
}

#[test]
fn statuses_that_differ_only_in_times_are_the_same() {
    let a = json!({ "id": "1", "lastValidatedTime": "x", "gone": null,
                    "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "x" }] });
    let b = json!({ "id": "1",
                    "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "y" }] });
    let c = json!({ "id": "1", "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": "y" }] });

    assert!(same_ignoring_times(&a, &b) && same_ignoring_times(&b, &a));
    assert!(!same_ignoring_times(&b, &c) && !same_ignoring_times(&c, &b));
}

#[test]
fn further_fields_are_ignored_only_when_named() {
    let (a, b) = (json!({ "adoptedAt": 1 }), json!({ "adoptedAt": 2 }));

    assert!(!same_ignoring_times(&a, &b));
    assert!(same_ignoring(&a, &b, &["adoptedAt"]));
}

#[test]
fn lists_of_other_lengths_differ() {
    assert!(!same_ignoring_times(&json!({ "ids": ["a"] }), &json!({ "ids": ["a", "b"] })));
    assert!(!same_ignoring_times(&json!({ "ids": [] }), &json!({})));
}

#[test]
fn a_field_on_either_side_only_is_a_difference() {
    assert!(!same_ignoring_times(&json!({ "id": "1" }), &json!({})));
    assert!(!same_ignoring_times(&json!({}), &json!({ "id": "1" })));
}

proptest! {
    #[test]
    fn stating_the_same_again_changes_nothing(stated in btree_map(0usize..4, 0usize..3, 0..4), later in 1i64..9) {
        const TYPES: [&str; 4] = [READY, RECONCILING, STALLED, "Accepted"];
        const STATUSES: [ConditionStatus; 3] = [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown];
        let new: Vec<NewCondition> = stated
            .into_iter()
            .map(|(r#type, status)| NewCondition::of(TYPES[r#type], STATUSES[status], reasons::ERROR, "as before"))
            .collect();

        let once = merge(&[], &new, 1, at(0));

        prop_assert_eq!(merge(&once, &new, 1, at(later)), once);
    }
}
