//! One pod: what is known of it, what is decided, what is done, and what is reported.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::NodeContext;
use super::commands::{SideCommands, SideProcesses};
use super::events::EventSort;
use super::starting::ContainerFiles;
use crate::machine::processes::{ProcessEnd, ProcessHandle};
use crate::pod::containers::{containers, full_name, name, namespace, uid};
use crate::pod::lifecycle::{PodDecision, PodStep, decide, hook, pre_stop};
use crate::pod::probes::{ProbeKind, ProbeOutcome};
use crate::pod::record::{
    EndingCause, HookState, PodEnding, PodRecord, StopCause, Termination, VolumesState, exit_reason,
};
use crate::pod::references::PodSources;
use crate::pod::resumed::resumed_record;
use crate::pod::status::{StatusFacts, pod_status};

/// When a deletion that failed is tried again.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// What a worker is told.
pub(super) enum PodUpdate {
    /// The pod as it is now.
    Changed(Box<Pod>),
    /// An object of its namespace changed that it may name.
    Source(String),
    /// It is no longer there.
    Gone,
    /// The runner stops: the pod's processes end, and the pod stays.
    RunnerStops,
}

/// What became of something that the worker began.
pub(super) enum PodFact {
    Ended {
        container: String,
        id: String,
        started: Timestamp,
        end: ProcessEnd,
    },
    PostStart {
        container: String,
        id: String,
        outcome: Result<(), String>,
    },
    PreStop {
        container: String,
        id: String,
        outcome: Result<(), String>,
    },
    Probed {
        container: String,
        id: String,
        kind: ProbeKind,
        began: Timestamp,
        outcome: Result<ProbeOutcome, String>,
    },
    /// Somebody wants to run something beside a container.
    Asked {
        container: String,
        answer: oneshot::Sender<Option<SideCommands>>,
    },
}

/// The worker of a pod.
pub(super) struct PodWorker {
    pub(super) context: Arc<NodeContext>,
    pub(super) pod: Pod,
    pub(super) record: PodRecord,
    updates: UnboundedReceiver<PodUpdate>,
    facts: UnboundedReceiver<PodFact>,
    pub(super) teller: UnboundedSender<PodFact>,
    /// The processes that run, by container.
    pub(super) processes: HashMap<String, ProcessHandle>,
    /// Processes of hooks and probes.
    pub(super) beside: SideProcesses,
    /// What the pod named when its volumes were made.
    pub(super) sources: PodSources,
    /// What containers were started with, for what runs beside them.
    pub(super) files: BTreeMap<String, ContainerFiles>,
    pub(super) mount_failures: u32,
    /// When tokens in the pod's volumes are to be replaced.
    pub(super) tokens_due: Option<Timestamp>,
    /// The uid that the pod has of its own.
    pub(super) user: Option<u32>,
    is_stopping: bool,
}

impl PodWorker {
    pub(super) fn new(context: Arc<NodeContext>, pod: Pod, updates: UnboundedReceiver<PodUpdate>) -> Self {
        let (teller, facts) = unbounded_channel();
        let record = resumed_record(&pod, context.now());
        let user = context.take_user();
        context.doors.open(uid(&pod), teller.clone());
        Self {
            context,
            pod,
            record,
            updates,
            facts,
            teller,
            processes: HashMap::new(),
            beside: SideProcesses::default(),
            sources: PodSources::default(),
            files: BTreeMap::new(),
            mount_failures: 0,
            tokens_due: None,
            user,
            is_stopping: false,
        }
    }

    /// Until the pod is gone, or the runner stops.
    pub(super) async fn run(mut self) {
        loop {
            let mut look_again = self.act().await;
            if self.is_stopping && self.record.is_over {
                break;
            }
            self.report().await;
            if self.record.is_over && self.pod.metadata.deletion_timestamp.is_some() {
                if self.let_go().await {
                    break;
                }
                look_again = self.context.now().checked_add(TRY_AGAIN).ok();
            }
            if !self.wait(look_again).await {
                break;
            }
        }
        self.context.doors.close(uid(&self.pod));
        if let Some(user) = self.user {
            self.context.give_back_user(user);
        }
    }

    /// Decides and acts until there is nothing to do; gives back when to look again.
    async fn act(&mut self) -> Option<Timestamp> {
        loop {
            let now = self.context.now();
            let PodDecision { steps, look_again } = decide(&self.pod, &self.record, now, self.context.settings.limits);
            if steps.is_empty() {
                return look_again;
            }
            for step in steps {
                self.carry_out(step).await;
            }
        }
    }

    /// Waits for news, at most until it is time to look again. False where the pod is gone.
    async fn wait(&mut self, look_again: Option<Timestamp>) -> bool {
        let now = self.context.now();
        let next = look_again.into_iter().chain(self.tokens_due).min();
        let pause = next.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        let time = tokio::time::sleep(pause.unwrap_or_default());
        tokio::select! {
            update = self.updates.recv() => match update {
                Some(PodUpdate::Changed(pod)) => self.changed(*pod),
                Some(PodUpdate::Source(name)) => self.source_changed(&name).await,
                Some(PodUpdate::RunnerStops) => self.stop(),
                Some(PodUpdate::Gone) | None => {
                    self.end_all().await;
                    return false;
                }
            },
            Some(fact) = self.facts.recv() => self.learn(fact).await,
            () = time, if pause.is_some() => {
                if self.tokens_due.is_some_and(|due| due <= self.context.now()) {
                    self.refresh_files().await;
                }
            }
        }
        true
    }

    fn changed(&mut self, pod: Pod) {
        self.pod = pod;
        let grace = crate::pod::containers::grace_seconds(&self.pod);
        if let (Some(ending), Some(_)) = (&mut self.record.ending, &self.pod.metadata.deletion_timestamp) {
            ending.grace = ending.grace.min(grace);
        }
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        if self.record.ending.is_none() {
            let grace = crate::pod::containers::grace_seconds(&self.pod).min(5);
            self.record.ending = Some(PodEnding { cause: EndingCause::Completed, since: self.context.now(), grace });
        }
    }

    /// The pod is gone without its end: nothing of it may run on.
    async fn end_all(&mut self) {
        self.beside.end_all().await;
        for (_, process) in self.processes.drain() {
            // What could not be ended is found by the next runner.
            let _ = tokio::task::spawn_blocking(move || process.kill()).await;
        }
        self.put_away();
    }

    fn put_away(&self) {
        self.context.outputs.forget(uid(&self.pod));
        if let Err(error) = self.context.folders.remove_pod(uid(&self.pod)) {
            tracing::warn!(pod = name(&self.pod), %error, "Could not remove the files of a pod; remove them by hand");
        }
    }

    /// The object goes now that nothing of it runs. False where the API server could not do it.
    async fn let_go(&self) -> bool {
        self.put_away();
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), namespace(&self.pod));
        let preconditions = Preconditions { uid: self.pod.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }.grace_period(0);
        match pods.delete(name(&self.pod), &params).await {
            // Somebody else was faster; another pod may have its name.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => true,
            Err(error) => {
                tracing::debug!(pod = name(&self.pod), %error, "Could not delete a pod that has ended");
                false
            }
            Ok(_) => true,
        }
    }

    /// Writes the status where it differs from what the pod has.
    async fn report(&mut self) {
        let facts = StatusFacts {
            host_address: "127.0.0.1".to_owned(),
            // Pods share this machine's loopback address.
            pod_address: (self.record.volumes == VolumesState::Ready).then(|| "127.0.0.1".to_owned()),
            now: self.context.now(),
            limits: self.context.settings.limits,
        };
        let (before, after) = (value(&self.pod.status), value(&pod_status(&self.pod, &self.record, &facts)));
        if before == after || self.is_stopping {
            return;
        }
        let version = &self.pod.metadata.resource_version;
        let patch = json!({"metadata": {"uid": uid(&self.pod), "resourceVersion": version}, "status": with_nulls(&before, after)});
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), namespace(&self.pod));
        match pods.patch_status(name(&self.pod), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(pod) => self.changed(pod),
            // Somebody else wrote meanwhile: the next version comes by the watch, and is reported on.
            Err(error) => tracing::debug!(pod = name(&self.pod), %error, "Could not report a pod's status"),
        }
    }

    pub(super) fn container(&self, container: &str) -> Option<Container> {
        containers(&self.pod).into_iter().find(|one| one.spec.name == container).map(|one| one.spec.clone())
    }

    pub(super) async fn tell(&self, sort: EventSort, reason: &str, message: String, container: Option<&str>) {
        self.context.recorder.tell(&self.pod, sort, reason, message, container).await;
    }

    async fn carry_out(&mut self, step: PodStep) {
        let now = self.context.now();
        match step {
            PodStep::Mount => self.mount().await,
            PodStep::Start { container } => self.start(&container).await,
            PodStep::PostStart { container } => self.post_start(&container),
            PodStep::Probe { container, kind } => self.probe(&container, kind),
            PodStep::Stop { container, cause, grace } => self.begin_stop(&container, cause, grace).await,
            PodStep::PreStop { container } => self.pre_stop(&container),
            PodStep::Tell { container } => self.signal(&container, now),
            PodStep::Kill { container } => self.kill(&container),
            PodStep::End { cause, grace } => self.record.ending = Some(PodEnding { cause, since: now, grace }),
            PodStep::Finish => self.record.is_over = true,
        }
    }

    async fn begin_stop(&mut self, container: &str, cause: StopCause, grace: i64) {
        let message = match cause {
            StopCause::PodEnds => format!("Stopping container {container}"),
            StopCause::Liveness => format!("Container {container} failed liveness probe, will be restarted"),
            StopCause::Startup => format!("Container {container} failed startup probe, will be restarted"),
            StopCause::PostStart => "FailedPostStartHook".to_owned(),
        };
        self.tell(EventSort::Normal, "Killing", message, Some(container)).await;
        let has_hook = self.container(container).map_or(crate::pod::record::HasHook::No, |spec| hook(pre_stop(&spec)));
        let now = self.context.now();
        self.record.container_mut(container).stops(cause, grace, now, has_hook);
    }

    fn signal(&mut self, container: &str, now: Timestamp) {
        if let Some(stop) = self.record.container_mut(container).running_mut().and_then(|running| running.stop.as_mut())
        {
            stop.told = Some(now);
        }
        if let Some(Err(error)) = self.processes.get(container).map(|process| process.tell(Signal::TERM)) {
            tracing::debug!(container, %error, "Could not signal a container");
        }
    }

    fn kill(&mut self, container: &str) {
        if let Some(stop) = self.record.container_mut(container).running_mut().and_then(|running| running.stop.as_mut())
        {
            stop.is_killed = true;
        }
        if let Some(process) = self.processes.get(container).cloned() {
            tokio::task::spawn_blocking(move || process.kill());
        }
    }

    async fn learn(&mut self, fact: PodFact) {
        match fact {
            PodFact::Ended { container, id, started, end } => self.ended(&container, id, started, end).await,
            PodFact::PostStart { container, id, outcome } => {
                let failed = self.hook_failed("PostStart", &container, &outcome).await;
                if let Some(running) = self.run_of(&container, &id) {
                    running.post_start = failed;
                }
            }
            PodFact::PreStop { container, id, outcome } => {
                let failed = self.hook_failed("PreStop", &container, &outcome).await;
                if let Some(stop) = self.run_of(&container, &id).and_then(|running| running.stop.as_mut()) {
                    stop.pre_stop = failed;
                }
            }
            PodFact::Asked { container, answer } => {
                // Who asked may have gone.
                let _ = answer.send(self.side_commands(&container));
            }
            PodFact::Probed { container, id, kind, began, outcome } => {
                self.probed(&container, &id, kind, began, outcome).await;
            }
        }
    }

    async fn hook_failed(&self, sort: &str, container: &str, outcome: &Result<(), String>) -> HookState {
        let Err(why) = outcome else { return HookState::Done };
        self.tell(
            EventSort::Warning,
            &format!("Failed{sort}Hook"),
            format!("{sort}Hook failed: {why}"),
            Some(container),
        )
        .await;
        HookState::Failed
    }

    /// The run that a fact is about, unless another one has taken its place.
    fn run_of(&mut self, container: &str, id: &str) -> Option<&mut crate::pod::record::RunningContainer> {
        self.record.container_mut(container).running_mut().filter(|running| running.id == id)
    }

    async fn ended(&mut self, container: &str, id: String, started: Timestamp, end: ProcessEnd) {
        self.processes.remove(container);
        self.beside.end(&id).await;
        let reason = if end.not_started.is_some() { "StartError" } else { exit_reason(end.exit_code) };
        if let Some(why) = &end.not_started {
            self.tell(EventSort::Warning, "Failed", format!("Error: {why}"), Some(container)).await;
        }
        let ended = self.context.now();
        let termination = Termination {
            id,
            exit_code: end.exit_code,
            reason: reason.to_owned(),
            message: end.not_started,
            started: Some(started),
            ended,
        };
        let record = self.record.container_mut(container);
        let waits = record.backoff.wait_after(ended, self.context.settings.limits);
        record.ended(termination);
        if waits.is_some_and(|wait| wait > SignedDuration::ZERO) && self.record.ending.is_none() {
            let message = format!("Back-off restarting failed container {container} in pod {}", full_name(&self.pod));
            self.tell(EventSort::Warning, "BackOff", message, Some(container)).await;
        }
    }

    async fn probed(
        &mut self,
        container: &str,
        id: &str,
        kind: ProbeKind,
        began: Timestamp,
        outcome: Result<ProbeOutcome, String>,
    ) {
        let Some(spec) = self.container(container) else { return };
        if let Err(why) = &outcome {
            let message = format!("{} probe failed: {why}", kind.title());
            self.tell(EventSort::Warning, "Unhealthy", message, Some(container)).await;
        }
        let outcome = outcome.unwrap_or(ProbeOutcome::Failure);
        if let (Some(probe), Some(running)) = (kind.of(&spec), self.run_of(container, id)) {
            let history = running.probes.of(kind).with(probe, outcome, began);
            running.probes.put(history);
        }
    }
}

fn value<T: serde::Serialize>(of: &T) -> Value {
    serde_json::to_value(of).expect("objects of the API are JSON")
}

/// What a merge patch must say to make the one of the other: fields that are no longer there are null.
fn with_nulls(before: &Value, mut after: Value) -> Value {
    if let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) {
        for name in before.keys() {
            after.entry(name.clone()).or_insert(Value::Null);
        }
    }
    after
}
