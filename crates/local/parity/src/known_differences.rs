//! The differences that are meant, each with its reason. An entry that no longer differs is an error.

use crate::compare::{ABSENT, Difference};

/// A place where the embedded server answers differently and why that is right, or accepted for now.
#[derive(Debug)]
pub(crate) struct Known {
    /// The start of the case's title, `group: name`.
    pub case: &'static str,
    /// The place in the answer: `*` stands for one part of the path, a last `**` for any number of them.
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

/// Every accepted difference.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        case: "crd: a rule that costs too much refuses the definition",
        at: "**",
        how: How::Anyhow,
        reason: "the cost of rules is not estimated: a schema's author finds out on a cluster, users cannot be hurt by it",
    },
    Known {
        case: "discovery: the resources of",
        at: "body.resources.*",
        how: How::Lacking,
        reason: "kinds that no controller of ours reads are not served",
    },
    Known {
        case: "badinput: deep nesting",
        at: "**",
        how: How::Anyhow,
        reason: "more than 128 levels are refused: no object has them, and they cost stack",
    },
    Known {
        case: "badinput: numbers out of range",
        at: "body.message",
        how: How::Anyhow,
        reason: "a number that no double holds is refused by the parser, before its field is known",
    },
    Known {
        case: "badinput: YAML has more than one word for true",
        at: "**",
        how: How::Anyhow,
        reason: "YAML 1.2 is read: `y` is a text",
    },
    Known {
        case: "badinput: no token",
        at: "**",
        how: How::Anyhow,
        reason: "probes need no token; the compared server runs with anonymous requests off",
    },
    Known {
        case: "validation: duplicate fields by fieldValidation",
        at: "**",
        how: How::Anyhow,
        reason: "of two maps under one key the last is taken; Go merges them into a typed object",
    },
    Known {
        case: "ssa: an apply with a key twice",
        at: "warnings.*",
        how: How::Anyhow,
        reason: "the YAML parser takes the last of two keys and does not tell",
    },
    Known {
        case: "crd: two served versions show the same objects",
        at: "**",
        how: How::Anyhow,
        reason: "the real server fails (500) to apply a field that only the version of the request has",
    },
    Known {
        case: "patch: a merge patch may not change apiVersion or kind",
        at: "**",
        how: How::Anyhow,
        reason: "a patched kind is refused by its name; the real server tries to decode it first",
    },
    Known {
        case: "pods: a cluster's addresses of this machine",
        at: "**",
        how: How::Anyhow,
        reason: "pods that are processes of this machine have loopback addresses, so slices may name them",
    },
    Known {
        case: "gateway: listeners that contradict each other",
        at: "**",
        how: How::Anyhow,
        reason: "of two failing sides of a CEL `||`, the other one is named",
    },
    Known {
        case: "openapi: the index names a document",
        at: "body.paths.**",
        how: How::Lacking,
        reason: "kinds that no controller of ours reads are not served",
    },
    Known {
        case: "openapi: documents of groups with kinds that are not served",
        at: "body.**",
        how: How::Lacking,
        reason: "kinds that no controller of ours reads are not served",
    },
    Known {
        case: "access: a token bound to",
        at: "body.metadata.managedFields.**",
        how: How::Anyhow,
        reason: "nobody keeps a token request: who owns its reference to an object is not seen again",
    },
    Known {
        case: "kubectl: what is served",
        at: "printed.*",
        how: How::Anyhow,
        reason: "kinds that no controller of ours reads are not served",
    },
];

impl Known {
    /// Whether this entry explains the difference.
    pub(crate) fn explains(&self, difference: &Difference) -> bool {
        let so = self.how == How::Anyhow || difference.embedded == ABSENT;
        so && difference.case.starts_with(self.case) && matches(self.at, &difference.at)
    }
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
    use super::matches;

    #[test]
    fn stars_stand_for_parts_of_the_place() {
        assert!(matches("body.resources.*", "body.resources.bindings"));
        assert!(!matches("body.resources.*", "body.resources.pods.verbs"));
        assert!(matches("body.**", "body.a.b.c"));
        assert!(matches("status", "status"));
        assert!(!matches("status", "body.status"));
    }
}
