//! What each directive and strategy does to an object of a real kind.

use portolan_patch::strategic::{StrategicError, merge};
use serde_json::{Value, json};

fn patched(live: Value, patch: Value) -> Value {
    let pod = portolan_builtin::schema().definition("io.k8s.api.core.v1.Pod").expect("pods are built in");
    merge(&live, &patch, pod).expect("a patch that fits").object
}

fn refused(live: Value, patch: Value) -> StrategicError {
    let pod = portolan_builtin::schema().definition("io.k8s.api.core.v1.Pod").expect("pods are built in");
    merge(&live, &patch, pod).expect_err("a patch that does not fit")
}

fn containers(names: &[&str]) -> Value {
    let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": name})).collect();
    json!({"spec": {"containers": containers}})
}

fn names(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["containers"].as_array().expect("a list");
    containers.iter().map(|container| container["name"].as_str().expect("a name")).collect()
}

#[test]
fn maps_are_merged_and_null_removes() {
    let live = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});

    let pod = patched(live, json!({"metadata": {"labels": {"a": null, "c": "3", "nosuch": null}}}));

    assert_eq!(pod, json!({"metadata": {"labels": {"b": "2", "c": "3"}}}));
}

#[test]
fn a_map_is_replaced_or_emptied_by_its_directive() {
    let live = json!({"metadata": {"labels": {"a": "1"}, "annotations": {"a": "1"}}});

    let pod = patched(
        live,
        json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}, "annotations": {"$patch": "delete", "c": "3"}}}),
    );

    assert_eq!(pod, json!({"metadata": {"labels": {"b": "2"}, "annotations": {}}}));
}

#[test]
fn items_are_told_apart_by_the_merge_key() {
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "new"}]}});

    let pod = patched(containers(&["a", "b"]), patch);

    assert_eq!(pod["spec"]["containers"][1], json!({"name": "b", "image": "new"}));
    assert_eq!(names(&pod), ["a", "b"]);
}

#[test]
fn new_items_come_before_those_that_only_the_live_object_has() {
    let pod = patched(containers(&["a", "b"]), containers(&["c", "b"]));

    assert_eq!(names(&pod), ["c", "a", "b"]);
}

#[test]
fn items_go_by_their_directive() {
    let patch =
        json!({"spec": {"containers": [{"$patch": "delete", "name": "a"}, {"$patch": "delete", "name": "nosuch"}]}});

    assert_eq!(names(&patched(containers(&["a", "b", "a"]), patch)), ["b"]);
}

#[test]
fn a_list_is_replaced_by_a_directive_among_its_items() {
    let patch = json!({"spec": {"containers": [{"name": "z"}, {"$patch": "replace"}, {"name": "y"}]}});

    assert_eq!(names(&patched(containers(&["a", "b"]), patch)), ["z", "y"]);
}

#[test]
fn scalars_are_merged_deleted_and_ordered() {
    let live = || json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let list = |pod: Value| pod["metadata"]["finalizers"].clone();

    assert_eq!(list(patched(live(), json!({"metadata": {"finalizers": ["d", "b"]}}))), json!(["d", "a", "b", "c"]));
    let delete = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "nosuch"]}});
    assert_eq!(list(patched(live(), delete)), json!(["a", "c"]));
    let order = json!({"metadata": {"$setElementOrder/finalizers": ["c", "d", "a"], "finalizers": ["d"]}});
    assert_eq!(list(patched(live(), order)), json!(["b", "c", "d", "a"]));
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    let live = json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}});

    let pod = patched(live, json!({"spec": {"tolerations": [{"key": "c"}]}}));

    assert_eq!(pod, json!({"spec": {"tolerations": [{"key": "c"}]}}));
}

#[test]
fn only_retained_keys_stay() {
    let live = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let volume = |volume: Value| json!({"spec": {"volumes": [volume]}});

    let pod = patched(
        live.clone(),
        volume(json!({"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}})),
    );
    let error = refused(live, volume(json!({"name": "v", "$retainKeys": ["name"], "configMap": {"name": "c"}})));

    assert_eq!(pod, json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}}));
    assert_eq!(error.to_string(), "invalid patch format of retainKeys");
}

#[test]
fn a_new_item_takes_the_place_of_one_that_goes() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "b"}],
        "containers": [{"name": "b"}, {"$patch": "delete", "name": "a"}],
    }});

    assert_eq!(names(&patched(containers(&["a", "sidecar"]), patch)), ["sidecar", "b"]);
}

#[test]
fn what_was_not_there_is_taken_without_directives_and_nulls() {
    let patch = json!({"metadata": {"labels": {"a": "1", "b": null}, "annotations": {"$patch": "replace", "c": "2"}}});

    assert_eq!(patched(json!({"metadata": {}}), patch), json!({"metadata": {"labels": {"a": "1"}}}));
}

#[test]
fn an_item_without_its_merge_key_is_refused_in_the_words_of_the_real_server() {
    let error = refused(containers(&["a"]), json!({"spec": {"containers": [{"image": "b", "args": ["x", 1]}]}}));

    assert_eq!(error.to_string(), "map: map[args:[x 1] image:b] does not contain declared merge key: name");
}

#[test]
fn an_order_that_contradicts_its_list_is_refused() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        "containers": [{"name": "b"}, {"name": "a"}],
    }});

    let error = refused(containers(&["a", "b"]), patch);

    assert_eq!(
        error.to_string(),
        "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n\
         [map[name:a] map[name:b]]\n"
    );
}

#[test]
fn directives_that_are_written_wrongly_are_refused() {
    let live = json!({"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a"}]}});
    let cases = [
        (json!({"$patch": "merge"}), "unknown patch type: merge in map: map[$patch:merge]"),
        (json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}), "invalid patch format of primitive list"),
        (json!({"metadata": {"$setElementOrder": ["a"]}}), "invalid patch format of setElementOrder list"),
        (json!({"metadata": {"$setElementOrder/finalizers": "a"}}), "expected a []interface {}, but received a string"),
        (
            json!({"spec": {"$setElementOrder/nosuch": []}}),
            "unable to find api field in struct PodSpec for the json field \"nosuch\"",
        ),
        (json!({"metadata": {"finalizers": [1]}}), "list element types are not identical: [[a] [1]]"),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [{"a": 1}]}}),
            "list element types are not identical: [[a] [map[a:1]]]",
        ),
        (json!({"spec": {"containers": [{"$patch": "merge"}]}}), "merging lists cannot yet be specified in the patch"),
    ];
    for (patch, message) in cases {
        assert_eq!(refused(live.clone(), patch).to_string(), message);
    }
}

#[test]
fn items_that_nothing_tells_apart_cannot_be_ordered() {
    let live = json!({"spec": {"tolerations": [{"key": "a"}]}});

    let error = refused(live, json!({"spec": {"$setElementOrder/tolerations": [{"key": "a"}]}}));

    assert_eq!(error, StrategicError::Incomparable);
}

#[test]
fn lists_of_lists_are_refused() {
    let live = json!({"metadata": {"finalizers": []}});

    assert_eq!(refused(live, json!({"metadata": {"finalizers": [["a"]]}})), StrategicError::ListOfLists);
}

#[test]
fn the_rest_of_a_patch_is_without_the_directives_that_were_carried_out() {
    let pod = portolan_builtin::schema().definition("io.k8s.api.core.v1.Pod").expect("pods are built in");
    let live = json!({"metadata": {"finalizers": ["a"], "labels": {}}});
    let patch =
        json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"], "finalizers": ["b"], "labels": {"x": 5}}});

    let merged = merge(&live, &patch, pod).expect("a patch that fits");

    assert_eq!(merged.patch, json!({"metadata": {"labels": {"x": 5}}}));
}

#[test]
fn directives_that_break_the_real_server_are_refused() {
    let live = json!({"spec": {"containers": [{"name": "a"}], "tolerations": [{"key": "a"}]}});

    assert_eq!(
        refused(live.clone(), json!({"spec": {"$retainKeys": [["containers"]]}})),
        StrategicError::Malformed("retainKeys")
    );
    assert_eq!(refused(live.clone(), json!({"spec": {"$retainKeys": [{}]}})), StrategicError::Malformed("retainKeys"));
    assert_eq!(
        refused(live, json!({"spec": {"$setElementOrder/tolerations": [{}], "tolerations": [{"key": "a"}]}})),
        StrategicError::Incomparable
    );
}
