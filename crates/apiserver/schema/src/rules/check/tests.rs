use serde_json::{Value, json};

use super::*;
use crate::Schema;

fn schema(rule: Value) -> Schema {
    Schema::parse(&json!({"type": "object", "x-kubernetes-validations": [rule], "properties": {
        "i": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "ios": {"x-kubernetes-int-or-string": true}, "t": {"type": "string", "format": "date-time"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}))
    .unwrap()
}

/// What is wrong with a rule; empty where nothing is.
fn wrong(source: &str) -> String {
    let schema = schema(json!({"rule": source}));
    let root = schema.root();
    rule(&root.node().rules[0], root, false).err().unwrap_or_default()
}

#[test]
fn good_rules_have_nothing_wrong_with_them() {
    for source in [
        "self.i > 1 && self.s.startsWith('a')",
        "self.m.nope == 1 && self.m['a'] > 0",
        "self.ios == 1 || self.ios == 'a'",
        "type(self.i) == int && self.l == ['a']",
        "oldSelf.i == self.i",
        "self.l.all(x, x.size() > 1) && self.l.exists_one(x, x == '')",
        "self.l.map(x, x + 'a').filter(y, y != 'b').size() > 0",
        "self.i > 1.5 && duration('1h') > duration('1m')",
        "self.t > timestamp('2020-01-01T00:00:00Z')",
        "self.?s.orValue('x') == 'x' && self.?o.x.hasValue()",
        "has(self.o.x) ? self.o.x > 1 : true",
        "sets.contains(self.l, ['a']) && isIP('x') && quantity('1').isLessThan(quantity('2'))",
        "!format.dns1123Label().validate(self.s).hasValue()",
        "self.m.all(k, v, k != '' && v > 0)",
        "self.l.sortBy(x, x) == self.l.sort() && [1, 2].sum() == 3",
        "self.s in ['a', 'b'] && 'a' in self.m",
        "self.o == oldSelf.o",
        "'%s has %d of %s'.format([self.s, self.i, self.l]) != ''",
        "[?self.?s, 'a'].size() == 1",
    ] {
        assert_eq!(wrong(source), "", "{source}");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (source, column, what) in [
        ("self.nope == 1", 5, "undefined field 'nope'"),
        ("self.o.nope > 1", 7, "undefined field 'nope'"),
        ("has(self.nope)", 4, "undefined field 'nope'"),
        ("self.?nope.hasValue()", 5, "undefined field 'nope'"),
        ("self.free.x == 1", 10, "undefined field 'x'"),
        ("self.namespace == ''", 5, "undefined field 'namespace'"),
        ("self.l.all(x, x.nope)", 16, "type 'string' does not support field selection"),
        ("bar == 1", 1, "undeclared reference to 'bar' (in container '')"),
        ("foo(self.i)", 4, "undeclared reference to 'foo' (in container '')"),
        ("self.s.nope()", 12, "undeclared reference to 'nope' (in container '')"),
        ("self.l.exists(x, y)", 18, "undeclared reference to 'y' (in container '')"),
        ("self.i == 'a'", 8, "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.i == 1.0", 8, "found no matching overload for '_==_' applied to '(int, double)'"),
        ("self.s == null", 8, "found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.m['a'] == 'x'", 13, "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.l[0] == 1", 11, "found no matching overload for '_==_' applied to '(string, int)'"),
        ("self.s + 1 == 'a'", 8, "found no matching overload for '_+_' applied to '(string, int)'"),
        ("self.t > '2020'", 8, "found no matching overload for '_>_' applied to '(timestamp, string)'"),
        ("self.l.map(x, x + 1).size() > 0", 17, "found no matching overload for '_+_' applied to '(string, int)'"),
        (
            "self.l.filter(x, x == 1).size() == 0",
            20,
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        ("self.s.startsWith(1)", 18, "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("self.i in self.l", 8, "found no matching overload for '@in' applied to '(int, list(string))'"),
        ("!self.i", 1, "found no matching overload for '!_' applied to '(int)'"),
        ("self.i == 1 ? 'a' : 2", 13, "found no matching overload for '_?_:_' applied to '(bool, string, int)'"),
        ("self.i > 1 && self.s", 19, "expected type 'bool' but found 'string'"),
        ("[1,'a'].size()==2", 4, "expected type 'int' but found 'string'"),
        ("self.s.matches('(')", 16, "invalid matches argument"),
        (
            "'%d'.format(['a']) == ''",
            14,
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%s'.format([]) == ''", 12, "index 0 out of range"),
        ("'%s'.format([1, 'a']) == ''", 12, "too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%q'.format([1]) == ''", 12, "could not parse formatting clause: unrecognized formatting clause \"q\""),
        ("duration('x') == duration('1s')", 10, "invalid duration argument"),
    ] {
        let dots = ".".repeat(column - 1);
        let expected = format!("compilation failed: ERROR: <input>:1:{column}: {what}\n | {source}\n | {dots}^");
        assert_eq!(wrong(source), expected);
    }
}

#[test]
fn a_rule_is_a_bool_and_a_message_a_string() {
    assert_eq!(wrong("self.i"), "cel expression must evaluate to a bool");
    assert_eq!(wrong("quantity('x')"), "cel expression must evaluate to a bool");
    let schema = schema(json!({"rule": "true", "messageExpression": "1"}));
    let root = schema.root();

    let found = message(&root.node().rules[0], root, false);

    assert_eq!(found.unwrap_err(), "messageExpression must evaluate to a string");
}

#[test]
fn syntax_errors_are_those_of_the_grammar() {
    assert_eq!(
        wrong("(self.i"),
        "compilation failed: ERROR: <input>:1:8: Syntax error: missing ')' at '<EOF>'\n | (self.i\n | .......^"
    );
}
