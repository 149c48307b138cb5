//! Laws of the merge over random pods: the difference of two pods leads from one to the other, and once is enough.

use portolan_builtin::schema;
use portolan_patch::strategic::merge;
use portolan_schema::Cursor;
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Map, Value, json};

fn pod_schema() -> Cursor<'static> {
    schema().definition("io.k8s.api.core.v1.Pod").expect("pods are built in")
}

/// The patch that leads from one object to another, as clients write it.
fn difference(from: &Map<String, Value>, to: &Map<String, Value>, schema: Cursor<'_>) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in to.iter().filter(|(name, value)| from.get(*name) != Some(value)) {
        match (from.get(name), value, schema.property(name)) {
            (Some(Value::Object(from)), Value::Object(to), field) => {
                let nested = difference(from, to, field.unwrap_or(schema));
                patch.insert(name.clone(), Value::Object(nested));
            }
            (Some(Value::Array(from)), Value::Array(to), Some(field)) if is_merged(field) => {
                list_difference(&mut patch, name, from, to, field);
            }
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    patch
}

fn is_merged(field: Cursor<'_>) -> bool {
    field.node().patch_strategy.as_deref().is_some_and(|words| words.split(',').any(|word| word == "merge"))
}

fn list_difference(patch: &mut Map<String, Value>, name: &str, from: &[Value], to: &[Value], field: Cursor<'_>) {
    let Some(key) = field.node().patch_merge_key.as_deref() else {
        let gone: Vec<&Value> = from.iter().filter(|item| !to.contains(item)).collect();
        let new: Vec<&Value> = to.iter().filter(|item| !from.contains(item)).collect();
        patch.insert(format!("$setElementOrder/{name}"), json!(to));
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), json!(gone));
        if !new.is_empty() {
            patch.insert(name.to_owned(), json!(new));
        }
        return;
    };
    let with_key = |list: &[Value], item: &Value| list.iter().find(|other| other[key] == item[key]).cloned();
    let mut items = Vec::new();
    for item in to.iter().filter(|item| !from.contains(item)) {
        items.push(match (with_key(from, item), item) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let mut changes = difference(&old, new, field.items().expect("a list has items"));
                changes.insert(key.to_owned(), new[key].clone());
                if field.node().patch_strategy.as_deref().is_some_and(|words| words.contains("retainKeys")) {
                    changes.retain(|_, value| !value.is_null());
                    changes.insert("$retainKeys".to_owned(), new.keys().cloned().collect());
                }
                Value::Object(changes)
            }
            _ => item.clone(),
        });
    }
    for item in from.iter().filter(|item| with_key(to, item).is_none()) {
        items.push(json!({"$patch": "delete", key: item[key]}));
    }
    let order: Vec<Value> = to.iter().map(|item| json!({key: item[key]})).collect();
    patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
    if !items.is_empty() {
        patch.insert(name.to_owned(), Value::Array(items));
    }
}

/// Up to three different names in any order.
fn names() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(vec!["a", "b", "c", "d"], 1..=3).prop_shuffle()
}

fn env() -> impl Strategy<Value = Value> {
    (names(), 0..3).prop_map(|(names, number)| {
        names.iter().map(|name| json!({"name": name, "value": format!("{number}")})).collect()
    })
}

fn container(name: &'static str) -> impl Strategy<Value = Value> {
    let port = subsequence(vec![80, 81, 82], 1..=2).prop_shuffle();
    (0..3, proptest::option::of(env()), port, proptest::option::of(names())).prop_map(
        move |(image, env, ports, args)| {
            let ports: Vec<Value> =
                ports.iter().map(|port| json!({"containerPort": port, "hostPort": image + 1})).collect();
            let mut container = json!({"name": name, "image": format!("i{image}"), "ports": ports});
            if let Some(env) = env {
                container["env"] = env;
            }
            if let Some(args) = args {
                container["args"] = json!(args);
            }
            container
        },
    )
}

fn volume(name: &'static str) -> impl Strategy<Value = Value> {
    let sources =
        [json!({"emptyDir": {}}), json!({"configMap": {"name": "x"}}), json!({"secret": {"secretName": "y"}})];
    proptest::sample::select(sources.to_vec()).prop_map(move |mut volume| {
        volume["name"] = json!(name);
        volume
    })
}

fn pod() -> impl Strategy<Value = Value> {
    let containers = names().prop_flat_map(|names| names.into_iter().map(container).collect::<Vec<_>>());
    let volumes = names().prop_flat_map(|names| names.into_iter().map(volume).collect::<Vec<_>>());
    let labels = proptest::collection::btree_map("[a-c]", "[x-z]", 0..3);
    (containers, volumes, labels, names(), names()).prop_map(
        |(containers, volumes, labels, finalizers, tolerations)| {
            let tolerations: Vec<Value> = tolerations.iter().map(|key| json!({"key": key})).collect();
            json!({
                "metadata": {"name": "p", "labels": labels, "finalizers": finalizers},
                "spec": {"containers": containers, "volumes": volumes, "tolerations": tolerations},
            })
        },
    )
}

fn fields(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

proptest! {
    #[test]
    fn the_difference_of_two_pods_leads_from_one_to_the_other((from, to) in (pod(), pod())) {
        let patch = Value::Object(difference(fields(&from), fields(&to), pod_schema()));

        let merged = merge(&from, &patch, pod_schema()).expect("the difference fits");

        prop_assert_eq!(merged.object, to);
    }

    #[test]
    fn a_patch_that_was_merged_changes_nothing_more((live, patch) in (pod(), pod())) {
        let once = merge(&live, &patch, pod_schema()).expect("a pod fits a pod").object;

        let twice = merge(&once, &patch, pod_schema()).expect("a pod fits a pod").object;

        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_difference_can_be_merged_again((from, to) in (pod(), pod())) {
        let patch = Value::Object(difference(fields(&from), fields(&to), pod_schema()));

        let again = merge(&to, &patch, pod_schema()).expect("the difference still fits").object;

        prop_assert_eq!(again, to);
    }

    #[test]
    fn an_empty_patch_changes_nothing(live in pod()) {
        prop_assert_eq!(merge(&live, &json!({}), pod_schema()).expect("nothing fits").object, live);
    }

    #[test]
    fn no_patch_makes_the_merge_panic(live in pod(), patch in any_patch()) {
        let _ = merge(&live, &patch, pod_schema());
    }
}

/// Any JSON that has the words of patches in it.
fn any_patch() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(80)),
        Just(json!("a")),
        Just(json!("delete")),
        Just(json!("replace")),
    ];
    let words = [
        "metadata",
        "spec",
        "containers",
        "name",
        "ports",
        "env",
        "volumes",
        "finalizers",
        "labels",
        "tolerations",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        let key = proptest::sample::select(words.to_vec());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..5).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}
