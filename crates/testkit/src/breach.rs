//! A real controller with one pure step that does what it must not, and whether that is found.
//!
//! The controller itself is what is shipped: what breaks the promise is wrapped around it, and works through its clients.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use portolan_apiserver::{ApiServer, Config};
use portolan_cloudflare_api::{Clients, Settings as ApiSettings};
use portolan_cloudflare_sim::{Options, Simulator};
use portolan_core::{OwnerId, Plan, Problem};
use portolan_engine::{
    CancellationToken, Context, Controller, Outcome, PassFailure, Profile, Projected, Purity, Reconcile, Report,
};
use serde_json::Value;

use crate::clock::tokio_clock;
use crate::failpoints::Failpoints;
use crate::transport::{InProcess, SharedTransport};

/// A step that reads and writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PureStep {
    /// What the cache keeps.
    Project,
    /// Whether an object is any business of the controller's.
    IsRelevant,
    /// Whether a change of an annotation is a reason to run.
    ReactsToAnnotation,
    /// What is to be done.
    Plan,
    /// The plan as everyone else sees it.
    Changes,
    /// Whether there is anything to do.
    HasWork,
    /// Whether the object needs its finalizer.
    NeedsFinalizer,
    /// What is noted before anything is done; only a pass that does something comes there.
    Intent,
    /// What the user gets to see.
    Report,
}

impl PureStep {
    /// Those that every pass takes.
    pub const OF_EVERY_PASS: [Self; 8] = [
        Self::Project,
        Self::IsRelevant,
        Self::ReactsToAnnotation,
        Self::Plan,
        Self::Changes,
        Self::HasWork,
        Self::NeedsFinalizer,
        Self::Report,
    ];

    /// Those of a pass that does something.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OF_EVERY_PASS.into_iter().chain([Self::Intent])
    }
}

/// What a pure step must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// It starts a task.
    StartsTask,
    /// It asks the cluster.
    AsksCluster,
    /// It asks the time.
    AsksTime,
}

impl Breach {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::StartsTask, Self::AsksCluster, Self::AsksTime];

    /// Does it, by what a controller has.
    fn commit(self, context: &Context) {
        match self {
            Self::StartsTask => drop(tokio::spawn(async {})),
            Self::AsksCluster => drop(block_on(context.client.apiserver_version())),
            Self::AsksTime => assert!((context.clock)().as_second() > 0, "worlds begin long after 1970"),
        }
    }
}

/// A breach, and the step that commits it.
pub type PlantedBreach = (PureStep, Breach);

/// A real controller around which one step does what it must not.
struct Breaching<R> {
    real: R,
    context: Arc<Context>,
    planted: Option<PlantedBreach>,
}

impl<R: Reconcile> Breaching<R> {
    fn take(&self, step: PureStep) {
        if let Some((_, breach)) = self.planted.filter(|(broken, _)| *broken == step) {
            breach.commit(&self.context);
        }
    }
}

impl<R: Reconcile> Reconcile for Breaching<R> {
    type Object = R::Object;
    type Inputs = R::Inputs;
    type Plan = R::Plan;
    type Applied = R::Applied;
    type Projection = R::Projection;

    fn profile(&self) -> Profile {
        self.real.profile()
    }

    fn is_relevant(&self, object: &R::Object) -> bool {
        self.take(PureStep::IsRelevant);
        self.real.is_relevant(object)
    }

    fn needs_finalizer(&self, object: &R::Object, inputs: &R::Inputs, plan: &R::Plan) -> bool {
        self.take(PureStep::NeedsFinalizer);
        self.real.needs_finalizer(object, inputs, plan)
    }

    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        self.take(PureStep::ReactsToAnnotation);
        self.real.reacts_to_annotation(annotation)
    }

    fn project(&self, object: &R::Object) -> R::Projection {
        self.take(PureStep::Project);
        self.real.project(object)
    }

    fn seen(
        &self,
        key: &portolan_core::ObjectKey,
        before: Option<&Projected<R::Projection>>,
        after: Option<&Projected<R::Projection>>,
    ) {
        self.real.seen(key, before, after);
    }

    async fn gather(&self, object: &R::Object) -> Result<R::Inputs, Problem> {
        self.real.gather(object).await
    }

    fn plan(&self, object: &R::Object, inputs: &R::Inputs) -> Result<R::Plan, Problem> {
        self.take(PureStep::Plan);
        self.real.plan(object, inputs)
    }

    fn changes(&self, plan: &R::Plan) -> Plan {
        self.take(PureStep::Changes);
        self.real.changes(plan)
    }

    fn has_work(&self, plan: &R::Plan) -> bool {
        self.take(PureStep::HasWork);
        self.real.has_work(plan)
    }

    fn rests(&self, inputs: &R::Inputs) {
        self.real.rests(inputs);
    }

    fn intent(&self, object: &R::Object, inputs: &R::Inputs, plan: &R::Plan) -> Option<Value> {
        self.take(PureStep::Intent);
        self.real.intent(object, inputs, plan)
    }

    async fn apply(&self, object: &R::Object, inputs: &R::Inputs, plan: &R::Plan) -> Result<R::Applied, Problem> {
        self.real.apply(object, inputs, plan).await
    }

    fn report(&self, object: &R::Object, outcome: Outcome<'_, Self>) -> Report {
        self.take(PureStep::Report);
        self.real.report(object, of_real(outcome))
    }

    fn remember(&self, object: &R::Object, outcome: Outcome<'_, Self>) {
        self.real.remember(object, of_real(outcome));
    }
}

/// The same end of a pass, as the real controller's.
fn of_real<R: Reconcile>(outcome: Outcome<'_, Breaching<R>>) -> Outcome<'_, R> {
    match outcome {
        Outcome::Applied { inputs, plan, applied } => Outcome::Applied { inputs, plan, applied },
        Outcome::Unchanged { inputs, plan } => Outcome::Unchanged { inputs, plan },
        Outcome::Failed(PassFailure { problem, planned, before }) => {
            Outcome::Failed(PassFailure { problem, planned, before })
        }
    }
}

/// The breaches that nobody finds out: each is planted into the controller of a world of its own.
pub async fn missed<R: Reconcile>(
    steps: impl IntoIterator<Item = PureStep>,
    begin: impl AsyncFn() -> (BreachWorld, R),
) -> Vec<PlantedBreach> {
    let mut missed = Vec::new();
    for step in steps {
        for breach in Breach::ALL {
            let (world, real) = begin().await;
            if !world.panics_with(real, Some((step, breach))).await {
                missed.push((step, breach));
            }
        }
    }
    missed
}

/// A cluster in memory and the context of a controller that is held to its word.
pub struct BreachWorld {
    /// What the controller is given.
    pub context: Arc<Context>,
    _server: ApiServer,
}

impl BreachWorld {
    /// A cluster that knows these definitions and has an object of the kind that `R` is for.
    pub async fn with<R: Reconcile>(definitions: &[Value], object: &Value) -> Self {
        let clock = tokio_clock(crate::clock::beginning());
        let config = Config { clock: clock.clone(), seed: Some(1), ..Config::default() };
        let server = ApiServer::open(config).await.expect("a server in memory opens");
        let client = Client::new(server.service(), "default");
        let definition = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        for one in definitions {
            create(Api::all_with(client.clone(), &ApiResource::from_gvk(&definition)), one).await;
        }
        // Definitions are served a moment after they were made.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let resource = ApiResource::erase::<R::Object>(&());
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => create(Api::namespaced_with(client.clone(), namespace, &resource), object).await,
            None => create(Api::all_with(client.clone(), &resource), object).await,
        }
        let mut context = Context::new(client, clock, OwnerId::derive("breach"));
        "default".clone_into(&mut context.operator_namespace);
        context.purity = Purity::Enforced;
        Self { context: Arc::new(context), _server: server }
    }

    /// Clients of Cloudflare, which has nothing.
    pub fn clients(&self) -> Arc<Clients> {
        let clock = self.context.clock.clone();
        let simulator = Simulator::open(Options { clock: clock.clone(), ..Options::default() });
        let line = SharedTransport::to(simulator.expect("nothing is recorded"), Duration::ZERO);
        let transport = Arc::new(InProcess::new(line, Failpoints::default()));
        Arc::new(Clients::new(ApiSettings::default(), transport, clock))
    }

    /// Whether a pass of the controller as it is, or the controller itself, ends in a panic.
    pub async fn panics_by_itself<R: Reconcile>(&self, real: R) -> bool {
        self.panics_with(real, None).await
    }

    async fn panics_with<R: Reconcile>(&self, real: R, planted: Option<PlantedBreach>) -> bool {
        let breaching = Breaching { real, context: Arc::clone(&self.context), planted };
        let shutdown = CancellationToken::new();
        let controller = Controller::new(Arc::clone(&self.context), Arc::new(breaching));
        let running = tokio::spawn(controller.run(shutdown.clone()));
        tokio::time::sleep(Duration::from_secs(5)).await;
        shutdown.cancel();
        let ended = running.await;
        ended.is_err_and(|error| error.is_panic()) || self.panics() > 0
    }

    fn panics(&self) -> u64 {
        let measured = self.context.metrics.render();
        let counts = measured.lines().filter_map(|line| line.strip_prefix("portolan_reconcile_panics_total{"));
        counts.filter_map(|line| line.split_once("} ")?.1.parse::<u64>().ok()).sum()
    }
}

async fn create(api: Api<DynamicObject>, manifest: &Value) {
    let mut object: DynamicObject = serde_json::from_value(manifest.clone()).expect("a manifest is an object");
    // Without an annotation nobody asks whether it is a reason to run.
    object.metadata.annotations.get_or_insert_default().insert("example.com/note".to_owned(), "any".to_owned());
    api.create(&PostParams::default(), &object).await.expect("the manifest is accepted");
}
