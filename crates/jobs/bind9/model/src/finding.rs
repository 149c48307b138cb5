//! What is wrong with a manifest, or has no effect: a field, and what to write instead.

use std::fmt;

use portolan_core::text;

/// Whether a finding stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing is made or changed until it is corrected; what runs goes on as it is.
    Refused,
    /// The field is taken and has no effect, or less than it seems.
    Ignored,
}

/// One field of a manifest, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Whether it stands in the way.
    pub weight: Weight,
    /// The field, as `spec.global.allowQuery[2]`.
    pub field: String,
    /// What is wrong with it and what to write.
    pub message: String,
}

impl Finding {
    /// A field that cannot be used.
    pub fn refused(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { weight: Weight::Refused, field: field.into(), message: message.into() }
    }

    /// A field that has no effect.
    pub fn ignored(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { weight: Weight::Ignored, field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// How many findings a message names.
const SHOWN: usize = 5;

/// The findings of a weight in a sentence, always the same for the same findings; none where there is none.
pub fn sentence(findings: &[Finding], weight: Weight) -> Option<String> {
    let mut said: Vec<String> = findings.iter().filter(|one| one.weight == weight).map(Finding::to_string).collect();
    said.sort();
    said.dedup();
    let more = said.len().saturating_sub(SHOWN);
    said.truncate(SHOWN);
    if more > 0 {
        said.push(format!("and {}", text::count(more, "more finding")));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_does_not_depend_on_the_order_in_which_things_were_found() {
        let (one, other) = (Finding::refused("spec.b", "second"), Finding::refused("spec.a", "first"));

        let said = sentence(&[one.clone(), other.clone(), one.clone()], Weight::Refused);

        assert_eq!(said.as_deref(), Some("spec.a: first; spec.b: second"));
        assert_eq!(said, sentence(&[other, one], Weight::Refused));
    }

    #[test]
    fn what_has_no_effect_is_told_apart_from_what_is_refused_and_long_lists_are_cut() {
        let many: Vec<Finding> =
            (0..8).map(|number| Finding::ignored(format!("spec.f{number}"), "no effect")).collect();

        assert_eq!(sentence(&many, Weight::Refused), None);
        assert!(sentence(&many, Weight::Ignored).unwrap().ends_with("; and 3 more findings"));
    }
}
