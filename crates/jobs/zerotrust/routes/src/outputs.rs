//! The annotations that are written back: from what is recorded, and from what is wrong. Pure.
//!
//! They tell users something and are never read: whoever edits them finds them as they were.

use std::collections::BTreeMap;

use portolan_core::{Class, Problem, text};
use portolan_zerotrust_model::{State, annotations};
use serde_json::{Map, Value, json};

/// Characters of a message in an annotation.
const LONGEST_MESSAGE: usize = 1024;

/// What is wrong with a route, as its annotations say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// `Error` or `Pending`.
    pub(crate) status: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

impl Trouble {
    /// A problem of the route's own.
    pub(crate) fn of(problem: &Problem) -> Self {
        let status = match problem.class {
            Class::Waiting => "Pending",
            Class::Invalid | Class::Transient | Class::Denied => "Error",
        };
        Self { status, message: short(&format!("{}: {}", problem.reason, problem.message)) }
    }

    /// What a failed task says.
    pub(crate) fn failed(message: &str) -> Self {
        Self { status: "Error", message: short(message) }
    }
}

fn short(message: &str) -> String {
    text::shorten(message, LONGEST_MESSAGE).into_owned()
}

/// The outputs that a route should carry, without their prefix.
pub(crate) fn wanted(state: Option<&State>, trouble: Option<&Trouble>) -> BTreeMap<&'static str, String> {
    portolan_core::waypoint!();
    let mut outputs = state.map(State::outputs).unwrap_or_default();
    if let Some(trouble) = trouble {
        outputs.insert("status", trouble.status.to_owned());
        outputs.insert("statusMessage", trouble.message.clone());
    }
    outputs
}

/// The annotations that have to change for a route to carry the outputs and nothing of older operators' frameworks;
/// none where all is as it should be. A null takes an annotation away.
pub(crate) fn difference(
    present: &BTreeMap<String, String>,
    wanted: &BTreeMap<&'static str, String>,
) -> Option<Map<String, Value>> {
    let mut changes = Map::new();
    for name in present.keys() {
        let stale = name
            .strip_prefix(annotations::PREFIX)
            .is_some_and(|suffix| annotations::is_output(suffix) && !wanted.contains_key(suffix));
        if stale || name.starts_with(annotations::OLDER_PREFIX) {
            changes.insert(name.clone(), Value::Null);
        }
    }
    for (suffix, value) in wanted {
        let name = annotations::name(suffix);
        if present.get(&name) != Some(value) {
            changes.insert(name, json!(value));
        }
    }
    (!changes.is_empty()).then_some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn scenario_07_an_edited_output_is_put_back_and_inputs_are_left_alone() {
        let present = annotated(&[
            ("cfzt.cloudflare.com/hostname", "a.example.com"),
            ("cfzt.cloudflare.com/cnameRecordId", "edited"),
            ("cfzt.cloudflare.com/accessAppId", "invented"),
            ("example.com/other", "1"),
        ]);
        let wanted = [("cnameRecordId", "r1".to_owned())].into();

        let changes = difference(&present, &wanted).unwrap();

        let expected = json!({"cfzt.cloudflare.com/cnameRecordId": "r1", "cfzt.cloudflare.com/accessAppId": null});
        assert_eq!(Value::Object(changes), expected);
    }

    #[test]
    fn annotations_of_an_older_framework_go() {
        let present = annotated(&[("kopf.cfzt.cloudflare.com/last-handled-configuration", "{}")]);

        assert_eq!(difference(&present, &BTreeMap::new()).unwrap().len(), 1);
    }

    #[test]
    fn a_route_as_it_should_be_needs_no_write() {
        let present = annotated(&[("cfzt.cloudflare.com/cnameRecordId", "r1")]);

        assert_eq!(difference(&present, &[("cnameRecordId", "r1".to_owned())].into()), None);
    }

    #[test]
    fn trouble_is_told_by_its_class() {
        let waiting = Trouble::of(&Problem::waiting("TenantNotFound", "there is none"));

        assert_eq!((waiting.status, waiting.message.as_str()), ("Pending", "TenantNotFound: there is none"));
        assert_eq!(Trouble::of(&Problem::invalid("InvalidHostname", "no")).status, "Error");
    }
}
