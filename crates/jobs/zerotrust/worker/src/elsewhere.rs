//! Ids that other names have recorded: never taken for a lost one of our own.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_core::Problem;
use portolan_engine::{Handle, in_time, kubernetes_problem};
use portolan_exposure::{Elsewhere, Footprint};
use portolan_zerotrust_model::{CloudflareTask, State};

use crate::projection::Projection;

const PAGE: u32 = 500;

/// What all other tasks and all states of other routes have recorded.
pub(crate) async fn recorded(
    client: &Client,
    namespace: &str,
    tasks: &Handle<Projection>,
    task: &CloudflareTask,
) -> Result<Elsewhere, Problem> {
    let mut elsewhere = Elsewhere::default();
    let key = task.key();
    tasks.read(|store| {
        for (_, projection) in store.projections().filter(|(other, _)| **other != key) {
            elsewhere.token_ids.extend(projection.token_ids.iter().cloned());
            elsewhere.app_ids.extend(projection.app_ids.iter().cloned());
        }
    });
    let route = task.route();
    for state in states(client, namespace).await? {
        if Some(&state.route) != route.as_ref() {
            add(&mut elsewhere, &state.footprint);
        }
    }
    Ok(elsewhere)
}

fn add(elsewhere: &mut Elsewhere, footprint: &Footprint) {
    elsewhere.token_ids.extend(footprint.service_token_id.clone());
    elsewhere.app_ids.extend(footprint.access_app_id.clone());
}

async fn states(client: &Client, namespace: &str) -> Result<Vec<State>, Problem> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut states = Vec::new();
    let mut token = None;
    loop {
        let page = ListParams { limit: Some(PAGE), continue_token: token, ..ListParams::default() };
        let list = in_time(api.list(&page)).await;
        let list = list.map_err(|error| kubernetes_problem(format_args!("listing the states of routes"), &error))?;
        states.extend(list.items.iter().filter_map(|map| State::read(map).ok()));
        token = list.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            return Ok(states);
        }
    }
}
