//! Results of a probe, one after the other → what they mean for a container (`prober/worker.go`).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Probe};

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Whether the container has started; the others wait for it.
    Startup,
    /// Whether the container lives.
    Liveness,
    /// Whether it can be given work.
    Readiness,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Startup, Self::Liveness, Self::Readiness];

    /// As events name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    /// The container's probe of this kind.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

/// How one probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// Well.
    Success,
    /// Not well, or too late.
    Failure,
}

/// What the probes so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeState {
    /// Too few to say.
    Unknown,
    /// As often as asked for, one after the other.
    Passed,
    /// As often as allowed, one after the other.
    Failed,
}

/// The probes of one kind of one run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeHistory {
    kind: ProbeKind,
    /// What they say.
    pub state: ProbeState,
    last: Option<ProbeOutcome>,
    in_a_row: i32,
    /// When the last one began.
    probed: Option<Timestamp>,
}

impl ProbeHistory {
    /// Before the first: a container lives until it is found dead, and is not ready until it is found ready.
    pub fn new(kind: ProbeKind) -> Self {
        let state = match kind {
            ProbeKind::Startup => ProbeState::Unknown,
            ProbeKind::Liveness => ProbeState::Passed,
            ProbeKind::Readiness => ProbeState::Failed,
        };
        Self { kind, state, last: None, in_a_row: 0, probed: None }
    }

    /// When the next one is due, in a container that has run since `started`; none where no more are wanted.
    pub fn due(&self, probe: &Probe, started: Timestamp) -> Option<Timestamp> {
        let is_over = match (self.kind, self.state) {
            // What has started stays so; what is to be ended need not be asked again.
            (ProbeKind::Startup, ProbeState::Passed | ProbeState::Failed)
            | (ProbeKind::Liveness, ProbeState::Failed) => true,
            (ProbeKind::Startup, ProbeState::Unknown)
            | (ProbeKind::Liveness, ProbeState::Unknown | ProbeState::Passed)
            | (ProbeKind::Readiness, _) => false,
        };
        if is_over {
            return None;
        }
        let (from, wait) = match self.probed {
            None => (started, probe.initial_delay_seconds.unwrap_or(0)),
            Some(last) => (last, probe.period_seconds.unwrap_or(10).max(1)),
        };
        Some(from.saturating_add(SignedDuration::from_secs(wait.into())).expect("both are spans of seconds"))
    }

    /// Takes the outcome of a probe that began at `began`.
    #[must_use]
    pub fn with(mut self, probe: &Probe, outcome: ProbeOutcome, began: Timestamp) -> Self {
        self.in_a_row = if self.last == Some(outcome) { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = Some(outcome);
        self.probed = Some(began);
        let (enough, state) = match outcome {
            ProbeOutcome::Success => (probe.success_threshold.unwrap_or(1), ProbeState::Passed),
            ProbeOutcome::Failure => (probe.failure_threshold.unwrap_or(3), ProbeState::Failed),
        };
        if self.in_a_row >= enough {
            self.state = state;
        }
        self
    }

    /// Notes that a probe could not be made: its outcome counts for nothing.
    #[must_use]
    pub fn without(self, began: Timestamp) -> Self {
        Self { probed: Some(began), ..self }
    }
}

/// All probes of one run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerProbes {
    histories: [ProbeHistory; 3],
    /// Whether nobody asks: nothing runs that could answer, and the container counts as started and ready.
    is_skipped: bool,
}

impl Default for ContainerProbes {
    fn default() -> Self {
        Self { histories: ProbeKind::ALL.map(ProbeHistory::new), is_skipped: false }
    }
}

impl ContainerProbes {
    /// Those of a container that is merely simulated.
    pub fn skipped() -> Self {
        Self { is_skipped: true, ..Self::default() }
    }

    /// Whether the container is merely simulated.
    pub fn are_skipped(&self) -> bool {
        self.is_skipped
    }

    /// Those of a kind.
    pub fn of(&self, kind: ProbeKind) -> ProbeHistory {
        self.histories[kind as usize]
    }

    /// Puts those of a kind in the place of what was there.
    pub fn put(&mut self, history: ProbeHistory) {
        self.histories[history.kind as usize] = history;
    }

    /// Whether the container has started, as far as probes say.
    pub fn has_started(&self, container: &Container) -> bool {
        self.is_skipped || container.startup_probe.is_none() || self.of(ProbeKind::Startup).state == ProbeState::Passed
    }

    /// Whether it is ready, as far as probes say.
    pub fn is_ready(&self, container: &Container) -> bool {
        let passed = self.of(ProbeKind::Readiness).state == ProbeState::Passed;
        self.has_started(container) && (self.is_skipped || container.readiness_probe.is_none() || passed)
    }

    /// The probe that condemns the container.
    pub fn condemned_by(&self, container: &Container) -> Option<ProbeKind> {
        [ProbeKind::Liveness, ProbeKind::Startup]
            .into_iter()
            .find(|kind| kind.of(container).is_some() && self.of(*kind).state == ProbeState::Failed)
    }

    /// The kinds of probes that are wanted now, each with when it is due: the startup probe alone until it passed.
    pub fn due(&self, container: &Container, started: Timestamp) -> Vec<(ProbeKind, Timestamp)> {
        if self.is_skipped {
            return Vec::new();
        }
        let has_started = self.has_started(container);
        let wanted = ProbeKind::ALL.into_iter().filter(|kind| (*kind == ProbeKind::Startup) != has_started);
        wanted.filter_map(|kind| Some((kind, self.of(kind).due(kind.of(container)?, started)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;
    use ProbeOutcome::{Failure, Success};
    use serde_json::json;

    fn probe(value: serde_json::Value) -> Probe {
        serde_json::from_value(value).unwrap()
    }

    fn after(kind: ProbeKind, probe: &Probe, outcomes: &[ProbeOutcome]) -> ProbeState {
        let history = outcomes.iter().fold(ProbeHistory::new(kind), |history, one| history.with(probe, *one, at(0)));
        history.state
    }

    #[test]
    fn a_probe_fails_after_as_many_failures_in_a_row_as_it_allows() {
        let probe = probe(json!({"failureThreshold": 2}));

        assert_eq!(after(ProbeKind::Liveness, &probe, &[Failure]), ProbeState::Passed);
        assert_eq!(after(ProbeKind::Liveness, &probe, &[Failure, Success, Failure]), ProbeState::Passed);
        assert_eq!(after(ProbeKind::Liveness, &probe, &[Failure, Success, Failure, Failure]), ProbeState::Failed);
    }

    #[test]
    fn a_container_is_ready_after_as_many_successes_in_a_row_as_asked_for() {
        let probe = probe(json!({"successThreshold": 2, "failureThreshold": 1}));

        assert_eq!(after(ProbeKind::Readiness, &probe, &[]), ProbeState::Failed);
        assert_eq!(after(ProbeKind::Readiness, &probe, &[Success, Failure, Success]), ProbeState::Failed);
        assert_eq!(after(ProbeKind::Readiness, &probe, &[Success, Success]), ProbeState::Passed);
        assert_eq!(after(ProbeKind::Readiness, &probe, &[Success, Success, Failure]), ProbeState::Failed);
    }

    #[test]
    fn the_first_probe_waits_for_the_delay_and_the_next_for_the_period() {
        let probe = probe(json!({"initialDelaySeconds": 5, "periodSeconds": 3}));
        let first = ProbeHistory::new(ProbeKind::Readiness);

        assert_eq!(first.due(&probe, at(0)), Some(at(5)));
        assert_eq!(first.with(&probe, Success, at(6)).due(&probe, at(0)), Some(at(9)));
        assert_eq!(first.without(at(7)).due(&probe, at(0)), Some(at(10)));
    }

    fn container() -> Container {
        let value = json!({"name": "c", "startupProbe": {}, "livenessProbe": {}, "readinessProbe": {}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn other_probes_wait_until_the_startup_probe_has_passed() {
        let container = container();
        let mut probes = ContainerProbes::default();
        let kinds = |probes: ContainerProbes| -> Vec<ProbeKind> {
            probes.due(&container, at(0)).into_iter().map(|(kind, _)| kind).collect()
        };
        assert_eq!(kinds(probes), [ProbeKind::Startup]);
        assert!(!probes.has_started(&container));

        let passed = probes.of(ProbeKind::Startup).with(ProbeKind::Startup.of(&container).unwrap(), Success, at(1));
        probes.put(passed);

        assert_eq!(kinds(probes), [ProbeKind::Liveness, ProbeKind::Readiness]);
        assert!(probes.has_started(&container) && !probes.is_ready(&container));
    }

    #[test]
    fn a_condemned_container_is_probed_no_more() {
        let mut container = container();
        container.startup_probe = None;
        container.readiness_probe = None;
        let mut probes = ContainerProbes::default();
        let probe = container.liveness_probe.clone().unwrap();
        let failed =
            (0..3).fold(probes.of(ProbeKind::Liveness), |history, second| history.with(&probe, Failure, at(second)));
        probes.put(failed);

        assert_eq!(probes.condemned_by(&container), Some(ProbeKind::Liveness));
        assert_eq!(probes.due(&container, at(0)), []);
    }
}
