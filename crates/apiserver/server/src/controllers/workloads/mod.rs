//! Runs the controllers of workloads: the store's events go in, what they plan is written by the server's own calls.
//!
//! One task: events are taken in before every plan, so that a plan sees what the plans before it wrote. An object is
//! planned for at once when something that concerns it changed, and again only after [`HOLD`], so that a burst of
//! changes costs one plan.

mod cache;
mod perform;
mod queue;
pub(super) mod recorder;

use std::sync::Arc;
use std::time::Duration;

use portolan_workloads::{Controller, ObjectName, Plan, Step, StepFailure};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::api::Api;
use crate::store::{Event, EventKind};
use cache::{Cache, ObjectChange};
use perform::{Performer, PlanStop};
use queue::{DueQueue, QueueKey};

/// An object is planned for at most this often.
const HOLD: Duration = Duration::from_millis(10);

/// Follows everything that the controllers watch.
pub(crate) async fn run(
    api: Arc<Api>,
    mut events: UnboundedReceiver<Arc<Event>>,
    controllers: Vec<Box<dyn Controller>>,
) {
    let mut runner = Runner::new(&api, controllers);
    runner.resume();
    loop {
        while let Ok(event) = events.try_recv() {
            runner.see(&event);
        }
        if let Some(key) = runner.queue.pop(Instant::now()) {
            runner.reconcile(&key).await;
            // The store in memory never waits; others have their turn in between.
            tokio::task::yield_now().await;
            continue;
        }
        let next = runner.queue.next_due();
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => runner.see(&event),
                None => return,
            },
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

struct Runner {
    controllers: Vec<Box<dyn Controller>>,
    cache: Cache,
    queue: DueQueue,
    performer: Performer,
}

impl Runner {
    fn new(api: &Arc<Api>, controllers: Vec<Box<dyn Controller>>) -> Self {
        let collections = controllers.iter().flat_map(|c| c.watches().iter().copied().chain([c.collection()]));
        Self {
            cache: Cache::new(api, collections),
            queue: DueQueue::new(HOLD),
            performer: Performer::new(api.clone()),
            controllers,
        }
    }

    /// Looks at every object once, for what happened while nobody followed.
    fn resume(&mut self) {
        let controllers = &self.controllers;
        self.cache.fill(|collection, name| controllers.iter().any(|one| one.reads(collection, name)));
        for (index, controller) in self.controllers.iter().enumerate() {
            for name in self.cache.names(controller.collection()) {
                self.queue.add((index, name), Instant::now());
            }
        }
    }

    /// Takes an event in, and remembers whom it concerns.
    fn see(&mut self, event: &Event) {
        let key = &event.object.key;
        let collection: &str = &key.collection;
        let controllers = &self.controllers;
        let reads = |collection: &str, name: &str| controllers.iter().any(|one| one.reads(collection, name));
        let Some(seen) = self.cache.apply(event, reads) else { return };
        let name = ObjectName { namespace: key.namespace().to_owned(), name: key.name().to_owned() };
        let now = Instant::now();
        for (index, controller) in self.controllers.iter().enumerate() {
            if controller.collection() == collection {
                if event.kind == EventKind::Added {
                    self.queue.forget(&(index, name.clone()));
                }
                self.queue.add((index, name.clone()), now);
            }
            if controller.watches().contains(&collection) {
                for concerned in concerned(controller.as_ref(), &self.cache, collection, &seen) {
                    self.queue.add((index, concerned), now);
                }
            }
        }
    }

    /// Plans for one object and carries the plan out.
    async fn reconcile(&mut self, key: &QueueKey) {
        let (index, name) = key;
        let controller = &self.controllers[*index];
        let object = self.cache.get_object(controller.collection(), name);
        let plan = match &object {
            Some(object) => controller.plan(&self.cache, object),
            None => controller.gone(&self.cache, name),
        };
        let again_after = plan.again_after;
        match self.performer.carry_out(controller.component(), plan).await {
            Ok(()) => self.queue.succeeded(key),
            Err(PlanStop::Pointless) => {}
            Err(PlanStop::Changed) => self.queue.retry(key, Instant::now()),
            Err(PlanStop::Refused { step, failure }) => {
                self.tell_failure(key, &step, &failure).await;
                self.queue.retry(key, Instant::now());
            }
        }
        if let Some(wait) = again_after {
            self.queue.add(key.clone(), Instant::now() + wait);
        }
        if object.is_none() {
            self.queue.forget(key);
        }
    }

    /// Lets a controller say that a step was refused.
    async fn tell_failure(&mut self, (index, name): &QueueKey, step: &Step, failure: &StepFailure) {
        let controller = &self.controllers[*index];
        tracing::debug!(
            component = controller.component(),
            namespace = name.namespace,
            name = name.name,
            error = failure.message,
            "A step was refused"
        );
        // The cache lags behind the steps before; what they made is counted by the next plan.
        if let Some(object) = self.cache.get_object(controller.collection(), name) {
            let told: Plan = controller.failed(&self.cache, &object, step, failure);
            // What cannot be told now is told with the next failure.
            let _ = self.performer.carry_out(controller.component(), told).await;
        }
    }
}

/// Whom a change concerns, by the object before and after it.
fn concerned(controller: &dyn Controller, cache: &Cache, collection: &str, seen: &ObjectChange) -> Vec<ObjectName> {
    let objects: [Option<&Arc<Value>>; 2] = [seen.before.as_ref(), seen.after.as_ref()];
    let mut names: Vec<ObjectName> =
        objects.into_iter().flatten().flat_map(|object| controller.concerned(cache, collection, object)).collect();
    names.dedup();
    names
}
