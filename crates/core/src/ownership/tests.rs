//! Every case of "whose is it" against "is it as wanted".

mod unmarked;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{MarkField, ObjectKey, OwnerId, Plan};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    name: String,
    content: String,
    #[serde(default)]
    comment: String,
}

impl Item for Record {
    const MARK: Option<MarkField<Self>> =
        Some(MarkField { limit: 100, text: |record| &record.comment, set: |record, text| record.comment = text });

    fn natural_key(&self) -> String {
        self.name.clone()
    }

    fn normalise(&mut self) {
        self.content = self.content.to_lowercase();
    }

    fn replaces(&self, old: &Self) -> bool {
        self.name != old.name
    }
}

fn record(name: &str, content: &str, comment: &str) -> Record {
    Record { name: name.to_owned(), content: content.to_owned(), comment: comment.to_owned() }
}

fn there(id: &str, body: Record) -> Entry<Record> {
    Entry { id: id.to_owned(), item: body }
}

fn mark() -> Mark {
    let key = ObjectKey { namespace: Some("web".to_owned()), name: "www".to_owned() };
    Mark { kind: "DNSRecord".to_owned(), key, owner: OwnerId::derive("home"), adopted: false }
}

fn ours(text: &str) -> String {
    mark().write(text, 100)
}

fn adopted(text: &str) -> String {
    Mark { adopted: true, ..mark() }.write(text, 100)
}

struct Case {
    wanted: Vec<Record>,
    there: Vec<Entry<Record>>,
    recorded: Vec<String>,
    adopt: bool,
}

fn case(wanted: Vec<Record>, there: Vec<Entry<Record>>) -> Case {
    Case { wanted, there, recorded: Vec::new(), adopt: false }
}

impl Case {
    fn recorded(mut self, id: &str) -> Self {
        self.recorded.push(id.to_owned());
        self
    }

    fn adopting(mut self) -> Self {
        self.adopt = true;
        self
    }

    fn run(&self) -> Result<Matched<Record>, Problem> {
        match_bodies(Matching {
            noun: "record",
            wanted: self.wanted.clone(),
            candidates: self.there.clone(),
            recorded: OwnRecord { ids: &self.recorded, ..OwnRecord::default() },
            elsewhere: &BTreeMap::new(),
            mark: &mark(),
            mark_limit: Some(100),
            adopt: self.adopt,
            annotation: "example.com/adopt",
        })
    }

    fn steps(&self) -> Vec<String> {
        let matched = self.run().expect("the case has a plan");
        let plan = matched.steps.iter().map(|step| step.change("record", "zone", "test")).collect::<Plan>();
        let change = |change: &Change| {
            format!("{:?} {} {}", change.action, change.target.name, change.target.id.as_deref().unwrap_or("-"))
        };
        plan.changes.iter().map(change).collect()
    }
}

#[test]
fn what_does_not_exist_is_created_with_our_mark() {
    let matched = case(vec![record("www", "a", "hello")], vec![]).run().expect("a plan");

    assert_eq!(matched.steps, [RemoteWrite::Create { body: record("www", "a", &ours("hello")) }]);
}

#[test]
fn what_is_ours_and_as_wanted_is_kept_whatever_the_server_did_to_its_case() {
    let case = case(vec![record("www", "a", "hello")], vec![there("1", record("www", "A", &ours("hello")))]);

    assert_eq!(case.steps(), [""; 0]);
    assert_eq!(case.run().expect("a plan").kept.len(), 1);
}

#[test]
fn what_is_ours_and_differs_is_changed_in_place() {
    let case = case(vec![record("www", "b", "")], vec![there("1", record("www", "a", &ours("")))]);

    assert_eq!(case.steps(), ["Update www 1"]);
}

#[test]
fn a_recorded_object_without_a_mark_is_ours_and_gets_one() {
    let case = case(vec![record("www", "a", "")], vec![there("1", record("www", "a", ""))]).recorded("1");

    assert_eq!(case.steps(), ["Update www 1"]);
}

#[test]
fn what_cannot_be_changed_in_place_is_made_new_before_the_old_goes() {
    let case = case(vec![record("new", "a", "")], vec![there("1", record("old", "a", &ours("")))]);

    assert_eq!(case.steps(), ["Create new -", "Delete old 1"]);
}

#[test]
fn an_unmarked_object_with_other_content_is_left_alone_with_a_reason() {
    let problem =
        case(vec![record("www", "a", "")], vec![there("1", record("www", "b", ""))]).run().expect_err("a conflict");

    assert_eq!(problem.reason, reasons::CONFLICT_ERROR);
    assert!(problem.message.contains("example.com/adopt"), "{}", problem.message);
}

#[test]
fn an_unmarked_object_that_is_already_as_wanted_is_adopted() {
    let matched =
        case(vec![record("www", "a", "x")], vec![there("1", record("www", "A", "theirs"))]).run().expect("a plan");

    let after = record("www", "a", &adopted("x"));
    assert_eq!(matched.steps, [RemoteWrite::Adopt { id: "1".to_owned(), before: record("www", "A", "theirs"), after }]);
}

#[test]
fn an_unmarked_object_is_adopted_when_the_user_says_so() {
    let case = case(vec![record("www", "a", "")], vec![there("1", record("www", "b", ""))]).adopting();

    assert_eq!(case.steps(), ["Adopt www 1"]);
}

#[test]
fn of_several_unmarked_objects_none_is_adopted_by_guess() {
    let there = vec![there("1", record("www", "b", "")), there("2", record("www", "c", ""))];
    let problem = case(vec![record("www", "a", "")], there).adopting().run().expect_err("a conflict");

    assert!(problem.message.contains("2 objects"), "{}", problem.message);
}

#[test]
fn what_another_owner_marked_is_never_touched_in_either_spelling() {
    for foreign in ["[managed:DNSRecord/web/other#00000000] hi", "[managed-by:DNSRecord/web/other] hi"] {
        for recorded in ["", "1"] {
            let case = case(vec![record("www", "a", "")], vec![there("1", record("www", "a", foreign))]).adopting();

            let problem = case.recorded(recorded).run().expect_err("a conflict");

            assert_eq!(problem.reason, reasons::CONFLICT_ERROR);
            assert!(problem.message.contains("web/other"), "{}", problem.message);
        }
    }
}

#[test]
fn an_adopted_object_stays_adopted_through_changes_and_is_released_at_the_end() {
    let stands = || vec![there("1", record("www", "a", &adopted("x")))];
    let changed = case(vec![record("www", "b", "x")], stands()).run().expect("a plan");

    let after = record("www", "b", &adopted("x"));
    assert_eq!(
        changed.steps,
        [RemoteWrite::Update { id: "1".to_owned(), before: record("www", "a", &adopted("x")), after }]
    );
    let ended = case(vec![], stands()).run().expect("a plan");
    let after = record("www", "a", "x");
    assert_eq!(
        ended.steps,
        [RemoteWrite::Release { id: "1".to_owned(), before: record("www", "a", &adopted("x")), after }]
    );
}

#[test]
fn the_end_removes_what_is_marked_or_recorded_and_nothing_else() {
    let there = vec![
        there("1", record("www", "a", &ours(""))),
        there("2", record("www", "b", "")),
        there("3", record("www", "c", "")),
        there("4", record("www", "d", "[managed:DNSRecord/web/other#00000000]")),
    ];
    let case = case(vec![], there).recorded("2").recorded("4");

    assert_eq!(case.steps(), ["Delete www 1", "Delete www 2"]);
}

#[test]
fn one_of_three_addresses_that_goes_takes_only_its_own_record() {
    let address = |content: &str| record("www", content, "");
    let marked = |id: &str, content: &str| there(id, record("www", content, &ours("")));
    let case = case(vec![address("1"), address("3")], vec![marked("a", "1"), marked("b", "2"), marked("c", "3")]);

    assert_eq!(case.steps(), ["Delete www b"]);
}

proptest! {
    /// Carrying out a plan leaves nothing to do, and touches nothing that is not ours.
    #[test]
    fn a_plan_carried_out_leaves_an_empty_plan(
        wanted in prop::collection::btree_set(("[ab]", "[xyz]"), 0..4),
        existing in prop::collection::vec(("[abc]", "[xyz]", 0..4_u8), 0..6),
        adopt in any::<bool>(),
    ) {
        let comment = |kind: u8| match kind { 0 => ours(""), 1 => adopted(""), 2 => String::new(), _ => "[managed:DNSRecord/x/y#00000000]".to_owned() };
        let there: Vec<_> = existing.iter().enumerate()
            .map(|(at, (name, content, kind))| there(&at.to_string(), record(name, content, &comment(*kind)))).collect();
        let wanted: Vec<_> = wanted.iter().map(|(name, content)| record(name, content, "")).collect();
        let first = Case { wanted: wanted.clone(), there: there.clone(), recorded: vec![], adopt };
        let Ok(matched) = first.run() else { return Ok(()) };

        let after = carried_out(&there, &matched.steps);

        for entry in there.iter().filter(|entry| matches!(mark().claim(&entry.item.comment), Claim::Foreign(_))) {
            prop_assert!(after.contains(entry));
        }
        let again = Case { wanted, there: after, recorded: vec![], adopt };
        prop_assert_eq!(again.steps(), Vec::<String>::new());
    }
}

fn carried_out(there: &[Entry<Record>], steps: &[RemoteWrite<Record>]) -> Vec<Entry<Record>> {
    let mut after = there.to_vec();
    for (at, step) in steps.iter().enumerate() {
        match step {
            RemoteWrite::Create { body } => after.push(Entry { id: format!("new{at}"), item: body.clone() }),
            RemoteWrite::Update { id, after: body, .. }
            | RemoteWrite::Adopt { id, after: body, .. }
            | RemoteWrite::Release { id, after: body, .. } => {
                after.iter_mut().filter(|entry| entry.id == *id).for_each(|entry| entry.item = body.clone());
            }
            RemoteWrite::Delete { id, .. } => after.retain(|entry| entry.id != *id),
        }
    }
    after
}
