use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Schema;
use crate::testing::json_values;

fn schema(spec: Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

/// A schema of `spec` with one rule.
fn with_rule(properties: Value, rule: Value) -> Schema {
    schema(json!({"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}))
}

fn messages(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<String> {
    check_rules(new, old, schema.root()).iter().map(ToString::to_string).collect()
}

/// Whether an expression about `self` (an object with a field of each type) is true.
fn holds(expression: &str) -> bool {
    let schema = with_rule(
        json!({
            "i": {"type": "integer"}, "n": {"type": "number"}, "s": {"type": "string"}, "b": {"type": "boolean"},
            "t": {"type": "string", "format": "date-time"}, "d": {"type": "string", "format": "duration"},
            "y": {"type": "string", "format": "byte"}, "ios": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "namespace": {"type": "string"}, "a-b": {"type": "string"}, "none": {"type": "string"},
            "null": {"type": "string", "nullable": true},
        }),
        json!({"rule": expression}),
    );
    let value = json!({"spec": {
        "i": 3, "n": 2, "s": "abc", "b": true, "t": "2024-01-02T03:04:05Z", "d": "90m", "y": "aGVsbG8=", "ios": "50%",
        "list": ["b", "a", "c"], "map": {"x": 1, "y": 2}, "namespace": "ns", "a-b": "dashed", "null": null,
    }});
    let found = messages(&schema, &value, None);
    assert!(found.iter().all(|m| m.contains("failed rule")), "{expression}: {found:?}");
    found.is_empty()
}

#[test]
fn values_have_the_types_of_their_schema() {
    for expression in [
        "self.i + 1 == 4 && self.i > 2",
        "self.n + 0.5 == 2.5",
        "self.s.startsWith('a') && self.s.size() == 3",
        "self.t.getFullYear() == 2024 && self.t < timestamp('2025-01-01T00:00:00Z')",
        "self.d == duration('1h30m')",
        "self.y == b'hello'",
        "type(self.ios) == string && self.ios == '50%'",
        "self.list.size() == 3 && self.list.exists(x, x == 'a')",
        "self.map['x'] == 1 && 'y' in self.map && self.map.all(k, self.map[k] > 0)",
        "self.__namespace__ == 'ns' && self.a__dash__b == 'dashed'",
        "!has(self.none) && has(self.i)",
        "self.?none.orValue('z') == 'z'",
    ] {
        assert!(holds(expression), "{expression}");
    }
}

#[test]
fn the_libraries_of_kubernetes_are_there() {
    for expression in [
        "quantity('1Gi').isGreaterThan(quantity('1000Mi')) && isQuantity('5m') && !isQuantity('x')",
        "quantity('2').add(quantity('500m')).sub(1).compareTo(quantity('1.5')) == 0",
        "quantity('3').asInteger() == 3 && sign(quantity('-1')) == -1",
        "isURL('https://a.b:80/c?d=e') && url('https://a.b:80/c?d=e').getHostname() == 'a.b'",
        "url('https://a.b:80/c?d=e&d=f').getQuery()['d'] == ['e', 'f'] && url('/p').getEscapedPath() == '/p'",
        "isIP('10.0.0.1') && !isIP('x') && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback()",
        "ip.isCanonical('::1') && string(ip('10.0.0.1')) == '10.0.0.1'",
        "isCIDR('10.0.0.0/8') && cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').prefixLength() == 8",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
        "!format.dns1123Label().validate('ok').hasValue()",
        "format.dns1123Label().validate('Not Ok').value().size() == 1 && format.named('uuid').hasValue()",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 3])",
        "'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
        "'abc'.matches('^[a-c]+$') && matches('abc', r'^\\w+$')",
        "[1, 2, 3].isSorted() && [1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0-rc.1') && semver('v1.2', true).minor() == 2",
        "'a-b'.split('-') == ['a', 'b'] && 'x'.upperAscii() == 'X' && ['a', 'b'].join(',') == 'a,b'",
        "'%s-%d'.format(['a', 1]) == 'a-1'",
        "self.map.all(k, v, k != '' && v > 0) && self.list.exists(i, v, i == 1 && v == 'a')",
        "self.map.transformMap(k, v, v * 2)['y'] == 4 && [1, 2].transformList(i, v, i > 0, v + i) == [3]",
        "[1, 2, 3].existsOne(i, v, v == 2) && {'a': 1}.transformMapEntry(k, v, {k + 'x': v}) == {'ax': 1}",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, 2]",
        "optional.of(1).hasValue() && optional.none().orValue(2) == 2",
    ] {
        assert!(holds(expression), "{expression}");
    }
}

#[test]
fn a_failed_rule_speaks_by_message_expression_message_or_itself() {
    let properties = json!({"min": {"type": "integer"}, "max": {"type": "integer"}});
    let value = json!({"spec": {"min": 3, "max": 2}});
    let rule = "self.min <= self.max";

    let plain = with_rule(properties.clone(), json!({"rule": rule}));
    assert_eq!(messages(&plain, &value, None), ["spec: Invalid value: failed rule: self.min <= self.max"]);

    let worded = with_rule(
        properties.clone(),
        json!({"rule": rule, "message": "min above max", "reason": "FieldValueForbidden", "fieldPath": ".min"}),
    );
    assert_eq!(messages(&worded, &value, None), ["spec.min: Forbidden: min above max"]);

    let computed = with_rule(
        properties,
        json!({"rule": rule, "message": "unused", "messageExpression": "'%d above %d'.format([self.min, self.max])"}),
    );
    assert_eq!(messages(&computed, &value, None), ["spec: Invalid value: 3 above 2"]);
}

#[test]
fn scalars_are_shown_and_errors_show_the_type() {
    let scalar = schema(json!({"type": "object", "properties": {
        "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "not bad"}]},
    }}));
    assert_eq!(
        messages(&scalar, &json!({"spec": {"name": "bad"}}), None),
        [r#"spec.name: Invalid value: "bad": not bad"#]
    );

    let missing = with_rule(json!({"a": {"type": "integer"}}), json!({"rule": "self.a > 1"}));
    assert_eq!(
        messages(&missing, &json!({"spec": {}}), None),
        [r#"spec: Invalid value: "object": no such key: a evaluating rule: self.a > 1"#]
    );
}

#[test]
fn transition_rules_run_on_updates_only_and_where_the_old_value_is_known() {
    let schema = schema(json!({"type": "object", "properties": {
        "x": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}]},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "only up"}]}},
        "atomic": {"type": "array", "items": {"type": "integer",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "never runs"}]}},
    }}));
    let old = json!({"spec": {"x": "a", "list": [{"k": "p", "v": 2}], "atomic": [1]}});
    let new = json!({"spec": {"x": "b", "list": [{"k": "q", "v": 0}, {"k": "p", "v": 1}], "atomic": [2]}});

    assert!(messages(&schema, &new, None).is_empty());
    assert_eq!(
        messages(&schema, &new, Some(&old)),
        ["spec.list[1]: Invalid value: only up", r#"spec.x: Invalid value: "b": immutable"#]
    );
}

#[test]
fn an_optional_old_self_lets_a_transition_rule_run_on_creation() {
    let schema = with_rule(
        json!({"x": {"type": "integer"}}),
        json!({"rule": "oldSelf.hasValue() ? self.x >= oldSelf.value().x : self.x == 0", "optionalOldSelf": true, "message": "starts at 0"}),
    );

    assert_eq!(messages(&schema, &json!({"spec": {"x": 1}}), None), ["spec: Invalid value: starts at 0"]);
    assert!(messages(&schema, &json!({"spec": {"x": 1}}), Some(&json!({"spec": {"x": 0}}))).is_empty());
}

#[test]
fn a_rule_that_was_broken_before_is_tolerated_while_nothing_changes() {
    let schema = schema(json!({"type": "object", "properties": {
        "x": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
        "y": {"type": "integer"},
    }}));
    let old = json!({"spec": {"x": "bad", "y": 1}});

    let findings = find_rule_errors(&json!({"spec": {"x": "bad", "y": 2}}), Some(&old), schema.root());

    assert!(findings.errors.is_empty());
    assert_eq!(findings.tolerated.len(), 1);
}

#[test]
fn the_root_and_embedded_resources_show_type_and_name() {
    let root = Schema::parse(&json!({"type": "object",
        "properties": {"spec": {"type": "object", "properties": {"t": {"type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-validations": [{"rule": "self.kind == 'Pod' && self.metadata.name == 'p'"}]}}}},
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a') && self.kind == 'K'", "message": "bad name"}]}))
    .unwrap();
    let template = json!({"t": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}});

    let good = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "ab"}, "spec": template});
    assert!(messages(&root, &good, None).is_empty());

    let bad = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "b"}, "spec": template});
    assert_eq!(messages(&root, &bad, None), ["<nil>: Invalid value: bad name"]);
}

#[test]
fn objects_compare_by_their_fields() {
    let schema = with_rule(
        json!({"a": {"type": "object", "properties": {"x": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}}}),
        json!({"rule": "self.a == oldSelf.a"}),
    );
    let old = json!({"spec": {"a": {"x": 1, "l": ["p"]}}});

    assert!(messages(&schema, &old, Some(&old)).is_empty());
    for changed in [json!({"x": 2, "l": ["p"]}), json!({"x": 1}), json!({"x": 1, "l": ["q"]})] {
        assert_eq!(messages(&schema, &json!({"spec": {"a": changed}}), Some(&old)).len(), 1);
    }
}

#[test]
fn sets_and_maps_compare_without_their_order() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}});
    let schema = with_rule(
        json!({"set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, "map": list}),
        json!({"rule": "self.set == oldSelf.set && self.map == oldSelf.map && (self.map + self.map).size() == 2"}),
    );
    let old = json!({"spec": {"set": ["a", "b"], "map": [{"k": "x", "v": 1}, {"k": "y"}]}});
    let moved = json!({"spec": {"set": ["b", "a"], "map": [{"k": "y"}, {"k": "x", "v": 1}]}});
    let changed = json!({"spec": {"set": ["b", "a"], "map": [{"k": "y"}, {"k": "x", "v": 2}]}});

    assert!(messages(&schema, &moved, Some(&old)).is_empty());
    assert_eq!(messages(&schema, &changed, Some(&old)).len(), 1);
}

proptest! {
    #[test]
    fn rules_meet_any_value_without_a_panic(spec in json_values(), old in json_values()) {
        let schema = with_rule(
            json!({"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}},
                "items": {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}}}),
            json!({"rule": "self.a > 0 && self.b.all(x, x != '') && self.items == oldSelf.items", "message": "m"}),
        );

        let alone = check_rules(&json!({"spec": spec}), None, schema.root());
        let updated = check_rules(&json!({"spec": spec}), Some(&json!({"spec": old})), schema.root());

        prop_assert!(alone.len() <= 1 && updated.len() <= 1);
    }
}
