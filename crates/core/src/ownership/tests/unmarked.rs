//! The same where nothing carries a mark: what is recorded, noted, or recorded by another object.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, json};

use super::*;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    name: String,
    rules: String,
    #[serde(skip)]
    made: Option<Timestamp>,
    #[serde(skip)]
    secret: Option<String>,
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.rules) == (&other.name, &other.rules)
    }
}

impl Item for Group {
    fn natural_key(&self) -> String {
        self.name.clone()
    }

    fn made_at(&self) -> Option<Timestamp> {
        self.made
    }

    fn unseen(&self) -> Option<Map<String, serde_json::Value>> {
        json!({ "secret": self.secret.as_ref()? }).as_object().cloned()
    }

    fn normalise(&mut self) {
        self.rules = self.rules.to_lowercase();
    }
}

const NOW: &str = "2026-11-16T05:00:00Z";

fn group(rules: &str) -> Group {
    Group { name: "staff".to_owned(), rules: rules.to_owned(), made: None, secret: None }
}

fn made(id: &str, rules: &str, after: SignedDuration) -> Entry<Group> {
    let made = NOW.parse::<Timestamp>().unwrap() + after;
    Entry { id: id.to_owned(), item: Group { made: Some(made), ..group(rules) } }
}

const fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

#[derive(Default)]
struct Intent {
    wanted: Vec<Group>,
    there: Vec<Entry<Group>>,
    ids: Vec<String>,
    adopted: Option<&'static str>,
    creating: Option<CreatingNote>,
    unseen: Option<String>,
    elsewhere: BTreeMap<String, String>,
    adopt: bool,
}

impl Intent {
    fn run(&self) -> Result<Matched<Group>, Problem> {
        match_bodies(Matching {
            noun: "group",
            wanted: self.wanted.clone(),
            candidates: self.there.clone(),
            recorded: OwnRecord {
                ids: &self.ids,
                adopted: self.adopted,
                creating: self.creating.as_ref(),
                unseen: self.unseen.as_deref(),
            },
            elsewhere: &self.elsewhere,
            mark: &mark(),
            mark_limit: None,
            adopt: self.adopt,
            annotation: "example.com/adopt",
        })
    }

    fn steps(&self) -> Vec<String> {
        let steps = self.run().expect("the case has a plan").steps;
        steps.iter().map(|step| format!("{:?}{}", step.change("group", "account", "test").action, id(step))).collect()
    }
}

fn id(step: &RemoteWrite<Group>) -> String {
    step.change("group", "account", "test").target.id.map(|id| format!(" {id}")).unwrap_or_default()
}

fn note() -> CreatingNote {
    CreatingNote::of(&group("a"), NOW, None)
}

#[test]
fn what_was_recorded_as_adopted_is_released_and_not_deleted() {
    let there = vec![made("1", "a", seconds(0))];
    let ids = vec!["1".to_owned()];

    let adopted = Intent { there: there.clone(), ids: ids.clone(), adopted: Some("1"), ..Intent::default() };
    let own = Intent { there, ids, adopted: Some("another"), ..Intent::default() };

    assert_eq!(adopted.steps(), ["Release 1"]);
    assert_eq!(own.steps(), ["Delete 1"]);
}

#[test]
fn what_the_note_announced_is_ours_and_goes_with_its_object() {
    let there = vec![made("1", "A", seconds(1))];

    let wanted = Intent { wanted: vec![group("a")], there: there.clone(), creating: Some(note()), ..Intent::default() };
    let gone = Intent { there, creating: Some(note()), ..Intent::default() };

    assert_eq!(wanted.steps(), [""; 0]);
    assert_eq!(gone.steps(), ["Delete 1"]);
}

#[test]
fn what_was_announced_is_renamed_with_its_object_and_not_left_behind() {
    let renamed = Group { name: "people".to_owned(), ..group("a") };
    let case = Intent {
        wanted: vec![renamed],
        there: vec![made("1", "a", seconds(1))],
        creating: Some(note()),
        ..Intent::default()
    };

    assert_eq!(case.steps(), ["Update 1"]);
}

#[test]
fn what_stood_before_the_note_or_came_long_after_it_is_not_ours() {
    for age in [seconds(-301), seconds(15 * 60 + 1)] {
        let there = vec![made("1", "a", age)];

        let wanted =
            Intent { wanted: vec![group("a")], there: there.clone(), creating: Some(note()), ..Intent::default() };
        let gone = Intent { there, creating: Some(note()), ..Intent::default() };

        assert_eq!(wanted.steps(), ["Adopt 1"], "{age}");
        assert_eq!(gone.steps(), [""; 0], "{age}");
    }
}

#[test]
fn clocks_may_differ_by_minutes() {
    for age in [seconds(-299), seconds(14 * 60)] {
        let gone = Intent { there: vec![made("1", "a", age)], creating: Some(note()), ..Intent::default() };

        assert_eq!(gone.steps(), ["Delete 1"], "{age}");
    }
}

#[test]
fn what_has_other_content_or_tells_no_time_is_not_what_the_note_announced() {
    let untold = Entry { id: "1".to_owned(), item: group("a") };
    for there in [made("1", "b", seconds(1)), untold] {
        let gone = Intent { there: vec![there], creating: Some(note()), ..Intent::default() };

        assert_eq!(gone.steps(), [""; 0]);
    }
}

#[test]
fn of_two_that_could_be_the_one_none_is_deleted() {
    let there = vec![made("1", "a", seconds(1)), made("2", "a", seconds(2))];

    let gone = Intent { there: there.clone(), creating: Some(note()), ..Intent::default() };
    let wanted = Intent { wanted: vec![group("a")], there, creating: Some(note()), ..Intent::default() };

    assert_eq!(gone.steps(), [""; 0]);
    assert_eq!(wanted.steps(), ["Adopt 1"]);
}

#[test]
fn what_another_object_recorded_is_as_good_as_marked() {
    let elsewhere: BTreeMap<String, String> = [("1".to_owned(), "AccessGroup/other".to_owned())].into();
    let there = vec![made("1", "a", seconds(1))];

    let gone =
        Intent { there: there.clone(), creating: Some(note()), elsewhere: elsewhere.clone(), ..Intent::default() };
    let wanted = Intent { wanted: vec![group("a")], there, elsewhere, adopt: true, ..Intent::default() };

    assert_eq!(gone.steps(), [""; 0]);
    let problem = wanted.run().unwrap_err();
    assert_eq!(problem.reason, reasons::CONFLICT_ERROR);
    assert!(problem.message.ends_with("managed by AccessGroup/other; it was left untouched. Remove one of the two"));
}

#[test]
fn nothing_is_sent_for_what_is_taken_over_as_it_is_or_given_back() {
    let there = vec![made("1", "A", seconds(-9000))];
    let adoption = Intent { wanted: vec![group("a")], there: there.clone(), ..Intent::default() };
    let release = Intent { there: there.clone(), ids: vec!["1".to_owned()], adopted: Some("1"), ..Intent::default() };
    let changing = Intent { wanted: vec![group("b")], there, adopt: true, ..Intent::default() };

    let silent = |case: &Intent| case.run().unwrap().steps.iter().map(RemoteWrite::is_silent).collect::<Vec<_>>();

    assert_eq!((silent(&adoption), silent(&release), silent(&changing)), (vec![true], vec![true], vec![false]));
}

#[test]
fn an_object_of_somebody_else_with_the_same_key_is_no_conflict_beside_ours() {
    let there = vec![made("1", "a", seconds(0)), made("2", "theirs", seconds(0))];
    let case = Intent { wanted: vec![group("a")], there, ids: vec!["1".to_owned()], ..Intent::default() };

    assert!(case.run().unwrap().beside.is_empty());
}

#[test]
fn what_is_never_shown_is_written_when_it_changes() {
    let secret = Group { secret: Some("s".to_owned()), ..group("a") };
    let written = unseen(&secret);
    let case = |unseen: Option<String>, wanted: &Group| Intent {
        wanted: vec![wanted.clone()],
        there: vec![made("1", "a", seconds(0))],
        ids: vec!["1".to_owned()],
        unseen,
        ..Intent::default()
    };

    assert_eq!(case(written.clone(), &secret).steps(), [""; 0]);
    assert_eq!(case(None, &secret).steps(), ["Update 1"]);
    assert_eq!(case(written, &group("a")).steps(), ["Update 1"]);
    assert_eq!(secret.create_body(), json!({ "name": "staff", "rules": "a", "secret": "s" }));
}

#[test]
fn a_note_keeps_its_time_for_some_minutes_and_for_the_same_content() {
    let first = CreatingNote::of(&group("a"), NOW, None);
    let note = |rules: &str, now: &str| CreatingNote::of(&group(rules), now, Some(&first)).since;

    assert_eq!(note("a", "2026-11-16T05:09:59Z"), NOW);
    assert_eq!(note("a", "2026-11-16T05:10:00Z"), "2026-11-16T05:10:00Z");
    assert_eq!(note("a", "2026-11-16T04:59:59Z"), "2026-11-16T04:59:59Z");
    assert_eq!(note("b", "2026-11-16T05:00:01Z"), "2026-11-16T05:00:01Z");
}
