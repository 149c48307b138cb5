//! The differences that are meant, each with its reason. An entry that no longer differs is an error.

use crate::compare::{ABSENT, Difference};

/// A place where the embedded server answers differently and why that is right, or accepted for now.
#[derive(Debug)]
pub(crate) struct KnownDifference {
    /// The case's title, `group: name`; its start where a `*` follows.
    pub case: &'static str,
    /// The number of the step, from 1; 0 is any.
    pub step: usize,
    /// The place in the answer: `*` stands for one part of the path, a last `**` for any number of them. Where the
    /// status differs, only status, message and reason are looked at: the rest follows.
    pub at: &'static str,
    pub how: How,
    pub reason: &'static str,
}

/// In which way the answers may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// In any.
    Anyhow,
    /// The embedded server lacks what stands there.
    Lacking,
}

const fn differs(case: &'static str, step: usize, at: &'static str, reason: &'static str) -> KnownDifference {
    KnownDifference { case, step, at, how: How::Anyhow, reason }
}

const fn lacks(case: &'static str, step: usize, at: &'static str, reason: &'static str) -> KnownDifference {
    KnownDifference { case, step, at, how: How::Lacking, reason }
}

const COSTLY: &str = "crd: a rule that costs too much refuses the definition";
const NO_ESTIMATE: &str =
    "the cost of rules is not estimated: a schema's author finds out on a cluster, users cannot be hurt by it";
const NOT_SERVED: &str = "kinds that no controller of ours reads are not served";
const TOO_DEEP: &str = "more than 128 levels are refused: no object has them, and they cost stack";
const TRUE: &str = "badinput: YAML has more than one word for true";
const YAML_1_2: &str = "YAML 1.2 is read: `y` is a text";
const TWICE: &str = "validation: duplicate fields by fieldValidation";
const LAST_TAKEN: &str = "of two maps under one key the last is taken; Go merges them into a typed object";
const TWO_VERSIONS: &str = "crd: two served versions show the same objects";
const REAL_FAILS: &str = "the real server fails (500) to apply a field that only the version of the request has";
const OTHER_KIND: &str = "patch: a merge patch may not change apiVersion or kind";
const BY_NAME: &str = "a patched kind is refused by its name; the real server tries to decode it first";
const LOOPBACK: &str = "pods: a cluster's addresses of this machine are no endpoints";
const PROCESSES: &str = "pods that are processes of this machine have loopback addresses, so slices may name them";
const CONTRADICTING: &str = "gateway: listeners that contradict each other";
const OTHER_SIDE: &str = "of two failing sides of a CEL `||`, the other one is named";
const BYTES: &str = "strategic: a map that was not there loses its directives and nulls";
const UINT8: &str = "the real server cannot follow directives in binaryData (unrecognized type: uint8)";

/// Every accepted difference.
pub(crate) const KNOWN: &[KnownDifference] = &[
    differs(COSTLY, 1, "status", NO_ESTIMATE),
    differs(COSTLY, 1, "body.message", NO_ESTIMATE),
    differs(COSTLY, 1, "body.reason", NO_ESTIMATE),
    lacks("discovery: the resources of *", 0, "body.resources.*", NOT_SERVED),
    differs("badinput: deep nesting", 2, "status", TOO_DEEP),
    differs("badinput: deep nesting", 2, "body.message", TOO_DEEP),
    differs("badinput: deep nesting", 2, "body.reason", TOO_DEEP),
    differs("badinput: deep nesting in a custom resource", 2, "status", TOO_DEEP),
    differs(
        "badinput: numbers out of range",
        2,
        "body.message",
        "a number that no double holds is refused by the parser, before its field is known",
    ),
    lacks(TRUE, 2, "body.data.true", YAML_1_2),
    differs(TRUE, 2, "body.data.y", YAML_1_2),
    lacks(TRUE, 2, "body.metadata.managedFields.0.fieldsV1.f:data.f:true", YAML_1_2),
    differs(TRUE, 2, "body.metadata.managedFields.0.fieldsV1.f:data.f:y", YAML_1_2),
    differs(
        "badinput: no token",
        4,
        "status",
        "probes need no token; the compared server runs with anonymous requests off",
    ),
    lacks(TWICE, 2, "body.data.x", LAST_TAKEN),
    lacks(TWICE, 2, "body.metadata.managedFields.0.fieldsV1.f:data.f:x", LAST_TAKEN),
    lacks(
        "ssa: an apply with a key twice",
        1,
        "warnings.0",
        "the YAML parser takes the last of two keys and does not tell",
    ),
    differs(TWO_VERSIONS, 8, "status", REAL_FAILS),
    lacks(TWO_VERSIONS, 8, "body.message", REAL_FAILS),
    differs(TWO_VERSIONS, 9, "body.metadata.generation", REAL_FAILS),
    differs(TWO_VERSIONS, 9, "body.metadata.managedFields.0.apiVersion", REAL_FAILS),
    differs(TWO_VERSIONS, 9, "body.metadata.managedFields.0.fieldsV1.f:spec.f:b", REAL_FAILS),
    differs(TWO_VERSIONS, 9, "body.metadata.resourceVersion", REAL_FAILS),
    differs(OTHER_KIND, 2, "body.message", BY_NAME),
    differs(OTHER_KIND, 2, "body.details.causes.0.message", BY_NAME),
    differs(OTHER_KIND, 3, "body.message", BY_NAME),
    differs(OTHER_KIND, 3, "body.details.causes.0.message", BY_NAME),
    differs(LOOPBACK, 1, "status", PROCESSES),
    lacks(LOOPBACK, 1, "body.message", PROCESSES),
    lacks(LOOPBACK, 1, "body.reason", PROCESSES),
    differs(CONTRADICTING, 3, "body.message", OTHER_SIDE),
    differs(CONTRADICTING, 3, "body.details.causes.0.message", OTHER_SIDE),
    differs(BYTES, 4, "body.message", UINT8),
    differs(BYTES, 4, "body.details.**", UINT8),
    lacks("openapi: the index names a document for each group and version", 1, "body.paths.**", NOT_SERVED),
    lacks("openapi: documents of groups with kinds that are not served", 0, "body.**", NOT_SERVED),
    differs(
        "access: a token bound to *",
        0,
        "body.metadata.managedFields.0.fieldsV1.f:spec.f:boundObjectRef.**",
        "nobody keeps a token request: who owns its reference to an object is not seen again",
    ),
    differs("kubectl: what is served", 0, "printed.*", NOT_SERVED),
];

impl KnownDifference {
    /// Whether this entry explains the difference.
    pub(crate) fn explains(&self, difference: &Difference) -> bool {
        let so = self.how == How::Anyhow || difference.embedded == ABSENT;
        let case = match self.case.strip_suffix('*') {
            Some(start) => difference.case.starts_with(start),
            None => difference.case == self.case,
        };
        so && case && [0, difference.step].contains(&self.step) && matches(self.at, &difference.at)
    }
}

/// Whether the embedded server is known to allow what the real one refuses in a step, or the other way round.
pub(crate) fn decides_otherwise(case: &str, step: usize) -> bool {
    KNOWN.iter().any(|known| known.case == case && known.step == step && known.at == "status")
}

fn matches(pattern: &str, at: &str) -> bool {
    let mut parts = at.split('.');
    for wanted in pattern.split('.') {
        match (wanted, parts.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (wanted, found) if found == Some(wanted) => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::{How, KNOWN, KnownDifference, matches};
    use crate::compare::Difference;

    fn difference(case: &str, step: usize, at: &str) -> Difference {
        let (real, embedded) = ("1".to_owned(), "2".to_owned());
        Difference { case: case.to_owned(), step, line: String::new(), at: at.to_owned(), real, embedded }
    }

    #[test]
    fn an_entry_explains_its_place_and_nothing_else() {
        let known = KnownDifference { case: "a: b", step: 2, at: "status", how: How::Anyhow, reason: "" };

        assert!(known.explains(&difference("a: b", 2, "status")));
        assert!(!known.explains(&difference("a: b c", 2, "status")));
        assert!(!known.explains(&difference("a: b", 3, "status")));
        assert!(!known.explains(&difference("a: b", 2, "body.message")));
        let lacking = KnownDifference { how: How::Lacking, ..known };
        assert!(!lacking.explains(&difference("a: b", 2, "status")), "a value that differs is not one that lacks");
    }

    #[test]
    fn no_entry_excuses_a_whole_answer() {
        let whole: Vec<&str> = KNOWN.iter().filter(|known| known.at == "**").map(|known| known.case).collect();

        assert_eq!(whole, Vec::<&str>::new());
    }

    #[test]
    fn stars_stand_for_parts_of_the_place() {
        assert!(matches("body.resources.*", "body.resources.bindings"));
        assert!(!matches("body.resources.*", "body.resources.pods.verbs"));
        assert!(matches("body.**", "body.a.b.c"));
        assert!(matches("status", "status"));
        assert!(!matches("status", "body.status"));
    }
}
