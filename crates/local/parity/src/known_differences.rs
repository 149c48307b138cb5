//! The differences that are meant, each with its reason. An entry that no longer differs is an error.

use crate::compare::Difference;

/// A place where the embedded server answers differently and why that is right, or accepted for now.
#[derive(Debug)]
pub(crate) struct Known {
    /// The start of the case's title, `group: name`.
    pub case: &'static str,
    /// The place in the answer: `*` stands for one part of the path, a last `**` for any number of them.
    pub at: &'static str,
    pub reason: &'static str,
}

/// Every accepted difference.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        case: "patch: a strategic merge patch of a config map",
        at: "**",
        reason: "strategic merge patch is not there yet",
    },
    Known {
        case: "patch: a merge patch of an absent object",
        at: "**",
        reason: "strategic merge patch is not there yet",
    },
    Known {
        case: "crd: a rule that costs too much refuses the definition",
        at: "**",
        reason: "the cost of rules is not estimated: a schema's author finds out on a cluster, users cannot be hurt by it",
    },
    Known {
        case: "discovery: the resources of",
        at: "body.resources.*",
        reason: "kinds that no controller of ours reads are not served",
    },
    Known {
        case: "badinput: deep nesting",
        at: "**",
        reason: "more than 128 levels are refused: no object has them, and they cost stack",
    },
    Known {
        case: "badinput: numbers out of range",
        at: "body.message",
        reason: "a number that no double holds is refused by the parser, before its field is known",
    },
    Known {
        case: "badinput: YAML has more than one word for true",
        at: "**",
        reason: "YAML 1.2 is read: `y` is a text",
    },
    Known {
        case: "badinput: no token",
        at: "**",
        reason: "probes need no token; the compared server runs with anonymous requests off",
    },
    Known {
        case: "validation: duplicate fields by fieldValidation",
        at: "**",
        reason: "of two maps under one key the last is taken; Go merges them into a typed object",
    },
    Known {
        case: "ssa: an apply with a key twice",
        at: "warnings.*",
        reason: "the YAML parser takes the last of two keys and does not tell",
    },
    Known {
        case: "validation: a service's address cannot change",
        at: "**",
        reason: "services of two address families are not checked",
    },
    Known {
        case: "validation: names of roles are path segments",
        at: "body.metadata.managedFields",
        reason: "empty rules are stored as none, and nobody owns none",
    },
    Known {
        case: "deletion: a cluster-scoped owner of a namespaced object",
        at: "body.metadata.managedFields",
        reason: "empty rules are stored as none, and nobody owns none",
    },
    Known {
        case: "crd: two served versions show the same objects",
        at: "**",
        reason: "the real server fails (500) to apply a field that only the version of the request has",
    },
    Known {
        case: "patch: a merge patch may not change apiVersion or kind",
        at: "**",
        reason: "a patched kind is refused by its name; the real server tries to decode it first",
    },
    Known {
        case: "gateway: listeners that contradict each other",
        at: "**",
        reason: "of two failing sides of a CEL `||`, the other one is named",
    },
    Known {
        case: "kubectl: create without a file",
        at: "**",
        reason: "kubectl's generators send protocol buffers, which are refused with 415",
    },
    Known {
        case: "kubectl: what is served",
        at: "**",
        reason: "kinds that no controller of ours reads are not served",
    },
];

impl Known {
    /// Whether this entry explains the difference.
    pub(crate) fn explains(&self, difference: &Difference) -> bool {
        difference.case.starts_with(self.case) && matches(self.at, &difference.at)
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
