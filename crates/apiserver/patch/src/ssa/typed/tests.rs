use portolan_schema::Schema;
use serde_json::{Value, json};

use super::*;
use crate::ssa::fields_v1;
use crate::ssa::set::FieldSet;

fn schema() -> Schema {
    let text = json!({"type": "string"});
    let pair = json!({"type": "object", "properties": {"a": text, "b": text}});
    let mut whole = pair.clone();
    whole["x-kubernetes-map-type"] = json!("atomic");
    let keyed = |keys: &[&str], item: Value| {
        json!({
            "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        })
    };
    let set = |item: &str| json!({"type": "array", "items": {"type": item}, "x-kubernetes-list-type": "set"});
    let port = json!({"type": "object", "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text,
    }});
    let item = json!({"type": "object", "properties": {
        "name": text, "value": text, "tags": set("string"), "labels": {"type": "object", "additionalProperties": text},
    }});
    Schema::parse(&json!({"type": "object", "properties": {
        "number": {"type": "integer"}, "text": text, "flag": {"type": "boolean"},
        "date": {"type": "string", "format": "date-time"},
        "struct": pair, "whole": whole,
        "map": {"type": "object", "additionalProperties": text},
        "structs": {"type": "object", "additionalProperties": pair},
        "list": {"type": "array", "items": text},
        "whole_list": {"type": "array", "items": pair, "x-kubernetes-list-type": "atomic"},
        "set": set("string"), "numbers": set("integer"),
        "items": keyed(&["name"], item), "ports": keyed(&["port", "protocol"], port),
        "merged": {"type": "array", "items": pair, "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "a"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "anything": {"x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
        "closed": {"type": "object", "additionalProperties": false, "properties": {"a": text}},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": pair}},
    }}))
    .unwrap()
}

fn fields(set: &FieldSet) -> Value {
    fields_v1::encode(set)
}

fn set(fields: &Value) -> FieldSet {
    fields_v1::decode(fields).unwrap()
}

#[test]
fn a_value_is_owned_down_to_what_its_shape_tells_apart() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let table = [
        ("scalars are leaves", json!({"number": 1, "text": "a"}), json!({"f:number": {}, "f:text": {}})),
        ("a struct is owned by its fields", json!({"struct": {"a": "1"}}), json!({"f:struct": {"f:a": {}}})),
        ("an empty struct is owned itself", json!({"struct": {}}), json!({"f:struct": {}})),
        ("null is owned", json!({"text": null, "map": null}), json!({"f:text": {}, "f:map": {}})),
        ("a null in a map too", json!({"structs": {"k": null}}), json!({"f:structs": {"f:k": {}}})),
        ("map keys are owned one by one", json!({"map": {"k": "v"}}), json!({"f:map": {"f:k": {}}})),
        (
            "so are keys above structs",
            json!({"structs": {"k": {"a": "1"}}}),
            json!({"f:structs": {"f:k": {".": {}, "f:a": {}}}}),
        ),
        ("an atomic map is one", json!({"whole": {"a": "1"}}), json!({"f:whole": {}})),
        ("a plain list is one", json!({"list": ["a"]}), json!({"f:list": {}})),
        ("even when empty", json!({"list": []}), json!({"f:list": {}})),
        ("an empty set is owned by nobody", json!({"set": []}), json!({})),
        ("set items are owned by value", json!({"set": ["b", "a"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})),
        (
            "list items are owned by key",
            json!({"items": [{"name": "x", "value": "1"}]}),
            json!({"f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:value": {}}}}),
        ),
        (
            "a key's default stands in",
            json!({"ports": [{"port": 80}]}),
            json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
        ),
        (
            "a key without value or default is left out",
            json!({"ports": [{"protocol": "UDP"}]}),
            json!({"f:ports": {"k:{\"protocol\":\"UDP\"}": {".": {}, "f:protocol": {}}}}),
        ),
        (
            "duplicates are owned as one",
            json!({"items": [{"name": "x", "value": "1"}, {"name": "x"}]}),
            json!({"f:items": {"k:{\"name\":\"x\"}": {}}}),
        ),
        (
            "merge keys of patches count where no list type is given",
            json!({"merged": [{"a": "1", "b": "2"}]}),
            json!({"f:merged": {"k:{\"a\":\"1\"}": {".": {}, "f:a": {}, "f:b": {}}}}),
        ),
        (
            "unknown parts are granular maps and atomic lists",
            json!({"free": {"m": {"x": 1}, "l": [{"y": 1}]}}),
            json!({"f:free": {"f:l": {}, "f:m": {".": {}, "f:x": {}}}}),
        ),
        ("an int or string is a leaf", json!({"either": 5}), json!({"f:either": {}})),
        ("anything may be a list", json!({"anything": [1]}), json!({"f:anything": {}})),
        (
            "an embedded resource has metadata",
            json!({"pod": {"metadata": {"finalizers": ["f"]}, "spec": {"x": 1}}}),
            json!({"f:pod": {"f:metadata": {"f:finalizers": {"v:\"f\"": {}}}, "f:spec": {".": {}, "f:x": {}}}}),
        ),
        (
            "owners and finalizers are told apart",
            json!({"metadata": {"ownerReferences": [{"uid": "u", "name": "n"}], "finalizers": ["f"]}}),
            json!({"f:metadata": {
                "f:finalizers": {"v:\"f\"": {}}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
            }}),
        ),
    ];

    for (sentence, value, expected) in table {
        assert_eq!(fields(&field_set(&value, shape)), expected, "{sentence}");
    }
}

#[test]
fn an_applied_value_merges_into_the_live_one() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let table = [
        ("scalars are replaced", json!({"number": 1}), json!({"number": 2}), json!({"number": 2})),
        ("others stay", json!({"number": 1}), json!({"text": "a"}), json!({"number": 1, "text": "a"})),
        ("null replaces a scalar", json!({"text": "a"}), json!({"text": null}), json!({"text": null})),
        ("null leaves a map alone", json!({"map": {"a": "1"}}), json!({"map": null}), json!({"map": {"a": "1"}})),
        ("an empty map too", json!({"map": {"a": "1"}}), json!({"map": {}}), json!({"map": {"a": "1"}})),
        ("null and empty are kept apart", json!({"map": {}}), json!({"map": null}), json!({"map": null})),
        (
            "maps are united",
            json!({"map": {"a": "1", "b": "1"}}),
            json!({"map": {"b": "2", "c": "2"}}),
            json!({"map": {"a": "1", "b": "2", "c": "2"}}),
        ),
        (
            "atomic maps are replaced",
            json!({"whole": {"a": "1", "b": "1"}}),
            json!({"whole": {"a": "2"}}),
            json!({"whole": {"a": "2"}}),
        ),
        ("plain lists are replaced", json!({"list": ["a", "b"]}), json!({"list": ["c"]}), json!({"list": ["c"]})),
        ("new set items come last", json!({"set": ["a", "b"]}), json!({"set": ["c"]}), json!({"set": ["a", "b", "c"]})),
        (
            "applied order wins among shared items",
            json!({"set": ["a", "b", "c"]}),
            json!({"set": ["c", "a"]}),
            json!({"set": ["b", "c", "a"]}),
        ),
        (
            "applied items come before later shared ones",
            json!({"set": ["a", "b", "c"]}),
            json!({"set": ["x", "b"]}),
            json!({"set": ["a", "x", "b", "c"]}),
        ),
        (
            "items merge by key",
            json!({"items": [{"name": "a", "value": "1"}, {"name": "b"}]}),
            json!({"items": [{"name": "b", "value": "2"}]}),
            json!({"items": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}),
        ),
        (
            "defaulted keys match written ones",
            json!({"ports": [{"port": 80, "protocol": "TCP"}]}),
            json!({"ports": [{"port": 80, "name": "web"}]}),
            json!({"ports": [{"port": 80, "protocol": "TCP", "name": "web"}]}),
        ),
        (
            "live duplicates that are not applied stay",
            json!({"set": ["a", "a", "b"]}),
            json!({"set": ["c"]}),
            json!({"set": ["a", "a", "b", "c"]}),
        ),
        ("applied duplicates become one", json!({"set": ["a", "a"]}), json!({"set": ["a"]}), json!({"set": ["a"]})),
        (
            "a scalar may become a map",
            json!({"free": {"x": 1}}),
            json!({"free": {"x": {"y": 1}}}),
            json!({"free": {"x": {"y": 1}}}),
        ),
        (
            "unknown maps are united, unknown lists replaced",
            json!({"free": {"m": {"a": 1}, "l": [1, 2]}}),
            json!({"free": {"m": {"b": 2}, "l": [3]}}),
            json!({"free": {"m": {"a": 1, "b": 2}, "l": [3]}}),
        ),
    ];

    for (sentence, live, applied, expected) in table {
        assert_eq!(merge(&live, &applied, shape), expected, "{sentence}");
    }
}

#[test]
fn two_values_differ_by_what_was_added_changed_and_removed() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let none = || json!({});
    let table = [
        ("equal values do not differ", json!({"number": 1}), json!({"number": 1.0}), none(), none(), none()),
        ("a changed scalar", json!({"text": "a"}), json!({"text": "b"}), none(), json!({"f:text": {}}), none()),
        (
            "a new struct is added itself",
            json!({}),
            json!({"struct": {"a": "1"}}),
            none(),
            none(),
            json!({"f:struct": {".": {}, "f:a": {}}}),
        ),
        (
            "a struct that is gone is removed itself",
            json!({"struct": {"a": "1"}}),
            json!({}),
            json!({"f:struct": {".": {}, "f:a": {}}}),
            none(),
            none(),
        ),
        (
            "a null that is filled is not added itself",
            json!({"struct": null}),
            json!({"struct": {"a": "1"}}),
            none(),
            none(),
            json!({"f:struct": {"f:a": {}}}),
        ),
        ("null is not empty", json!({"map": null}), json!({"map": {}}), none(), json!({"f:map": {}}), none()),
        ("order in a set is no change", json!({"set": ["a", "b"]}), json!({"set": ["b", "a"]}), none(), none(), none()),
        (
            "order in a plain list is",
            json!({"list": ["a", "b"]}),
            json!({"list": ["b", "a"]}),
            none(),
            json!({"f:list": {}}),
            none(),
        ),
        (
            "set items come and go",
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "c"]}),
            json!({"f:set": {"v:\"a\"": {}}}),
            none(),
            json!({"f:set": {"v:\"c\"": {}}}),
        ),
        (
            "items change below their key",
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"items": [{"name": "a", "value": "2"}]}),
            none(),
            json!({"f:items": {"k:{\"name\":\"a\"}": {"f:value": {}}}}),
            none(),
        ),
        (
            "changed duplicates change as one",
            json!({"items": [{"name": "a", "value": "1"}, {"name": "a"}]}),
            json!({"items": [{"name": "a", "value": "2"}, {"name": "a"}]}),
            none(),
            json!({"f:items": {"k:{\"name\":\"a\"}": {}}}),
            none(),
        ),
        (
            "an item that becomes single again is removed and added",
            json!({"items": [{"name": "a"}, {"name": "a"}]}),
            json!({"items": [{"name": "a"}]}),
            json!({"f:items": {"k:{\"name\":\"a\"}": {}}}),
            none(),
            json!({"f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}),
        ),
        (
            "an item that is doubled is added and removed",
            json!({"items": [{"name": "a"}]}),
            json!({"items": [{"name": "a"}, {"name": "a"}]}),
            json!({"f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}),
            none(),
            json!({"f:items": {"k:{\"name\":\"a\"}": {}}}),
        ),
        (
            "a scalar that becomes a map is changed, its fields added",
            json!({"free": {"x": 1}}),
            json!({"free": {"x": {"y": 1}}}),
            none(),
            json!({"f:free": {"f:x": {}}}),
            json!({"f:free": {"f:x": {"f:y": {}}}}),
        ),
        (
            "a map that becomes a scalar loses its fields",
            json!({"free": {"x": {"y": 1}}}),
            json!({"free": {"x": 1}}),
            json!({"f:free": {"f:x": {"f:y": {}}}}),
            json!({"f:free": {"f:x": {}}}),
            none(),
        ),
    ];

    for (sentence, left, right, removed, modified, added) in table {
        let found = compare(&left, &right, shape, ValueSide::Json);

        assert_eq!(fields(&found.removed), removed, "{sentence}: removed");
        assert_eq!(fields(&found.modified), modified, "{sentence}: modified");
        assert_eq!(fields(&found.added), added, "{sentence}: added");
    }
}

#[test]
fn a_struct_that_shows_a_field_as_null_has_not_gained_it() {
    let schema = schema();
    let shape = Shape::resource(schema.root());

    let found = compare(&json!({"struct": {}}), &json!({"struct": {"a": null}}), shape, ValueSide::Struct);

    assert_eq!(found, Comparison::default());
}

#[test]
fn fields_are_taken_out_of_a_value() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let table = [
        ("a scalar", json!({"number": 1, "text": "a"}), json!({"f:number": {}}), json!({"text": "a"})),
        (
            "a struct with all below it",
            json!({"struct": {"a": "1"}, "number": 1}),
            json!({"f:struct": {}}),
            json!({"number": 1}),
        ),
        (
            "a key of a map",
            json!({"map": {"a": "1", "b": "2"}}),
            json!({"f:map": {"f:a": {}}}),
            json!({"map": {"b": "2"}}),
        ),
        ("the last key leaves null", json!({"map": {"a": "1"}}), json!({"f:map": {"f:a": {}}}), json!({"map": null})),
        ("an item of a set", json!({"set": ["a", "b"]}), json!({"f:set": {"v:\"a\"": {}}}), json!({"set": ["b"]})),
        (
            "a field of an item",
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"f:items": {"k:{\"name\":\"a\"}": {"f:value": {}}}}),
            json!({"items": [{"name": "a"}]}),
        ),
        (
            "an item",
            json!({"items": [{"name": "a"}, {"name": "b"}]}),
            json!({"f:items": {"k:{\"name\":\"a\"}": {}}}),
            json!({"items": [{"name": "b"}]}),
        ),
        (
            "what is not there is no trouble",
            json!({"number": 1}),
            json!({"f:text": {}, "f:map": {"f:a": {}}}),
            json!({"number": 1}),
        ),
        ("everything leaves null", json!({"number": 1}), json!({"f:number": {}}), json!(null)),
    ];

    for (sentence, value, gone, expected) in table {
        assert_eq!(remove(&value, &set(&gone), shape), expected, "{sentence}");
    }
}

#[test]
fn fields_are_extracted_from_a_value() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let value = json!({
        "number": 1, "text": "a", "map": {"a": "1", "b": "2"}, "whole": {"a": "1"}, "list": ["x"], "set": ["a", "b"],
        "items": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}],
    });
    let wanted = json!({
        "f:number": {}, "f:map": {"f:a": {}}, "f:whole": {}, "f:list": {}, "f:set": {"v:\"b\"": {}},
        "f:items": {"k:{\"name\":\"b\"}": {"f:name": {}}},
    });

    assert_eq!(
        extract(&value, &set(&wanted), shape),
        json!({
            "number": 1, "map": {"a": "1"}, "whole": {"a": "1"}, "list": ["x"], "set": ["b"], "items": [{"name": "b"}],
        })
    );
}

#[test]
fn what_became_atomic_is_owned_as_a_whole() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let table = [
        ("an atomic map", json!({"f:whole": {"f:a": {}, "f:b": {}}}), json!({"f:whole": {}})),
        ("an atomic list", json!({"f:list": {"v:\"a\"": {}}}), json!({"f:list": {}})),
        (
            "an atomic list of an item",
            json!({"f:items": {"k:{\"name\":\"a\"}": {"f:value": {}}}}),
            json!({"f:items": {"k:{\"name\":\"a\"}": {"f:value": {}}}}),
        ),
        ("a granular map stays", json!({"f:map": {".": {}, "f:a": {}}}), json!({"f:map": {".": {}, "f:a": {}}})),
        ("what was whole and is granular stays", json!({"f:map": {}}), json!({"f:map": {}})),
        ("unknown parts stay", json!({"f:free": {"f:l": {"i:0": {}}}}), json!({"f:free": {"f:l": {"i:0": {}}}})),
        ("fields that are gone stay", json!({"f:gone": {"f:a": {}}}), json!({"f:gone": {"f:a": {}}})),
    ];

    for (sentence, stored, expected) in table {
        assert_eq!(fields(&reconcile(&set(&stored), shape)), expected, "{sentence}");
    }
}

#[test]
fn named_fields_come_along_with_what_is_below_them() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let below =
        json!({"f:structs": {"f:k": {"f:a": {}}}, "f:items": {"k:{\"name\":\"a\"}": {"f:labels": {"f:x": {}}}}});

    assert_eq!(
        fields(&with_named_parents(&set(&below), Some(shape))),
        json!({
            "f:structs": {".": {}, "f:k": {"f:a": {}}},
            "f:items": {".": {}, "k:{\"name\":\"a\"}": {"f:labels": {".": {}, "f:x": {}}}},
        })
    );
}

#[test]
fn values_of_the_wrong_form_are_named() {
    let schema = schema();
    let shape = Shape::resource(schema.root());
    let omits = r#"element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)"#;
    let table = [
        (json!({"number": "a"}), ".number: expected numeric (int or float), got string".to_owned()),
        (json!({"text": 1}), ".text: expected string, got &value.valueUnstructured{Value:1}".to_owned()),
        (json!({"flag": "a"}), ".flag: expected boolean, got &{a}".to_owned()),
        (json!({"date": {"a": 1}}), ".date: expected any scalar, got &{map[a:1]}".to_owned()),
        (json!({"map": [1]}), ".map: expected map, got &{[1]}".to_owned()),
        (json!({"set": {"a": 1}}), ".set: expected list, got &{map[a:1]}".to_owned()),
        (json!({"unknown": 1}), ".unknown: field not declared in schema".to_owned()),
        (json!({"closed": {"b": 1}}), ".closed.b: field not declared in schema".to_owned()),
        (json!({"metadata": {"foo": 1}}), ".metadata.foo: field not declared in schema".to_owned()),
        (json!({"list": ["a", 1]}), ".list[1]: expected string, got &value.valueUnstructured{Value:1}".to_owned()),
        (json!({"set": ["a", "b", "a"]}), r#".set: duplicate entries for key [="a"]"#.to_owned()),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            r#".ports: duplicate entries for key [port=1,protocol="TCP"]"#.to_owned(),
        ),
        (json!({"items": [{"value": "x"}]}), format!(".items: {omits}")),
        (
            json!({"items": [1]}),
            ".items: element 0: associative list with keys may not have non-map elements".to_owned(),
        ),
        (
            json!({"items": [null]}),
            ".items: element 0: associative list with keys may not have a null element".to_owned(),
        ),
        (
            json!({"set": [null]}),
            ".set: element 0: associative list without keys has an element that's an explicit null".to_owned(),
        ),
        (json!({"set": [["a"]]}), ".set: element 0: not supported: associative list with lists as elements".to_owned()),
        (
            json!({"set": [{}]}),
            ".set: element 0: associative list without keys has an element that's a map type".to_owned(),
        ),
        (
            json!({"flag": 1, "number": "a"}),
            "errors:\n  .flag: expected boolean, got &{1}\n  .number: expected numeric (int or float), got string"
                .to_owned(),
        ),
    ];

    for (value, expected) in table {
        let problems = validate(&value, shape, Duplicates::Refused).unwrap_err();

        assert_eq!(problems.to_string(), expected, "{value}");
    }
}

#[test]
fn what_the_schema_lets_in_is_no_problem() {
    let schema = schema();
    let shape = Shape::resource(schema.root());

    for value in [
        json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}}}),
        json!({"number": null, "set": null, "map": null, "struct": null, "items": []}),
        json!({"free": {"a": [1, {"b": null}]}, "anything": "x", "either": "5%"}),
        json!({"pod": {"apiVersion": "v1", "kind": "Pod", "spec": {"x": [1]}}}),
        json!({"half": {"known": {"a": "1"}, "other": 1}}),
    ] {
        assert_eq!(validate(&value, shape, Duplicates::Refused), Ok(()), "{value}");
    }
    assert_eq!(validate(&json!({"set": ["a", "a"]}), shape, Duplicates::Allowed), Ok(()));
}
