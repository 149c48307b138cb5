//! How far a pass over a zone is → its conditions, in the exact words that users and their programs know.
//!
//! | | Ready | Progressing | Degraded | Available |
//! |---|---|---|---|---|
//! | under way | as before | True | as before | as before |
//! | all have it | True | False | False | True |
//! | fewer than all have it | False | False | True | True |
//! | secondaries do not follow | False | False | True | True |
//! | the writer does not have it | False | False | True | as before |
//! | an older zone has the name | False | False | as before | as before |
//! | no server | False | False | as before | as before |

use portolan_core::{ConditionStatus, NewCondition};

use crate::reasons;

/// Condition: something is being done.
pub const PROGRESSING: &str = "Progressing";
/// Condition: something is not as it should be.
pub const DEGRADED: &str = "Degraded";
/// Condition: at least the server that the zone is written to answers for it.
pub const AVAILABLE: &str = "Available";

/// How far a pass over a zone is, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZonePhase {
    /// 1: before primaries.
    PrimaryReconciling,
    /// 3: after primaries.
    PrimaryReconciled {
        /// How many have it.
        primaries: usize,
    },
    /// 4: before secondaries.
    SecondaryReconciling {
        /// How many primaries have it.
        primaries: usize,
    },
    /// 5: after secondaries.
    SecondaryReconciled {
        /// How many secondaries have it.
        secondaries: usize,
    },
    /// Records are being looked for.
    RecordsDiscovering,
    /// 6a: all have it.
    Succeeded {
        /// How many primaries.
        primaries: usize,
        /// How many secondaries.
        secondaries: usize,
    },
    /// 2: the pass ends here, with an error.
    PrimaryFailed {
        /// Why.
        error: String,
    },
    /// Some of the servers with the role of a primary do not have it.
    Partial {
        /// How many primaries have it.
        primaries: usize,
        /// How many secondaries have it.
        secondaries: usize,
        /// How many are to have it.
        selected: usize,
        /// Why the others do not.
        error: String,
    },
    /// 6b: the pass ends well all the same.
    SecondaryFailed {
        /// How many primaries have it.
        primaries: usize,
        /// Why.
        error: String,
    },
    /// An older zone has the name.
    Duplicate {
        /// Which, in a sentence.
        message: String,
    },
    /// Nobody is to have it.
    NoInstances {
        /// Why.
        message: String,
    },
    /// No server could serve it.
    Invalid {
        /// One of our reasons.
        reason: &'static str,
        /// Why.
        message: String,
    },
}

impl ZonePhase {
    /// The conditions to set; those of other types stay as they are.
    pub fn conditions(&self) -> Vec<NewCondition> {
        match self {
            Self::PrimaryReconciling => {
                progressing(reasons::PRIMARY_RECONCILING, "Configuring zone on primary instances")
            }
            Self::PrimaryReconciled { primaries } => {
                progressing(reasons::PRIMARY_RECONCILED, format!("Configured on {primaries} primary server(s)"))
            }
            Self::SecondaryReconciling { primaries } => progressing(
                reasons::SECONDARY_RECONCILING,
                format!("Configured on {primaries} primary server(s), now configuring secondaries"),
            ),
            Self::SecondaryReconciled { secondaries } => {
                progressing(reasons::SECONDARY_RECONCILED, format!("Configured on {secondaries} secondary server(s)"))
            }
            Self::RecordsDiscovering => progressing(reasons::RECORDS_DISCOVERING, "Looking for the zone's records"),
            Self::Succeeded { primaries, secondaries } => succeeded(*primaries, *secondaries),
            Self::PrimaryFailed { error } => {
                let message = format!("Failed to configure zone on primaries: {error}");
                failed(reasons::PRIMARY_FAILED, reasons::PRIMARY_FAILED, &message)
            }
            Self::Partial { primaries, secondaries, selected, error } => {
                let message = format!(
                    "Configured on {primaries} primary server(s) and {secondaries} secondary server(s); {selected} selected: {error}"
                );
                available(failed(reasons::PARTIAL_RECONCILIATION, reasons::PARTIAL_RECONCILIATION, &message))
            }
            Self::SecondaryFailed { primaries, error } => {
                let message =
                    format!("Configured on {primaries} primary server(s), but secondary configuration failed: {error}");
                available(failed(reasons::SECONDARY_FAILED, reasons::RECONCILE_DEGRADED, &message))
            }
            Self::Duplicate { message } => refused(reasons::DUPLICATE_ZONE, message),
            Self::NoInstances { message } => refused(reasons::NO_INSTANCES, message),
            Self::Invalid { reason, message } => refused(reason, message),
        }
    }

    /// Whether it says how a pass ended.
    pub fn is_end(&self) -> bool {
        match self {
            Self::PrimaryReconciling
            | Self::PrimaryReconciled { .. }
            | Self::SecondaryReconciling { .. }
            | Self::SecondaryReconciled { .. }
            | Self::RecordsDiscovering => false,
            Self::Succeeded { .. }
            | Self::PrimaryFailed { .. }
            | Self::Partial { .. }
            | Self::SecondaryFailed { .. }
            | Self::Duplicate { .. }
            | Self::NoInstances { .. }
            | Self::Invalid { .. } => true,
        }
    }
}

fn progressing(reason: &'static str, message: impl Into<String>) -> Vec<NewCondition> {
    vec![NewCondition::of(PROGRESSING, ConditionStatus::True, reason, message)]
}

fn succeeded(primaries: usize, secondaries: usize) -> Vec<NewCondition> {
    let message = format!("Configured on {primaries} primary server(s) and {secondaries} secondary server(s)");
    let rest = |kind, reason| NewCondition::of(kind, ConditionStatus::False, reason, "");
    available(vec![
        NewCondition::ready(reasons::RECONCILE_SUCCEEDED, message),
        rest(DEGRADED, reasons::RECONCILE_SUCCEEDED),
        rest(PROGRESSING, reasons::RECONCILE_COMPLETE),
    ])
}

fn failed(degraded: &'static str, ready: &'static str, message: &str) -> Vec<NewCondition> {
    vec![
        NewCondition::not_ready(ready, message),
        NewCondition::of(DEGRADED, ConditionStatus::True, degraded, message),
        NewCondition::of(PROGRESSING, ConditionStatus::False, degraded, ""),
    ]
}

fn available(mut conditions: Vec<NewCondition>) -> Vec<NewCondition> {
    conditions.push(NewCondition::of(AVAILABLE, ConditionStatus::True, reasons::PRIMARY_RECONCILED, ""));
    conditions
}

fn refused(reason: &'static str, message: &str) -> Vec<NewCondition> {
    vec![NewCondition::not_ready(reason, message), NewCondition::of(PROGRESSING, ConditionStatus::False, reason, "")]
}

/// Whether the steps of a pass are to be seen: where the generation is new, the zone is not ready, or a step takes long. A settled zone's
/// status is never written on the way.
pub fn shows_steps(observed: Option<i64>, generation: i64, is_ready: bool) -> bool {
    observed != Some(generation) || !is_ready
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(phase: &ZonePhase) -> Vec<String> {
        let one = |one: &NewCondition| format!("{}={}/{} {}", one.r#type, one.status.as_str(), one.reason, one.message);
        phase.conditions().iter().map(|condition| one(condition).trim_end().to_owned()).collect()
    }

    #[test]
    fn scenario_4_the_phases_have_their_exact_reasons_and_messages() {
        let phases = [
            (
                ZonePhase::PrimaryReconciling,
                "Progressing=True/PrimaryReconciling Configuring zone on primary instances",
            ),
            (
                ZonePhase::PrimaryReconciled { primaries: 2 },
                "Progressing=True/PrimaryReconciled Configured on 2 primary server(s)",
            ),
            (
                ZonePhase::SecondaryReconciling { primaries: 2 },
                "Progressing=True/SecondaryReconciling Configured on 2 primary server(s), now configuring secondaries",
            ),
            (
                ZonePhase::SecondaryReconciled { secondaries: 1 },
                "Progressing=True/SecondaryReconciled Configured on 1 secondary server(s)",
            ),
        ];
        for (phase, expected) in phases {
            assert_eq!(said(&phase), [expected]);
            assert!(!phase.is_end());
        }
        assert_eq!(
            said(&ZonePhase::Succeeded { primaries: 2, secondaries: 1 }),
            [
                "Ready=True/ReconcileSucceeded Configured on 2 primary server(s) and 1 secondary server(s)",
                "Degraded=False/ReconcileSucceeded",
                "Progressing=False/ReconcileComplete",
                "Available=True/PrimaryReconciled",
            ]
        );
    }

    #[test]
    fn scenario_5_a_failure_of_primaries_is_degraded_and_not_ready_and_says_nothing_of_availability() {
        let said = said(&ZonePhase::PrimaryFailed { error: "no answer".to_owned() });

        let message = "Failed to configure zone on primaries: no answer";
        assert_eq!(
            said,
            [
                format!("Ready=False/PrimaryFailed {message}"),
                format!("Degraded=True/PrimaryFailed {message}"),
                "Progressing=False/PrimaryFailed".to_owned()
            ]
        );
    }

    #[test]
    fn scenario_6_a_failure_of_secondaries_leaves_the_zone_available() {
        let said = said(&ZonePhase::SecondaryFailed { primaries: 2, error: "x".to_owned() });

        let message = "Configured on 2 primary server(s), but secondary configuration failed: x";
        assert_eq!(said[0], format!("Ready=False/ReconcileDegraded {message}"));
        assert_eq!(said[1], format!("Degraded=True/SecondaryFailed {message}"));
        assert_eq!(said[3], "Available=True/PrimaryReconciled");
    }

    #[test]
    fn scenario_8_a_zone_that_fewer_have_counts_those_that_have_it() {
        let phase =
            ZonePhase::Partial { primaries: 2, secondaries: 0, selected: 3, error: "c is not reached".to_owned() };

        assert!(said(&phase)[0].starts_with("Ready=False/PartialReconciliation Configured on 2 primary server(s)"));
    }

    #[test]
    fn a_zone_that_came_second_or_has_no_server_is_not_ready_and_nothing_else_is_touched() {
        for (phase, reason) in [
            (ZonePhase::Duplicate { message: "m".to_owned() }, "DuplicateZone"),
            (ZonePhase::NoInstances { message: "m".to_owned() }, "NoInstances"),
            (ZonePhase::Invalid { reason: reasons::GLUE_MISSING, message: "m".to_owned() }, "GlueMissing"),
        ] {
            assert_eq!(said(&phase), [format!("Ready=False/{reason} m"), format!("Progressing=False/{reason}")]);
        }
    }

    #[test]
    fn scenario_1_a_settled_zone_shows_no_steps() {
        assert!(shows_steps(None, 1, false) && shows_steps(Some(1), 2, true) && shows_steps(Some(2), 2, false));
        assert!(!shows_steps(Some(2), 2, true));
    }
}
