//! What would change: a copy of the cluster, overlaid with files, in which the controllers plan and never apply.

mod copy;
mod overlay;
#[cfg(test)]
mod pairs;
mod references;
mod stored;
mod takeover;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_apiserver::{ApiServer, Config};
use portolan_core::{ObjectId, OwnerId, Plan, Problem};
use portolan_engine::{Drift, PlanSink, Provisions, WriteMode, cluster_owner};
use portolan_zerotrust as zerotrust;
use serde_json::{Value, json};

use crate::cli::apiserver::not_started;
use crate::definitions;
use crate::failure::{Failure, Outcome};
use crate::manifest::Manifest;
use crate::operator::{self, Operator};
use crate::server::{Server, chain};

pub(crate) use stored::StoppedServer;
use takeover::TakeOver;

/// How often it is looked whether everything is planned.
const LOOK: Duration = Duration::from_millis(40);
/// How many looks in a row must find nothing under way.
const QUIET_LOOKS: u32 = 4;

/// What is planned, and against what.
pub(crate) struct PlanQuestion<'a> {
    /// The cluster as it is; none plans the files alone.
    pub(crate) cluster: Option<&'a Server>,
    pub(crate) manifests: &'a [Manifest],
    /// The Cloudflare API's address.
    pub(crate) cloudflare: String,
    /// Where the operator's own objects are.
    pub(crate) namespace: String,
    /// Where the zerotrust job's own objects are.
    pub(crate) zerotrust_namespace: String,
    /// Whose marks are ours, where not the cluster's.
    pub(crate) owner: Option<OwnerId>,
    /// Who applies the files, where not whoever applied each object before.
    pub(crate) field_manager: Option<String>,
    /// Origins that the operator lets routes have though they reach what protects the cluster.
    pub(crate) allow_origins: Vec<String>,
    /// How long planning may take.
    pub(crate) timeout: Duration,
}

/// What would change, and what could not be planned.
pub(crate) struct PlanAnswer {
    pub(crate) plan: Plan,
    pub(crate) unplanned: BTreeMap<ObjectId, Problem>,
    /// What older operators left, and what becomes of it.
    pub(crate) take_over: TakeOver,
    /// What was assumed about how the files are applied.
    pub(crate) notes: Vec<String>,
}

/// What each object's last pass planned.
type Collected = Arc<Mutex<BTreeMap<ObjectId, Result<Plan, Problem>>>>;

impl PlanAnswer {
    fn of(collected: &Collected, take_over: TakeOver, notes: Vec<String>) -> Self {
        let mut answer = Self { plan: Plan::default(), unplanned: BTreeMap::new(), take_over, notes };
        for (object, outcome) in collected.lock().expect("nothing panics while it is held").iter() {
            match outcome {
                Ok(plan) => answer.plan.extend(plan.clone()),
                Err(problem) => drop(answer.unplanned.insert(object.clone(), problem.clone())),
            }
        }
        answer
    }

    /// Whether nothing would change, as far as it could be planned.
    pub(crate) fn is_quiet(&self) -> bool {
        self.plan.is_empty() && self.plan.names.becoming_public().is_empty()
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let unplanned = self.unplanned.iter().map(|(object, problem)| {
            json!({"object": object.to_string(), "reason": problem.reason, "message": problem.message})
        });
        let mut document = self.plan.to_json();
        document["unplanned"] = unplanned.collect();
        document["notes"] = json!(self.notes);
        if !self.take_over.is_empty() {
            document["takeOver"] = self.take_over.to_json();
        }
        document
    }
}

/// Plans. Nothing is written anywhere but in this process.
pub(crate) async fn plan(question: &PlanQuestion<'_>) -> Outcome<PlanAnswer> {
    let copy = ApiServer::open(Config::default()).await.map_err(not_started)?;
    let client = kube::Client::new(copy.service(), "default");
    let local = Server::of_client(client.clone(), "the copy in this process");
    definitions::install(&local).await?;
    if let Some(cluster) = question.cluster {
        copy::copy(cluster, &copy, &local, question).await?;
    }
    definitions::install_routes(&local).await?;
    local.make_namespace(&question.zerotrust_namespace).await?;
    let notes = overlay::apply(&local, question).await?;
    let take_over = TakeOver::read(&local, &question.zerotrust_namespace).await?;
    let collected = Collected::default();
    let operator = Operator::start(client, options(question, sink(&collected)).await?)?;
    tokio::time::timeout(question.timeout, quiet(&operator, &copy)).await.map_err(|_| {
        Failure::new(format!("planning took longer than {} s", question.timeout.as_secs()))
            .next("try again with a longer --timeout; LOG_LEVEL=info shows what it waits for")
    })?;
    Ok(PlanAnswer::of(&collected, take_over, notes))
}

async fn options(question: &PlanQuestion<'_>, plans: PlanSink) -> Outcome<operator::OperatorOptions> {
    let owner = match (&question.owner, question.cluster) {
        (Some(owner), _) => owner.clone(),
        (None, Some(cluster)) => cluster_owner(cluster.client()).await.map_err(|error| {
            Failure::new(format!("reading namespace kube-system of {}: {}", cluster.address(), chain(&error)))
                .next("say whose objects are ours with --owner-id")
        })?,
        (None, None) => OwnerId::derive("portolan plan"),
    };
    let mut options = operator::OperatorOptions::new(owner, question.cloudflare.as_str());
    options.mode = WriteMode::Shadow;
    options.api.read_only = true;
    options.provisions = provisions(question);
    options.plans = Some(plans);
    options.namespace.clone_from(&question.namespace);
    Ok(options)
}

/// What the jobs are told: nobody looks for drift.
fn provisions(question: &PlanQuestion<'_>) -> Provisions {
    let mut settings = zerotrust::Settings::default();
    settings.operator_namespace.clone_from(&question.zerotrust_namespace);
    settings.routes.allow_origins.clone_from(&question.allow_origins);
    settings.routes.drift = Drift::Off;
    Provisions::default().with(Drift::Off).with(settings)
}

fn sink(collected: &Collected) -> PlanSink {
    let collected = collected.clone();
    Arc::new(move |object, outcome| {
        collected.lock().expect("nothing panics while it is held").insert(object, outcome);
    })
}

/// Waits until nothing is under way any more.
async fn quiet(operator: &Operator, copy: &ApiServer) {
    let mut quiet = 0;
    let mut version = copy.store().version();
    while quiet < QUIET_LOOKS {
        tokio::time::sleep(LOOK).await;
        let now = copy.store().version();
        let is_quiet = operator.busy() == 0 && now == version;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        version = now;
    }
}
