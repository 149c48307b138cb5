//! What must hold for any schema and any value.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking anywhere")]

use portolan_patch::ssa::{Context, FieldSet, Force, PathElement, apply, fields_v1, reset, update};
use portolan_schema::Schema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("name"), Just("metadata")].prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        (-2.0f64..2.0).prop_map(Value::from),
        "[a-c<]{0,2}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(name(), inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let atomic = prop_oneof![Just("granular"), Just("atomic")];
        let list = prop_oneof![Just("atomic"), Just("set"), Just("map")];
        prop_oneof![
            (btree_map(name(), inner.clone(), 0..4), atomic).prop_map(|(fields, kind)| {
                json!({"type": "object", "properties": fields, "x-kubernetes-map-type": kind})
            }),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            (inner, list).prop_map(|(items, kind)| json!({
                "type": "array", "items": items, "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["name"],
            })),
        ]
    })
}

fn fields() -> impl Strategy<Value = FieldSet> {
    let element = prop_oneof![
        name().prop_map(PathElement::Field),
        scalar().prop_map(PathElement::Value),
        (0i64..3).prop_map(PathElement::Index),
        btree_map(name(), scalar(), 1..3).prop_map(|keys| PathElement::Key(keys.into_iter().collect())),
    ];
    vec(vec(element, 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in &paths {
            set.insert(path);
        }
        set
    })
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "e.com/v1", "kind": "W", "metadata": {"name": "w", "uid": "u"}, "spec": spec})
}

fn context<'a>(manager: &'a str, schema: &'a Schema) -> Context<'a> {
    let (api_version, now) = ("e.com/v1", "2026-01-01T00:00:00Z");
    Context { manager, api_version, subresource: "", now, schema: schema.root(), reset: reset::nothing() }
}

fn kind(spec: &Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

/// What the schema `shared()` lets in.
fn fitting() -> impl Strategy<Value = Value> {
    let text = || "[a-c]{1}".prop_map(Value::from);
    let map = btree_map(name(), text(), 0..3).prop_map(|map| json!(map)).boxed();
    let item = (proptest::option::of(text()), proptest::option::of(map.clone()));
    let items = btree_map("[a-d]", item, 0..4).prop_map(|items| {
        let item = |(name, (value, labels)): (String, (Option<Value>, Option<Value>))| {
            let mut item = json!({"name": name});
            if let Some(value) = value {
                item["value"] = value;
            }
            if let Some(labels) = labels {
                item["labels"] = labels;
            }
            item
        };
        Value::Array(items.into_iter().map(item).collect())
    });
    let set = proptest::collection::btree_set("[a-e]", 0..5).prop_map(|set| json!(set)).prop_shuffle_list();
    let free = value().prop_map(|value| json!({"x": value}));
    let parts = (
        proptest::option::of(text()),
        proptest::option::of(map.clone()),
        proptest::option::of(map),
        proptest::option::of(items),
        proptest::option::of(set),
        proptest::option::of(free),
    );
    parts.prop_map(|(text, map, whole, items, set, free)| {
        let parts = [("text", text), ("map", map), ("whole", whole), ("items", items), ("set", set), ("free", free)];
        Value::Object(parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect())
    })
}

trait ShuffleList: Strategy<Value = Value> + Sized {
    /// The same list in any order.
    fn prop_shuffle_list(self) -> BoxedStrategy<Value>
    where
        Self: 'static,
    {
        self.prop_flat_map(|list| Just(list.as_array().unwrap().clone()).prop_shuffle()).prop_map(Value::Array).boxed()
    }
}

impl<S: Strategy<Value = Value>> ShuffleList for S {}

fn shared() -> Schema {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": text});
    let item = json!({"type": "object", "properties": {"name": text, "value": text, "labels": map}});
    kind(&json!({"type": "object", "properties": {
        "text": text, "map": map,
        "whole": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "items": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}))
}

proptest! {
    #[test]
    fn fields_read_back_as_they_were_written(set in fields()) {
        prop_assert_eq!(fields_v1::decode(&fields_v1::encode(&set)).unwrap(), set);
    }

    #[test]
    fn any_json_is_read_or_refused_as_fields(value in value()) {
        let _ = fields_v1::decode(&value);
    }

    #[test]
    fn sets_follow_the_laws_of_sets(a in fields(), b in fields(), c in fields()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.intersection(&a), a.clone());
        prop_assert!(a.difference(&a).is_empty());
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        prop_assert_eq!(a.difference(&b).difference(&c), a.difference(&b.union(&c)));
        prop_assert_eq!(a.union(&b).len() + a.intersection(&b).len(), a.len() + b.len());
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
        prop_assert!(a.leaves().difference(&a).is_empty());
        prop_assert!(a.paths().iter().all(|path| a.contains(path)));
    }

    #[test]
    fn any_object_and_configuration_end_in_an_answer(
        spec in schema(), live in value(), config in value(), again in value(),
    ) {
        let schema = kind(&spec);
        let (one, two) = (context("one", &schema), context("two", &schema));

        let created = update(&Value::Null, object(&live), &one);
        if let Ok(applied) = apply(&created, &object(&config), &two, Force::Yes) {
            let updated = update(&applied, object(&again), &one);
            let _ = apply(&updated, &object(&live), &two, Force::No);
        }
    }

    #[test]
    fn any_managed_fields_are_read_or_ignored(entries in value(), config in fitting()) {
        let schema = shared();
        let mut new = object(&config);
        new["metadata"]["managedFields"] = entries;
        let live = new.clone();

        let _ = update(&live, new, &context("one", &schema));
        let _ = apply(&live, &object(&config), &context("two", &schema), Force::Yes);
    }

    #[test]
    fn an_apply_twice_is_an_apply_once(start in fitting(), others in fitting(), config in fitting()) {
        let schema = shared();
        let live = update(&Value::Null, object(&start), &context("creator", &schema));
        let live = apply(&live, &object(&others), &context("other", &schema), Force::Yes).unwrap();

        let mut once = apply(&live, &object(&config), &context("me", &schema), Force::Yes).unwrap();
        let twice = apply(&once, &object(&config), &Context { now: "2027-01-01T00:00:00Z", ..context("me", &schema) }, Force::Yes);

        prop_assert_eq!(twice.unwrap(), once.take());
    }

    #[test]
    fn what_is_applied_is_there(start in fitting(), config in fitting()) {
        let schema = shared();
        let live = update(&Value::Null, object(&start), &context("creator", &schema));

        let applied = apply(&live, &object(&config), &context("me", &schema), Force::Yes).unwrap();

        for name in ["text", "whole"] {
            if let Some(value) = config.get(name) {
                prop_assert_eq!(&applied["spec"][name], value);
            }
        }
        for item in config.get("set").and_then(Value::as_array).into_iter().flatten() {
            prop_assert!(applied["spec"]["set"].as_array().unwrap().contains(item));
        }
        for (key, value) in config.get("map").and_then(Value::as_object).into_iter().flatten() {
            prop_assert_eq!(&applied["spec"]["map"][key], value);
        }
    }

    #[test]
    fn a_conflict_is_always_about_a_value_that_differs(start in fitting()) {
        let schema = shared();
        let live = update(&Value::Null, object(&start), &context("creator", &schema));

        prop_assert!(apply(&live, &object(&start), &context("me", &schema), Force::No).is_ok());
    }
}
