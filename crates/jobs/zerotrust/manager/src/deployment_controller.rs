//! The controller of the own Deployment: shapes it by the configuration in force, and its workers by it.
//!
//! It passes over all Deployments of the operator's namespace and does nothing about those that are not its own.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use portolan_core::{Class, Plan as Changes, Problem};
use portolan_engine::{Outcome, Profile, Reconcile, Report, in_time, key_of, kubernetes_problem, outcome};
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;
use serde_json::Value;

use crate::config_states::ConfigVersion;
use crate::deployment_change::{DeploymentChange, change_for, container_of};
use crate::own_deployment::is_own;
use crate::previous_values::ANNOTATION;
use crate::shared::ManagerContext;
use crate::worker::{WorkerKind, WorkerOrigin, WorkerStep, keep, rest};
use crate::write::WriteRefusal;

/// How often a write is tried against others who write the same Deployments: the cluster's own controllers are quick.
const MOST_ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Reconciles the own Deployment.
pub(crate) struct DeploymentController {
    pub(crate) shared: Arc<ManagerContext>,
}

/// What is there.
pub(crate) struct DeploymentInputs {
    /// The own Deployment with its owners.
    own: Value,
    config: Option<Arc<Config>>,
    /// The workers' Deployments.
    workers: [Option<Value>; 2],
    pod: RunningPod,
    /// When it was looked.
    now: Timestamp,
}

/// What the pod of this process runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RunningPod {
    /// The image that its spec names; none where there is no such pod any more.
    image: Option<String>,
    /// The digest of the image that runs.
    digest: Option<String>,
}

/// What is to be done.
pub(crate) struct DeploymentPlan {
    own: DeploymentChange,
    /// Why the configuration cannot be applied as it is.
    refused: Option<Problem>,
    workers: Vec<WorkerStep>,
}

impl Reconcile for DeploymentController {
    type Object = Deployment;
    /// None where the Deployment is not the own one, or is on its way out.
    type Inputs = Option<Box<DeploymentInputs>>;
    type Plan = Option<Box<DeploymentPlan>>;
    /// Why the configuration could not be applied, if it could not. Its own controller tells.
    type Applied = Option<Problem>;
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile { owns_status: false, ..Profile::of("Deployment") }
    }

    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        annotation == ANNOTATION || annotation.starts_with("portolan.dev/")
    }

    fn project(&self, _: &Deployment) {}

    async fn gather(&self, deployment: &Deployment) -> Result<Self::Inputs, Problem> {
        match self.shared.own() {
            Some(own) if is_own(&own, deployment) => self.look(&own.deployment.name).await,
            Some(_) | None => Ok(None),
        }
    }

    fn plan(&self, _: &Deployment, inputs: &Self::Inputs) -> Result<Self::Plan, Problem> {
        Ok(inputs.as_ref().map(|inputs| Box::new(self.decide(inputs))))
    }

    fn changes(&self, plan: &Self::Plan) -> Changes {
        plan.as_deref().map(DeploymentPlan::changes).unwrap_or_default()
    }

    /// Also where nothing changes: what became of the configuration is worth telling.
    fn has_work(&self, plan: &Self::Plan) -> bool {
        plan.is_some()
    }

    async fn apply(
        &self,
        deployment: &Deployment,
        inputs: &Self::Inputs,
        plan: &Self::Plan,
    ) -> Result<Option<Problem>, Problem> {
        let (Some(inputs), Some(plan)) = (inputs, plan) else { return Ok(None) };
        let mut last = self.carry_out(inputs, plan).await;
        for attempt in 0..MOST_ATTEMPTS {
            let Err(WriteRefusal::Stale) = last else { break };
            tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(attempt)).await;
            let Some(inputs) = self.gather(deployment).await? else { return Ok(None) };
            let plan = self.shared.context.pure(|| self.decide(&inputs));
            last = self.carry_out(&inputs, &plan).await;
        }
        match last {
            Ok(refused) => Ok(refused),
            Err(WriteRefusal::Problem(problem)) => Err(problem),
            Err(WriteRefusal::Stale) => Err(Problem::transient(
                portolan_core::reasons::API_ERROR,
                format!("Deployment {} is written by others without a pause", key_of(&deployment.metadata)),
            )),
        }
    }

    fn report(&self, deployment: &Deployment, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Failed(failure) => {
                let mut report = Report::failed(failure.problem);
                let goes = deployment.metadata.deletion_timestamp.is_some();
                report.events.retain(|_| failure.is_news() && !goes);
                report
            }
            Outcome::Applied { applied, .. } => {
                Report { again: applied.as_ref().and_then(|problem| self.pause_after(problem)), ..Report::default() }
            }
            Outcome::Unchanged { .. } => Report::default(),
        }
    }
}

impl DeploymentController {
    /// Reads everything that planning needs; none where the own Deployment is gone or going.
    async fn look(&self, name: &str) -> Result<Option<Box<DeploymentInputs>>, Problem> {
        let own = self.shared.read(name).await?;
        let Some(own) = own.filter(|own| own["metadata"]["deletionTimestamp"].is_null()) else { return Ok(None) };
        let [kube, cloudflare] = WorkerKind::ALL;
        let workers = [self.shared.read(kube.name()).await?, self.shared.read(cloudflare.name()).await?];
        let (config, pod) = (self.shared.in_force(), self.running(&own).await?);
        let now = (self.shared.context.clock)();
        Ok(Some(Box::new(DeploymentInputs { own, config, workers, pod, now })))
    }

    /// What the pod of this process runs.
    async fn running(&self, own: &Value) -> Result<RunningPod, Problem> {
        let Some(name) = self.shared.settings.pod.as_deref() else { return Ok(RunningPod::default()) };
        let context = &self.shared.context;
        let api: Api<Pod> = Api::namespaced(context.client.clone(), &context.operator_namespace);
        let pod = in_time(api.get_opt(name)).await;
        let pod = pod.map_err(|error| kubernetes_problem(format_args!("reading Pod {name}"), &error))?;
        Ok(pod.map(|pod| RunningPod::of(&pod, &container_of(own))).unwrap_or_default())
    }

    fn decide(&self, inputs: &DeploymentInputs) -> DeploymentPlan {
        let shaped = change_for(&inputs.own, inputs.config.as_deref(), inputs.now);
        let (own, refused) = match shaped {
            Ok(change) => (change, None),
            Err(problem) => (DeploymentChange::untouched(&inputs.own), Some(problem)),
        };
        let workers = self.workers(inputs, &own.wanted);
        DeploymentPlan { own, refused, workers }
    }

    /// What is to be done about the workers of a manager that is shaped so.
    fn workers(&self, inputs: &DeploymentInputs, own: &Value) -> Vec<WorkerStep> {
        let step = |(kind, there): (WorkerKind, &Option<Value>)| {
            let there = there.as_ref();
            if !self.shared.keeps_workers() {
                return rest(own, there);
            }
            // A manager that is about to be replaced leaves the workers to its successor, which knows the digest of
            // its image; and should that one never start, the workers go on with the image that works.
            if there.is_some() && inputs.pod.is_outdated(own) {
                return WorkerStep::Keep;
            }
            keep(
                kind,
                WorkerOrigin { own, account: self.shared.account(kind), digest: inputs.pod.digest.as_deref() },
                there,
            )
        };
        WorkerKind::ALL.into_iter().zip(&inputs.workers).map(step).collect()
    }

    /// When a configuration that could not be applied is tried again, though nothing changes.
    fn pause_after(&self, problem: &Problem) -> Option<Duration> {
        let timing = &self.shared.context.timing;
        match problem.class {
            Class::Invalid => None,
            Class::Waiting | Class::Transient => Some(timing.waiting),
            Class::Denied => Some(timing.denied),
        }
    }

    /// The own Deployment, then the workers. A configuration that cannot be applied keeps no worker from running.
    async fn carry_out(
        &self,
        inputs: &DeploymentInputs,
        plan: &DeploymentPlan,
    ) -> Result<Option<Problem>, WriteRefusal> {
        let (stands, result) = match &plan.refused {
            Some(problem) => (inputs.own.clone(), Err(problem.clone())),
            None => match self.shared.reshape(&inputs.own, &plan.own).await {
                Ok(stands) => (stands, Ok(())),
                Err(WriteRefusal::Problem(problem)) if inputs.config.is_some() => (inputs.own.clone(), Err(problem)),
                Err(refusal) => return Err(refusal),
            },
        };
        let by_what_stands = || self.shared.context.pure(|| self.workers(inputs, &stands));
        let steps = if plan.own.is_settled() { plan.workers.clone() } else { by_what_stands() };
        let mut first = Ok(());
        for step in &steps {
            first = first.and(self.shared.carry_out(step).await);
        }
        let refused = result.as_ref().err().cloned();
        self.tell(inputs, plan, result);
        first.map(|()| refused)
    }

    /// Lets it be known what became of the configuration.
    fn tell(&self, inputs: &DeploymentInputs, plan: &DeploymentPlan, result: Result<(), Problem>) {
        let changes = plan.changes();
        if result.is_ok() && !changes.is_empty() {
            let key = |name: &str| inputs.own["metadata"][name].as_str().unwrap_or_default();
            outcome::changed(&format_args!("Deployment {}/{}", key("namespace"), key("name")), &changes);
        }
        self.shared.verdicts.post_alone(inputs.config.as_ref().map(|config| (ConfigVersion::of(config), result)));
        if !changes.is_empty() {
            self.shared.report_anew();
        }
    }
}

impl DeploymentPlan {
    fn changes(&self) -> Changes {
        let workers = self.workers.iter().filter_map(WorkerStep::change);
        self.own.change.clone().into_iter().chain(workers).collect()
    }
}

impl RunningPod {
    fn of(pod: &Pod, container: &str) -> Self {
        let image = pod.spec.iter().flat_map(|spec| &spec.containers).find(|one| one.name == container);
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let id = statuses.filter(|one| one.name == container).map(|one| one.image_id.as_str()).next();
        Self { image: image.and_then(|one| one.image.clone()), digest: id.and_then(digest_of) }
    }

    /// Whether the Deployment names another image by now.
    fn is_outdated(&self, own: &Value) -> bool {
        let container = container_of(own);
        let pod = &own["spec"]["template"]["spec"];
        let there = crate::field::containers(pod).find(|one| one["name"] == container.as_str());
        let wanted = there.and_then(|one| one["image"].as_str());
        self.image.as_deref().is_some_and(|image| wanted.is_some_and(|wanted| wanted != image))
    }
}

/// `registry/name@sha256:…` or `docker://sha256:…` → `sha256:…`.
fn digest_of(image_id: &str) -> Option<String> {
    let digest = image_id.rsplit(['@', '/']).next().unwrap_or_default();
    (!digest.is_empty()).then(|| digest.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(image_id: &str) -> Pod {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "operator", "image": "portolan:1"}]},
            "status": {"containerStatuses": [
                {"name": "sidecar", "image": "", "imageID": "s@sha256:0", "ready": true, "restartCount": 0},
                {"name": "operator", "image": "", "imageID": image_id, "ready": true, "restartCount": 0}]},
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn the_digest_is_read_however_the_runtime_writes_it() {
        for id in [
            "example.com/portolan@sha256:abc",
            "docker-pullable://portolan@sha256:abc",
            "docker://sha256:abc",
            "sha256:abc",
        ] {
            assert_eq!(RunningPod::of(&pod(id), "operator").digest.as_deref(), Some("sha256:abc"), "{id}");
        }
        assert_eq!(RunningPod::of(&pod(""), "operator").digest, None);
    }

    #[test]
    fn a_pod_is_outdated_when_the_deployment_names_another_image() {
        let own = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "operator", "image": image}]}}}});
        let running = RunningPod::of(&pod("sha256:abc"), "operator");

        assert!(running.is_outdated(&own("portolan:2")));
        assert!(!running.is_outdated(&own("portolan:1")));
        assert!(!RunningPod::default().is_outdated(&own("portolan:1")), "a pod that is gone says nothing");
    }
}
