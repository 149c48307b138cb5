use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::pod::probes::ProbeOutcome;
use crate::pod::record::{StartTrouble, Termination, exit_reason};
use crate::pod::testing::{at, pod};

/// A pod on a clock of its own. Steps are noted as they are decided; processes and hooks do what the test says.
struct Scene {
    pod: Pod,
    record: PodRecord,
    second: i64,
    told: String,
}

impl Scene {
    fn of(spec: Value) -> Self {
        let record = PodRecord { since: Some(at(0)), ..PodRecord::default() };
        Self { pod: pod(spec), record, second: 0, told: String::new() }
    }

    /// Decides and notes until there is nothing to do; gives back what was done.
    fn settle(&mut self) -> String {
        self.told.clear();
        while self.round() {}
        std::mem::take(&mut self.told).trim().to_owned()
    }

    fn round(&mut self) -> bool {
        let decision = decide(&self.pod, &self.record, at(self.second), BackoffLimits::default());
        for step in &decision.steps {
            self.note(step);
        }
        !decision.steps.is_empty()
    }

    fn note(&mut self, step: &PodStep) {
        let now = at(self.second);
        let words = match step {
            PodStep::Mount => {
                self.record.volumes = VolumesState::Ready;
                "mount".to_owned()
            }
            PodStep::Start { container } => {
                let has_hook = hook(post_start(&self.spec(container)));
                let record = self.record.container_mut(container);
                record.starts(now, BackoffLimits::default());
                record.started(format!("{container}{}", record.restarts), now, has_hook);
                format!("start {container}")
            }
            PodStep::PostStart { container } => {
                self.running(container).post_start = HookState::Running;
                format!("post-start {container}")
            }
            PodStep::Probe { container, kind } => {
                let history = self.running(container).probes.of(*kind).without(now);
                self.running(container).probes.put(history);
                format!("probe {container} {}", kind.title())
            }
            PodStep::Stop { container, cause, grace } => {
                let has_hook = hook(pre_stop(&self.spec(container)));
                self.record.container_mut(container).stops(*cause, *grace, now, has_hook);
                format!("stop {container} {cause:?} {grace}")
            }
            PodStep::PreStop { container } => {
                self.stop_of(container).pre_stop = HookState::Running;
                format!("pre-stop {container}")
            }
            PodStep::Tell { container } => {
                self.stop_of(container).told = Some(now);
                format!("tell {container}")
            }
            PodStep::Kill { container } => {
                self.stop_of(container).is_killed = true;
                format!("kill {container}")
            }
            PodStep::End { cause, grace } => {
                self.record.ending =
                    Some(crate::pod::record::PodEnding { cause: cause.clone(), since: now, grace: *grace });
                format!("end {cause:?}")
            }
            PodStep::Finish => {
                self.record.is_over = true;
                "finish".to_owned()
            }
        };
        write!(self.told, "{words}; ").expect("texts take what they are given");
    }

    fn spec(&self, container: &str) -> Container {
        let all = containers(&self.pod);
        all.iter().find(|one| one.spec.name == container).expect("the pod has it").spec.clone()
    }

    fn running(&mut self, container: &str) -> &mut RunningContainer {
        self.record.container_mut(container).running_mut().expect("it runs")
    }

    fn stop_of(&mut self, container: &str) -> &mut crate::pod::record::ContainerStop {
        self.running(container).stop.as_mut().expect("it is to end")
    }

    fn exits(&mut self, container: &str, exit_code: i32) {
        let ended = at(self.second);
        let reason = exit_reason(exit_code).to_owned();
        let end = Termination { id: container.to_owned(), exit_code, reason, message: None, started: None, ended };
        self.record.container_mut(container).ended(end);
    }

    /// The container exits, and what follows is done.
    fn after_exit(&mut self, container: &str, exit_code: i32) -> String {
        self.exits(container, exit_code);
        self.settle()
    }

    fn pass(&mut self, seconds: i64) -> String {
        self.second += seconds;
        self.settle()
    }

    /// In how many seconds it is looked again.
    fn looks_in(&self) -> Option<i64> {
        let decision = decide(&self.pod, &self.record, at(self.second), BackoffLimits::default());
        decision.look_again.map(|time| time.duration_since(at(self.second)).as_secs())
    }

    fn probed(&mut self, container: &str, kind: ProbeKind, outcome: ProbeOutcome) -> String {
        let spec = self.spec(container);
        let now = at(self.second);
        let probe = kind.of(&spec).expect("it has the probe");
        let history = self.running(container).probes.of(kind).with(probe, outcome, now);
        self.running(container).probes.put(history);
        self.settle()
    }

    fn is_deleted(&mut self, grace: i64) -> String {
        self.pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(self.second)));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
        self.settle()
    }
}

#[test]
fn volumes_come_first_and_main_containers_start_together() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}, {"name": "b"}]}));

    assert_eq!(scene.settle(), "mount; start a; start b;");
    assert_eq!(scene.looks_in(), None);
}

#[test]
fn volumes_that_could_not_be_made_are_tried_again_when_it_is_time() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}]}));
    scene.record.volumes = VolumesState::Failed { again: at(5) };

    assert_eq!((scene.settle().as_str(), scene.looks_in()), ("", Some(5)));
    assert_eq!(scene.pass(5), "mount; start a;");
}

#[test]
fn init_containers_run_one_after_the_other_before_the_main_ones() {
    let mut scene = Scene::of(json!({"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "a"}]}));

    assert_eq!(scene.settle(), "mount; start i;");
    assert_eq!(scene.after_exit("i", 0), "start j;");
    assert_eq!(scene.after_exit("j", 0), "start a;");
}

#[test]
fn an_init_container_that_fails_is_tried_again_with_backoff() {
    let mut scene = Scene::of(json!({"initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}));
    scene.settle();

    assert_eq!(scene.after_exit("i", 1), "start i;");
    assert_eq!(scene.after_exit("i", 1), "");
    assert_eq!(scene.looks_in(), Some(10));
    assert_eq!(scene.pass(10), "start i;");
    assert_eq!(scene.after_exit("i", 0), "start a;");
}

#[test]
fn an_init_container_that_fails_ends_a_pod_that_never_restarts() {
    let mut scene =
        Scene::of(json!({"restartPolicy": "Never", "initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}));
    scene.settle();

    assert_eq!(scene.after_exit("i", 3), "end Completed; finish;");
    assert_eq!(scene.settle(), "");
}

#[test]
fn the_next_one_waits_until_a_sidecar_has_started() {
    let mut scene = Scene::of(json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always", "startupProbe": {"periodSeconds": 1}}, {"name": "i"}],
        "containers": [{"name": "a"}],
    }));

    assert_eq!(scene.settle(), "mount; start s; probe s Startup;");
    assert_eq!(scene.probed("s", ProbeKind::Startup, ProbeOutcome::Success), "start i;");
    assert_eq!(scene.after_exit("i", 0), "start a;");
}

#[test]
fn a_sidecar_is_started_again_beside_the_main_containers() {
    let mut scene = Scene::of(json!({
        "restartPolicy": "Never", "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}],
    }));
    assert_eq!(scene.settle(), "mount; start s; start a;");

    assert_eq!(scene.after_exit("s", 0), "start s;");
}

#[test]
fn when_the_main_containers_are_done_sidecars_end_in_the_opposite_order() {
    let mut scene = Scene::of(json!({
        "restartPolicy": "OnFailure",
        "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "t", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}],
    }));
    scene.settle();

    assert_eq!(scene.after_exit("a", 0), "end Completed; stop s PodEnds 30; stop t PodEnds 30; tell t;");
    assert_eq!(scene.after_exit("t", 143), "tell s;");
    assert_eq!(scene.after_exit("s", 143), "finish;");
}

#[test]
fn containers_are_started_again_as_the_restart_policy_says() {
    let restarts = |policy: &str, exit_code: i32| {
        let mut scene = Scene::of(json!({"restartPolicy": policy, "containers": [{"name": "a"}, {"name": "b"}]}));
        scene.settle();
        scene.after_exit("a", exit_code)
    };

    assert_eq!(restarts("Always", 0), "start a;");
    assert_eq!(restarts("OnFailure", 1), "start a;");
    assert_eq!(restarts("OnFailure", 0), "");
    assert_eq!(restarts("Never", 1), "");
}

#[test]
fn a_container_that_keeps_ending_waits_longer_each_time() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}]}));
    scene.settle();
    let mut waits = Vec::new();
    for _ in 0..5 {
        scene.exits("a", 1);
        scene.settle();
        let wait = scene.looks_in().unwrap_or(0);
        waits.push(wait);
        scene.pass(wait);
    }

    assert_eq!(waits, [0, 10, 20, 40, 80]);
    assert_eq!(scene.record.containers["a"].restarts, 5);
}

#[test]
fn a_container_that_cannot_be_configured_is_tried_again_and_its_restarts_do_not_count() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}]}));
    scene.settle();
    scene.exits("a", 1);
    let record = scene.record.container_mut("a");
    record.starts(at(0), BackoffLimits::default());
    record.not_started(StartTrouble {
        reason: "CreateContainerConfigError".into(),
        message: String::new(),
        again: Some(at(30)),
    });

    assert_eq!(scene.record.containers["a"].restarts, 0);
    assert_eq!(scene.pass(29), "");
    assert_eq!(scene.pass(1), "start a;");
}

#[test]
fn a_container_without_a_program_is_not_tried_again() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}]}));
    let trouble = StartTrouble { reason: "NoLocalProgram".into(), message: String::new(), again: None };
    scene.record.container_mut("a").not_started(trouble);

    assert_eq!(scene.settle(), "mount;");
    assert_eq!(scene.looks_in(), None);
}

#[test]
fn the_next_container_waits_for_the_post_start_hook_of_the_one_before() {
    let hook = json!({"postStart": {"exec": {"command": ["true"]}}});
    let mut scene = Scene::of(json!({"containers": [{"name": "a", "lifecycle": hook}, {"name": "b"}]}));

    assert_eq!(scene.settle(), "mount; start a; post-start a;");
    scene.running("a").post_start = HookState::Done;

    assert_eq!(scene.settle(), "start b;");
}

#[test]
fn a_container_whose_post_start_hook_fails_is_ended_and_started_again() {
    let hook = json!({"postStart": {"exec": {"command": ["false"]}}});
    let mut scene = Scene::of(json!({"containers": [{"name": "a", "lifecycle": hook}]}));
    scene.settle();
    scene.running("a").post_start = HookState::Failed;

    assert_eq!(scene.settle(), "stop a PostStart 30; tell a;");
    assert_eq!(scene.after_exit("a", 143), "start a; post-start a;");
}

#[test]
fn a_failed_liveness_probe_ends_the_container_within_the_probes_own_grace() {
    let probe = json!({"failureThreshold": 1, "periodSeconds": 5, "terminationGracePeriodSeconds": 7});
    let mut scene = Scene::of(json!({"containers": [{"name": "a", "livenessProbe": probe}]}));
    assert_eq!(scene.settle(), "mount; start a; probe a Liveness;");
    assert_eq!(scene.looks_in(), Some(5));

    assert_eq!(scene.probed("a", ProbeKind::Liveness, ProbeOutcome::Failure), "stop a Liveness 7; tell a;");
    assert_eq!(scene.looks_in(), Some(7));
    assert_eq!(scene.pass(7), "kill a;");
    assert_eq!(scene.after_exit("a", 137), "start a; probe a Liveness;");
}

#[test]
fn a_deleted_pod_is_told_then_killed_when_its_grace_is_over() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    scene.settle();

    assert_eq!(scene.is_deleted(30), "end Deleted; stop a PodEnds 30; stop b PodEnds 30; tell a; tell b;");
    assert_eq!(scene.after_exit("b", 0), "");
    assert_eq!(scene.looks_in(), Some(30));
    assert_eq!(scene.pass(30), "kill a;");
    assert_eq!(scene.after_exit("a", 137), "finish;");
}

#[test]
fn a_pre_stop_hook_runs_before_the_signal_and_uses_up_the_grace() {
    let hook = json!({"preStop": {"exec": {"command": ["true"]}}});
    let mut scene = Scene::of(json!({"containers": [{"name": "a", "lifecycle": hook}]}));
    scene.settle();

    assert_eq!(scene.is_deleted(10), "end Deleted; stop a PodEnds 10; pre-stop a;");
    assert_eq!(scene.pass(9), "");
    // The hook is not waited for any longer, and the container has two seconds left.
    assert_eq!(scene.pass(1), "tell a;");
    assert_eq!(scene.looks_in(), Some(2));
    assert_eq!(scene.pass(2), "kill a;");
}

#[test]
fn a_pod_that_is_deleted_at_once_gets_no_hook_and_two_seconds() {
    let hook = json!({"preStop": {"exec": {"command": ["true"]}}});
    let mut scene = Scene::of(json!({"containers": [{"name": "a", "lifecycle": hook}]}));
    scene.settle();

    assert_eq!(scene.is_deleted(0), "end Deleted; stop a PodEnds 0; tell a;");
    assert_eq!(scene.pass(2), "kill a;");
}

#[test]
fn a_second_deletion_with_less_time_shortens_the_grace() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}]}));
    scene.settle();
    scene.is_deleted(60);
    scene.pass(5);

    scene.record.ending.as_mut().expect("it ends").grace = 1;

    assert_eq!(scene.settle(), "kill a;");
}

#[test]
fn a_pod_that_is_deleted_before_anything_ran_is_finished_at_once() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}]}));

    assert_eq!(scene.is_deleted(30), "end Deleted; finish;");
}

#[test]
fn nothing_is_started_again_in_a_pod_that_ends() {
    let mut scene = Scene::of(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    scene.settle();
    scene.exits("a", 1);
    scene.settle();
    scene.exits("a", 1);

    assert_eq!(scene.is_deleted(30), "end Deleted; stop b PodEnds 30; tell b;");
    assert_eq!(scene.pass(20), "");
}

#[test]
fn a_pod_that_is_active_for_too_long_is_ended() {
    let mut scene = Scene::of(json!({"activeDeadlineSeconds": 20, "containers": [{"name": "a"}]}));
    scene.settle();

    assert_eq!(scene.looks_in(), Some(20));
    assert_eq!(scene.pass(20), "end DeadlineExceeded; stop a PodEnds 30; tell a;");
    assert_eq!(scene.after_exit("a", 143), "finish;");
}

#[test]
fn a_pod_whose_containers_are_all_done_is_finished() {
    let mut scene = Scene::of(json!({"restartPolicy": "Never", "containers": [{"name": "a"}, {"name": "b"}]}));
    scene.settle();

    assert_eq!(scene.after_exit("a", 0), "");
    assert_eq!(scene.after_exit("b", 1), "end Completed; finish;");
}
