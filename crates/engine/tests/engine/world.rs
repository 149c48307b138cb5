//! The test kit's world, with a remote side in memory and a controller of gadgets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use portolan_apiserver::ApiServer;
use portolan_core::job::{JobSheet, plain};
use portolan_engine::{Context, Controller, Handle, Job, JobDefinition, Manager, Steering, Task};
use portolan_testkit::{Builder, WorldJob};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::gadget::{Gadget, Gadgets, Remote, definition};

const GROUP: &str = "test.portolan.dev";
const SHEET: JobSheet = JobSheet { definitions: || vec![plain(definition())], ..JobSheet::named("gadgets", GROUP) };
/// The controller is started by the world itself: a test drops it, starts several, or gives them another context.
static DEFINITION: JobDefinition = JobDefinition::of(SHEET, |_| Job::new("nothing", |_| Vec::<Task>::new()));
static WITHOUT_KINDS: JobDefinition =
    JobDefinition::of(JobSheet::named("nothing", GROUP), |_| Job::new("nothing", |_| Vec::<Task>::new()));
static JOB: WorldJob = WorldJob::bare(&DEFINITION, &["default"], |_, _| (), |_| Vec::new());
static NOTHING: WorldJob = WorldJob::bare(&WITHOUT_KINDS, &["default"], |_, _| (), |_| Vec::new());

pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    /// While it is set, no watch can be opened.
    pub(crate) offline: Arc<AtomicBool>,
    pub(crate) remote: Arc<Remote>,
    pub(crate) context: Arc<Context>,
    /// The handle of the controller that was started last.
    handle: Arc<Mutex<Handle<String>>>,
    pub(crate) manager: Option<Manager>,
}

/// A world whose cluster does not have the kind.
pub(crate) async fn without_kinds() -> portolan_testkit::World {
    Builder::of(&NOTHING).asleep().start().await
}

/// Makes watches fail while the switch is on.
fn unless<B>(offline: Arc<AtomicBool>) -> impl FnMut(http::Request<B>) -> http::Request<B> + Clone {
    move |mut request| {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if watches && offline.load(Ordering::Relaxed) {
            *request.method_mut() = http::Method::TRACE;
        }
        request
    }
}

impl World {
    /// A world at rest, with its kind installed.
    pub(crate) async fn empty() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Context)) -> Self {
        let world = Builder::of(&JOB).asleep().start().await;
        let server = world.server().clone();
        let offline = Arc::new(AtomicBool::new(false));
        let client = Client::new(server.service().map_request(unless(offline.clone())), "default");
        let mut context = world.context(client.clone());
        context.steering = Steering::with(&["older.example.com/"]);
        change(&mut context);
        let (remote, handle) = (Arc::default(), Arc::default());
        let context = Arc::new(context);
        let world = Self { server, offline, client, remote, context, handle, manager: None };
        world.idle().await;
        world
    }

    /// A world whose controller runs.
    pub(crate) async fn start() -> Self {
        let mut world = Self::empty().await;
        world.run();
        world.settle().await;
        world
    }

    /// A job with a controller of gadgets.
    pub(crate) fn job(&self) -> Job {
        let (context, client, remote, slot) =
            (self.context.clone(), self.client.clone(), self.remote.clone(), self.handle.clone());
        Job::new("gadgets", move |shutdown| {
            let gadgets = Arc::new(Gadgets { client: client.clone(), remote: remote.clone() });
            let controller = Controller::new(context.clone(), gadgets);
            *slot.lock().unwrap() = controller.handle();
            vec![controller.into_task(shutdown.clone())]
        })
    }

    pub(crate) fn run(&mut self) {
        self.manager = Some(Manager::start(&self.context, [self.job()]));
    }

    /// Drops the controller in the middle of what it does.
    pub(crate) fn crash(&mut self) {
        self.manager = None;
    }

    pub(crate) fn handle(&self) -> Handle<String> {
        self.handle.lock().unwrap().clone()
    }

    /// Lets everything happen that happens without time passing.
    pub(crate) async fn idle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Waits until nothing is under way.
    pub(crate) async fn settle(&self) {
        for _ in 0..10_000 {
            self.idle().await;
            if self.manager.as_ref().is_none_or(|manager| manager.busy() == 0) {
                return;
            }
        }
        panic!("the world does not settle");
    }

    pub(crate) async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.settle().await;
    }

    pub(crate) fn api(&self) -> Api<Gadget> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn raw(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &ApiResource::erase::<Gadget>(&()))
    }

    pub(crate) async fn create(&self, gadget: Gadget) -> Gadget {
        let created = self.api().create(&PostParams::default(), &gadget).await.unwrap();
        self.settle().await;
        created
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Gadget> {
        self.api().get_opt(name).await.unwrap()
    }

    /// Merges into an object, and lets the controller react.
    pub(crate) async fn merge(&self, name: &str, patch: Value) {
        self.raw().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        self.settle().await;
    }

    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: &str) {
        self.merge(name, json!({"metadata": {"annotations": {annotation: value}}})).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.raw().delete(name, &DeleteParams::default()).await.unwrap();
        self.settle().await;
    }

    /// `Ready` in short: `True/Synced`.
    pub(crate) async fn ready(&self, name: &str) -> String {
        let gadget = self.get(name).await.unwrap_or_else(|| panic!("{name} exists"));
        let conditions = gadget.status.map(|status| status.conditions).unwrap_or_default();
        conditions
            .iter()
            .find(|condition| condition.r#type == "Ready")
            .map_or_else(String::new, |ready| format!("{}/{}", ready.status.as_str(), ready.reason))
    }

    /// Events as `Reason name`, in order of their making.
    pub(crate) async fn events(&self) -> Vec<String> {
        let mut events =
            Api::<Event>::default_namespaced(self.client.clone()).list(&ListParams::default()).await.unwrap().items;
        events.sort_by_key(|event| event.resource_version().unwrap().parse::<u64>().unwrap());
        let told = |event: Event| format!("{} {}", event.reason.unwrap(), event.regarding.unwrap().name.unwrap());
        events.into_iter().map(told).collect()
    }

    /// The version of the last write to anything.
    pub(crate) fn version(&self) -> u64 {
        self.server.store().version()
    }

    pub(crate) fn careful(&self) {
        self.remote.careful.store(true, Ordering::Relaxed);
    }
}

impl World {
    /// Forces a pass by annotation.
    pub(crate) async fn force(&self, name: &str) {
        self.annotate(name, "portolan.dev/reconcile-at", &self.version().to_string()).await;
    }
}
