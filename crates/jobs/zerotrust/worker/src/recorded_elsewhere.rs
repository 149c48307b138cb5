//! Ids that other names have recorded: never taken for a lost one of our own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{Context, Handle, in_time, kubernetes_problem};
use portolan_exposure::{Elsewhere, Footprint};
use portolan_zerotrust_model::{CloudflareTask, State};
use tokio::sync::Mutex;

use crate::projection::TaskProjection;

const PAGE: u32 = 500;

/// What the states of all routes have recorded. Those who ask at the same time share a listing.
pub(crate) struct States {
    maps: Api<ConfigMap>,
    asked: AtomicU64,
    listed: Mutex<Listed>,
}

#[derive(Clone, Default)]
struct Listed {
    /// Everybody who asked up to here asked before the listing began.
    asked: u64,
    routes: Arc<Vec<(ObjectKey, Elsewhere)>>,
}

impl States {
    pub(crate) fn new(context: &Context) -> Self {
        let maps = Api::namespaced(context.client.clone(), &context.operator_namespace);
        Self { maps, asked: AtomicU64::default(), listed: Mutex::default() }
    }

    /// What all other tasks, and the states of all other routes, have recorded by now.
    pub(crate) async fn elsewhere(
        &self,
        task: &CloudflareTask,
        tasks: &Handle<TaskProjection>,
    ) -> Result<Elsewhere, Problem> {
        let (key, route) = (task.key(), task.route());
        let mut elsewhere = Elsewhere::default();
        tasks.read(|store| {
            for (_, projection) in store.projections().filter(|(other, _)| **other != key) {
                elsewhere.token_ids.extend(projection.token_ids.iter().cloned());
                elsewhere.app_ids.extend(projection.app_ids.iter().cloned());
            }
        });
        for (_, state) in self.list().await?.iter().filter(|(other, _)| Some(other) != route.as_ref()) {
            elsewhere.token_ids.extend(state.token_ids.iter().cloned());
            elsewhere.app_ids.extend(state.app_ids.iter().cloned());
        }
        Ok(elsewhere)
    }

    async fn list(&self) -> Result<Arc<Vec<(ObjectKey, Elsewhere)>>, Problem> {
        let ticket = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut listed = self.listed.lock().await;
        if listed.asked < ticket {
            let asked = self.asked.load(Ordering::Relaxed);
            *listed = Listed { asked, routes: Arc::new(self.read().await?) };
        }
        Ok(Arc::clone(&listed.routes))
    }

    async fn read(&self) -> Result<Vec<(ObjectKey, Elsewhere)>, Problem> {
        let mut routes = Vec::new();
        let mut token = None;
        loop {
            let page = ListParams { limit: Some(PAGE), continue_token: token, ..ListParams::default() };
            let list = in_time(self.maps.list(&page)).await;
            let list =
                list.map_err(|error| kubernetes_problem(format_args!("listing the states of routes"), &error))?;
            let states = list.items.iter().filter_map(|map| State::read(map).ok());
            routes.extend(states.map(|state| (state.route.clone(), recorded(&state))));
            token = list.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(routes);
            }
        }
    }
}

fn recorded(state: &State) -> Elsewhere {
    let leftovers = state.leftovers.iter().map(|leftover| &leftover.footprint);
    let footprints: Vec<&Footprint> = leftovers.chain([&state.footprint]).collect();
    Elsewhere {
        token_ids: footprints.iter().filter_map(|footprint| footprint.service_token_id.clone()).collect(),
        app_ids: footprints.iter().flat_map(|footprint| footprint.app_ids()).cloned().collect(),
    }
}
