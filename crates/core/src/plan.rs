//! A plan is a value: what would be changed, where, and why.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What happens to a remote object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It is made.
    Create,
    /// It exists and becomes ours.
    Adopt,
    /// Some fields change.
    Update,
    /// It is deleted and made anew, because a field that cannot be changed has to.
    Replace,
    /// It is deleted.
    Delete,
    /// It stays and is no longer ours.
    Release,
}

impl Action {
    /// All actions, in the order in which a summary names them.
    pub const ALL: [Self; 6] = [Self::Create, Self::Adopt, Self::Update, Self::Replace, Self::Delete, Self::Release];

    /// The verb: `create`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Adopt => "adopt",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Release => "release",
        }
    }
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Target {
    /// The sort of remote object, as `DNS record`.
    pub kind: String,
    /// Where it lives, as `example.com`; may be empty.
    pub scope: String,
    /// Its name there, as `A www.example.com`.
    pub name: String,
    /// Its id, where it has one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Target {
    /// A target that has no id yet.
    pub fn new(kind: impl Into<String>, scope: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), scope: scope.into(), name: name.into(), id: None }
    }

    /// The same target with its id.
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }
}

/// One change of one remote object. Secrets never come in: who makes it masks them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What is changed.
    pub target: Target,
    /// What happens to it.
    pub action: Action,
    /// The fields as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The fields as they will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Why, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Change {
    /// A remote object that is made.
    pub fn create(target: Target, after: Value, why: impl Into<String>) -> Self {
        Self { target, action: Action::Create, before: None, after: Some(after), why: why.into() }
    }

    /// A remote object whose fields change; also for adopting and replacing, with [`Change::as_action`].
    pub fn update(target: Target, before: Value, after: Value, why: impl Into<String>) -> Self {
        Self { target, action: Action::Update, before: Some(before), after: Some(after), why: why.into() }
    }

    /// A remote object that is deleted; also for releasing, with [`Change::as_action`].
    pub fn delete(target: Target, before: Value, why: impl Into<String>) -> Self {
        Self { target, action: Action::Delete, before: Some(before), after: None, why: why.into() }
    }

    /// The same change under another action.
    pub fn as_action(self, action: Action) -> Self {
        Self { action, ..self }
    }
}

/// What a reconcile would change, in the order in which it would.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The names that it is about, and whether they are protected.
    #[serde(default, skip_serializing_if = "NameChanges::is_empty")]
    pub names: NameChanges,
}

/// Names and their protection, before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameChanges {
    /// Those that were protected so far, whether or not they stay.
    pub protected_before: BTreeSet<String>,
    /// Those that would be published with protection.
    pub protected: BTreeSet<String>,
    /// Those that would be published without.
    pub open: BTreeSet<String>,
}

impl NameChanges {
    /// Whether it is about none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The names that lose their protection and stay published, or are published by somebody else: open to everyone. What
    /// protects `*.example.com` protects the names below it.
    pub fn becoming_public(&self) -> Vec<&str> {
        let lost = |name: &&String| covers(&self.protected_before, name) && !covers(&self.protected, name);
        self.open.iter().filter(lost).map(String::as_str).collect()
    }
}

fn covers(names: &BTreeSet<String>, name: &str) -> bool {
    let below = |suffix: &str| suffix.strip_prefix('*').is_some_and(|suffix| name.ends_with(suffix));
    names.iter().any(|one| one == name || below(one))
}

impl Plan {
    /// Adds another plan to this one.
    pub fn extend(&mut self, other: Self) {
        self.changes.extend(other.changes);
        let NameChanges { protected_before, protected, open } = other.names;
        self.names.protected_before.extend(protected_before);
        self.names.protected.extend(protected);
        self.names.open.extend(open);
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many changes of each action there are.
    pub fn counts(&self) -> Counts {
        self.changes.iter().fold(Counts::default(), |counts, change| counts.plus(change.action))
    }

    /// The changes and their counts as JSON, in a stable form that programs may read.
    pub fn to_json(&self) -> Value {
        json!({
            "changes": self.changes, "summary": self.counts(), "becomingPublic": self.names.becoming_public(),
        })
    }
}

impl FromIterator<Change> for Plan {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> Self {
        Self { changes: changes.into_iter().collect(), names: NameChanges::default() }
    }
}

/// How many changes of each action a plan has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Objects to make.
    pub create: usize,
    /// Objects to take over.
    pub adopt: usize,
    /// Objects to change.
    pub update: usize,
    /// Objects to make anew.
    pub replace: usize,
    /// Objects to delete.
    pub delete: usize,
    /// Objects to let go.
    pub release: usize,
}

impl Counts {
    /// The count of one action.
    pub fn of(&self, action: Action) -> usize {
        match action {
            Action::Create => self.create,
            Action::Adopt => self.adopt,
            Action::Update => self.update,
            Action::Replace => self.replace,
            Action::Delete => self.delete,
            Action::Release => self.release,
        }
    }

    fn plus(mut self, action: Action) -> Self {
        match action {
            Action::Create => self.create += 1,
            Action::Adopt => self.adopt += 1,
            Action::Update => self.update += 1,
            Action::Replace => self.replace += 1,
            Action::Delete => self.delete += 1,
            Action::Release => self.release += 1,
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_is_stable() {
        let target = Target::new("DNS record", "example.com", "A www.example.com");
        let plan = Plan::from_iter([
            Change::create(target.clone(), json!({ "content": "1.2.3.4" }), "it does not exist"),
            Change::delete(target.with_id("r1"), json!({ "content": "5.6.7.8" }), ""),
        ]);

        insta::assert_json_snapshot!(plan.to_json(), @r#"
        {
          "becomingPublic": [],
          "changes": [
            {
              "action": "create",
              "after": {
                "content": "1.2.3.4"
              },
              "target": {
                "kind": "DNS record",
                "name": "A www.example.com",
                "scope": "example.com"
              },
              "why": "it does not exist"
            },
            {
              "action": "delete",
              "before": {
                "content": "5.6.7.8"
              },
              "target": {
                "id": "r1",
                "kind": "DNS record",
                "name": "A www.example.com",
                "scope": "example.com"
              }
            }
          ],
          "summary": {
            "adopt": 0,
            "create": 1,
            "delete": 1,
            "release": 0,
            "replace": 0,
            "update": 0
          }
        }
        "#);
        assert_eq!(serde_json::from_value::<Plan>(plan.to_json()).unwrap(), plan);
    }

    fn names(protected_before: &[&str], protected: &[&str], open: &[&str]) -> NameChanges {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        NameChanges { protected_before: set(protected_before), protected: set(protected), open: set(open) }
    }

    #[test]
    fn a_name_becomes_public_when_it_stays_and_its_protection_does_not() {
        assert_eq!(names(&["a.x"], &[], &["a.x"]).becoming_public(), ["a.x"]);
        assert!(names(&["a.x"], &["a.x"], &[]).becoming_public().is_empty(), "it stays protected");
        assert!(names(&["a.x"], &[], &[]).becoming_public().is_empty(), "it goes");
        assert!(names(&[], &[], &["a.x"]).becoming_public().is_empty(), "it was open");
    }

    #[test]
    fn a_name_below_a_wildcard_loses_its_protection_with_it() {
        assert_eq!(names(&["*.x"], &[], &["a.x"]).becoming_public(), ["a.x"]);
        assert!(names(&["a.x"], &["*.x"], &["a.x"]).becoming_public().is_empty());
        assert!(names(&["*.x"], &[], &["x", "a.yx"]).becoming_public().is_empty());
    }

    #[test]
    fn another_route_that_publishes_the_name_open_makes_it_public() {
        let mut plan = Plan { names: names(&["a.x"], &["b.x"], &[]), ..Plan::default() };

        plan.extend(Plan { names: names(&[], &[], &["a.x"]), ..Plan::default() });

        assert_eq!(plan.to_json()["becomingPublic"], json!(["a.x"]));
    }

    #[test]
    fn every_action_is_counted_once() {
        let plan: Plan = Action::ALL
            .into_iter()
            .map(|action| Change::create(Target::new("", "", ""), Value::Null, "").as_action(action))
            .collect();

        let counts = plan.counts();

        assert!(Action::ALL.into_iter().all(|action| counts.of(action) == 1));
        assert!(!plan.is_empty() && Plan::default().is_empty());
    }
}
