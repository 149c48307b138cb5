//! A plan → text for a terminal: names that become public, a line for each change, its fields below, a summary at the end.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    Action, Change, Counts, FieldDiff, Plan, field_diff,
    text::{printable, truncate},
};

/// Longer values are cut.
const LONGEST_VALUE: usize = 120;

/// Whether text carries terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// With ANSI colours.
    On,
    /// Plain text.
    Off,
}

impl Plan {
    /// The plan for people: `! admin.example.com becomes PUBLIC` where a name loses its protection, `+ create DNS record A www.example.com (example.com): why`, the fields below it, and
    /// `Plan: 2 to create, 1 to update, 0 to delete.` at the end.
    pub fn render(&self, colour: Colour) -> String {
        let mut text = String::new();
        for name in self.names.becoming_public() {
            text.push_str(&painted(&printable(&format!("! {name} becomes PUBLIC")), "1;31", colour));
            text.push_str(": it was protected, and would be published without its Access application\n");
        }
        if self.is_empty() {
            text.push_str("No changes.\n");
            return text;
        }
        for change in &self.changes {
            write_change(&mut text, change, colour);
        }
        text.push('\n');
        text.push_str(&self.counts().sentence());
        text.push('\n');
        text
    }
}

impl Counts {
    /// `Plan: 2 to create, 1 to update, 0 to delete.`; the rarer actions are named only where there are any.
    pub fn sentence(&self) -> String {
        let always = |action| matches!(action, Action::Create | Action::Update | Action::Delete);
        let parts: Vec<String> = Action::ALL
            .into_iter()
            .filter(|action| always(*action) || self.of(*action) > 0)
            .map(|action| format!("{} to {}", self.of(action), action.as_str()))
            .collect();
        format!("Plan: {}.", parts.join(", "))
    }
}

fn write_change(text: &mut String, change: &Change, colour: Colour) {
    let (sign, paint) = sign(change.action);
    let headline = [sign, " ", change.action.as_str(), " ", &headline(change)].concat();
    text.push_str(&painted(&headline, paint, colour));
    if !change.why.is_empty() {
        write!(text, ": {}", printable(&change.why)).expect("writing to a string cannot fail");
    }
    text.push('\n');
    for field in fields(change) {
        writeln!(text, "    {}", line(change, &field)).expect("writing to a string cannot fail");
    }
}

fn headline(change: &Change) -> String {
    let target = &change.target;
    let mut text = format!("{} {}", target.kind, target.name);
    if !target.scope.is_empty() {
        write!(text, " ({})", target.scope).expect("writing to a string cannot fail");
    }
    printable(&text).into_owned()
}

/// The sign before a change, and its ANSI colour.
fn sign(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Create => ("+", "32"),
        Action::Adopt => ("<", "36"),
        Action::Update => ("~", "33"),
        Action::Replace => ("±", "35"),
        Action::Delete => ("-", "31"),
        Action::Release => (">", "36"),
    }
}

fn painted(text: &str, paint: &str, colour: Colour) -> String {
    match colour {
        Colour::On => format!("\u{1b}[{paint}m{text}\u{1b}[0m"),
        Colour::Off => text.to_owned(),
    }
}

/// What differs; for objects that come, all of their fields, and for those that go, none.
fn fields(change: &Change) -> Vec<FieldDiff> {
    if change.action == Action::Delete {
        return Vec::new();
    }
    let nothing = Value::Object(serde_json::Map::new());
    let before = change.before.as_ref().unwrap_or(&nothing);
    let after = change.after.as_ref().unwrap_or(&nothing);
    field_diff(before, after)
}

fn line(change: &Change, field: &FieldDiff) -> String {
    let value = match (&field.before, &field.after) {
        (Some(before), Some(after)) => format!("{} → {}", cut(before), cut(after)),
        (Some(before), None) if change.after.is_some() => format!("{} → nothing", cut(before)),
        (Some(only), None) | (None, Some(only)) => cut(only),
        (None, None) => String::new(),
    };
    let text = if field.path.is_empty() { value } else { format!("{}: {value}", field.path) };
    printable(&text).into_owned()
}

/// A value, or its beginning and how long it is.
fn cut(value: &Value) -> String {
    let text = value.to_string();
    let shown = truncate(&text, LONGEST_VALUE);
    if shown.len() == text.len() { text } else { format!("{shown}… ({} characters)", text.chars().count()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Target;

    fn plan() -> Plan {
        let record = |name: &str| Target::new("DNS record", "example.com", name);
        let live = json!({ "content": "1.2.3.4", "proxied": false, "ttl": 300 });
        Plan::from_iter([
            Change::create(record("A www.example.com"), json!({ "content": "1.2.3.4", "ttl": 1 }), "it does not exist"),
            Change::update(
                record("A api.example.com").with_id("r1"),
                live.clone(),
                json!({ "content": "5.6.7.8", "proxied": false, "comment": "ours" }),
                "it was changed elsewhere",
            ),
            Change::update(record("A old.example.com"), live.clone(), live.clone(), "adopt is set")
                .as_action(Action::Adopt),
            Change::update(Target::new("network route", "", "10.0.0.0/8"), live.clone(), json!({ "content": "x" }), "")
                .as_action(Action::Replace),
            Change::delete(record("A gone.example.com"), live.clone(), "its object is deleted"),
            Change::delete(record("A kept.example.com"), json!({}), "it was here before").as_action(Action::Release),
        ])
    }

    #[test]
    fn a_plan_reads_as_one_line_for_each_change_with_its_fields_below() {
        insta::assert_snapshot!(plan().render(Colour::Off), @r#"
        + create DNS record A www.example.com (example.com): it does not exist
            content: "1.2.3.4"
            ttl: 1
        ~ update DNS record A api.example.com (example.com): it was changed elsewhere
            comment: "ours"
            content: "1.2.3.4" → "5.6.7.8"
            ttl: 300 → nothing
        < adopt DNS record A old.example.com (example.com): adopt is set
        ± replace network route 10.0.0.0/8
            content: "1.2.3.4" → "x"
            proxied: false → nothing
            ttl: 300 → nothing
        - delete DNS record A gone.example.com (example.com): its object is deleted
        > release DNS record A kept.example.com (example.com): it was here before

        Plan: 1 to create, 1 to adopt, 1 to update, 1 to replace, 1 to delete, 1 to release.
        "#);
    }

    #[test]
    fn colours_surround_the_headline_only() {
        let plan = Plan::from_iter(plan().changes.split_off(4));

        insta::assert_snapshot!(plan.render(Colour::On).replace('\u{1b}', "ESC"), @r#"
        ESC[31m- delete DNS record A gone.example.com (example.com)ESC[0m: its object is deleted
        ESC[36m> release DNS record A kept.example.com (example.com)ESC[0m: it was here before

        Plan: 0 to create, 0 to update, 1 to delete, 1 to release.
        "#);
    }

    #[test]
    fn ux_m13_a_long_value_is_cut() {
        let target = || Target::new("DNS record", "example.com", "TXT long.example.com");
        let (old, new) = (json!({ "content": "a".repeat(5000) }), json!({ "content": "ä".repeat(5000) }));

        let text = Plan::from_iter([Change::update(target(), old, new, "")]).render(Colour::Off);

        assert!(text.chars().count() < 450 && text.matches("… (5002 characters)").count() == 2, "{text}");
    }

    #[test]
    fn a_name_that_becomes_public_is_told_first_and_in_red() {
        let mut plan = plan();
        plan.names.protected_before.insert("a.example.com".to_owned());
        plan.names.open.insert("a.example.com".to_owned());

        let text = plan.render(Colour::On);

        assert!(text.starts_with("\u{1b}[1;31m! a.example.com becomes PUBLIC\u{1b}[0m: "), "{text}");
    }

    #[test]
    fn rare_actions_are_counted_only_where_there_are_any() {
        assert_eq!(
            Counts { create: 2, update: 1, ..Counts::default() }.sentence(),
            "Plan: 2 to create, 1 to update, 0 to delete."
        );
    }

    #[test]
    fn an_empty_plan_says_so() {
        assert_eq!(Plan::default().render(Colour::On), "No changes.\n");
    }

    #[test]
    fn nothing_in_a_plan_can_move_the_cursor() {
        let target = Target::new("DNS record", "example.com", "A \u{1b}[2J");
        let plan = Plan::from_iter([Change::create(target, json!({ "a\u{9b}": "b\u{7f}\n" }), "c\r")]);

        assert!(!plan.render(Colour::Off).replace('\n', "").contains(char::is_control));
    }
}
