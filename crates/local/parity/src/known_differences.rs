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
