//! The controller of configurations: tells what became of each, and whether the operator runs as it says.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use portolan_core::{ConditionStatus, NewCondition, Plan, Problem, Rollout, condition};
use portolan_engine::{Notice, Outcome, Profile, Reconcile, Report};
use portolan_zerotrust_model::{CloudflareZeroTrustOperatorConfig as Config, reasons};
use serde_json::json;

use crate::config_states::ConfigVersion;
use crate::previous_values::PreviousValues;
use crate::shared::ManagerContext;
use crate::worker::WorkerKind;

/// The condition that says whether a configuration was applied.
const APPLIED: &str = "Applied";

/// Reconciles configurations.
pub(crate) struct ConfigController {
    pub(crate) shared: Arc<ManagerContext>,
}

/// How a configuration stands.
pub(crate) enum ConfigState {
    /// Nobody has looked at it yet, which happens soon.
    New,
    /// It is not in force, or could not be applied.
    Refused(Problem),
    /// It is in force.
    Applied {
        /// When something was last changed because of it.
        at: Option<String>,
        /// Whether that was because of what it says now.
        by_this: bool,
        /// The Deployments that are not as far as they should be, and why.
        waiting: Vec<String>,
    },
}

impl Reconcile for ConfigController {
    type Object = Config;
    type Inputs = ConfigState;
    type Plan = ();
    type Applied = ();
    type Projection = ();

    /// The one time in its status is when something was applied.
    fn profile(&self) -> Profile {
        Profile { heeds_times: true, ..Profile::of("CloudflareZeroTrustOperatorConfig") }
    }

    fn project(&self, _: &Config) {}

    async fn gather(&self, config: &Config) -> Result<ConfigState, Problem> {
        Ok(self.state_of(config))
    }

    fn plan(&self, _: &Config, state: &ConfigState) -> Result<(), Problem> {
        match state {
            ConfigState::Refused(problem) => Err(problem.clone()),
            ConfigState::New | ConfigState::Applied { .. } => Ok(()),
        }
    }

    fn changes(&self, (): &()) -> Plan {
        Plan::default()
    }

    async fn apply(&self, _: &Config, _: &ConfigState, (): &()) -> Result<(), Problem> {
        Ok(())
    }

    fn report(&self, config: &Config, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Failed(failure) => refused(config, failure.problem),
            Outcome::Applied { inputs, .. } | Outcome::Unchanged { inputs, .. } => match inputs {
                ConfigState::Applied { at, by_this, waiting } => applied(config, at.as_deref(), *by_this, waiting),
                ConfigState::New | ConfigState::Refused(_) => Report::default(),
            },
        }
    }
}

impl ConfigController {
    fn state_of(&self, config: &Config) -> ConfigState {
        if let Some(other) = self.shared.in_force().filter(|other| other.metadata.uid != config.metadata.uid) {
            return ConfigState::Refused(outdone_by(&other.name_any()));
        }
        if let Some(lost) = self.shared.lost() {
            return ConfigState::Refused(lost);
        }
        match self.shared.verdicts.about(&ConfigVersion::of(config)) {
            None => ConfigState::New,
            Some(Err(problem)) => ConfigState::Refused(problem),
            Some(Ok(())) => self.applied(config),
        }
    }

    /// When the configuration was applied, and how far the Deployments are.
    fn applied(&self, config: &Config) -> ConfigState {
        let Some(own) = self.shared.own() else { return ConfigState::New };
        let deployment = self.shared.deployments.get(&own.deployment);
        let record = deployment
            .as_ref()
            .and_then(|deployment| PreviousValues::read(&json!({ "metadata": deployment.metadata })));
        let version = ConfigVersion::of(config);
        let record = record.filter(|record| record.config == version.uid);
        let workers = WorkerKind::ALL.iter().map(|kind| self.shared.key(kind.name()));
        let all = [own.deployment].into_iter().chain(workers.filter(|_| self.shared.keeps_workers()));
        let waiting = all.filter_map(|key| {
            let why = lacks(self.shared.deployments.get(&key).as_deref())?;
            Some(format!("{}: {why}", key.name))
        });
        ConfigState::Applied {
            by_this: record.as_ref().is_some_and(|record| record.generation == version.generation),
            at: record.map(|record| record.at),
            waiting: waiting.collect(),
        }
    }
}

/// What a Deployment lacks to run as its spec says.
fn lacks(deployment: Option<&Deployment>) -> Option<String> {
    let Some(deployment) = deployment else { return Some("it does not exist".to_owned()) };
    Rollout::of(&serde_json::to_value(deployment).expect("objects are plain JSON")).lacks()
}

fn outdone_by(other: &str) -> Problem {
    let message = format!("OperatorConfig {other} is older and is the one in force: delete one of them");
    Problem::invalid(reasons::MULTIPLE_CONFIGS, message)
}

/// A configuration that has no effect. Its generation counts as observed only once it has.
fn refused(config: &Config, problem: &Problem) -> Report {
    let observed = config.status.as_ref().and_then(|status| status.observed_generation);
    let mut report = Report::failed(problem);
    report.status = json!({ "observedGeneration": observed, "deploymentReady": false });
    report.conditions.insert(0, NewCondition::of(APPLIED, ConditionStatus::False, problem.reason, &problem.message));
    report
}

fn applied(config: &Config, at: Option<&str>, by_this: bool, waiting: &[String]) -> Report {
    let condition = if by_this {
        let message = "OperatorConfig successfully applied to deployment";
        NewCondition::of(APPLIED, ConditionStatus::True, reasons::CONFIGURATION_APPLIED, message)
    } else {
        let message = "The deployment was as configured already";
        NewCondition::of(APPLIED, ConditionStatus::True, reasons::NO_CHANGES_NEEDED, message)
    };
    let told = config.status.as_ref().and_then(|status| status.last_applied_time.as_deref());
    let events = match at {
        Some(at) if by_this && told != Some(at) => vec![Notice::normal(condition.reason, condition.message.as_str())],
        Some(_) | None => Vec::new(),
    };
    Report {
        status: json!({ "lastAppliedTime": at, "deploymentReady": waiting.is_empty() }),
        conditions: vec![condition, ready(waiting)],
        events,
        ..Report::default()
    }
}

fn ready(waiting: &[String]) -> NewCondition {
    match waiting {
        [] => NewCondition::of(
            condition::READY,
            ConditionStatus::True,
            reasons::DEPLOYMENT_READY,
            "Operator deployment is ready",
        ),
        some => NewCondition::not_ready(reasons::DEPLOYMENT_NOT_READY, some.join(". ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn config(status: Value) -> Config {
        let whole = json!({
            "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustOperatorConfig",
            "metadata": {"name": "operator-config", "generation": 2}, "spec": {}, "status": status,
        });
        serde_json::from_value(whole).unwrap()
    }

    fn said(report: &Report) -> Vec<String> {
        let one = |one: &NewCondition| format!("{}={}/{}", one.r#type, one.status.as_str(), one.reason);
        report.conditions.iter().map(one).collect()
    }

    #[test]
    fn what_was_applied_is_told_once_in_the_specified_words() {
        let fresh = applied(&config(json!({})), Some("t"), true, &[]);
        let told = applied(&config(json!({"lastAppliedTime": "t"})), Some("t"), true, &[]);

        assert_eq!(said(&fresh), ["Applied=True/ConfigurationApplied", "Ready=True/DeploymentReady"]);
        assert_eq!(fresh.conditions[0].message, "OperatorConfig successfully applied to deployment");
        assert_eq!(fresh.conditions[1].message, "Operator deployment is ready");
        assert_eq!((fresh.events.len(), told.events.len()), (1, 0));
        assert_eq!(fresh.status["deploymentReady"], true);
    }

    #[test]
    fn what_stood_already_needed_no_changes_and_what_is_not_far_enough_is_named() {
        let report = applied(&config(json!({})), None, false, &["a: 0 of 1 pods are ready".to_owned()]);

        assert_eq!(said(&report), ["Applied=True/NoChangesNeeded", "Ready=False/DeploymentNotReady"]);
        assert_eq!(report.conditions[1].message, "a: 0 of 1 pods are ready");
        assert!(report.events.is_empty());
    }

    #[test]
    fn a_configuration_without_effect_keeps_its_observed_generation() {
        let report = refused(&config(json!({"observedGeneration": 1})), &outdone_by("first"));

        assert_eq!(said(&report), ["Applied=False/MultipleConfigs", "Ready=False/MultipleConfigs"]);
        assert_eq!(report.status["observedGeneration"], 1);
        assert!(refused(&config(json!({})), &outdone_by("first")).status["observedGeneration"].is_null());
    }
}
