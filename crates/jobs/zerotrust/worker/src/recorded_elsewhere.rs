//! Ids that other names have recorded: never taken for a lost one of our own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{Context, Handle, in_time, kubernetes_problem};
use portolan_exposure::{Elsewhere, Footprint};
use portolan_zerotrust_model::{CloudflareTask, State, state};
use tokio::sync::Mutex;

use crate::projection::TaskProjection;

const PAGE: u32 = 500;
/// What begins the names of all states, whoever wrote them.
const STATE_PREFIX: &str = "cfzt-";

/// What the states of all routes have recorded. Those who ask at the same time share a listing.
pub(crate) struct RecordedElsewhere {
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

impl RecordedElsewhere {
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

    /// States are known by their labels. Of the other `ConfigMap`s nothing is read but the names, unless one of them may be
    /// a state that somebody took the labels off.
    async fn read(&self) -> Result<Vec<(ObjectKey, Elsewhere)>, Problem> {
        let mut routes = Vec::new();
        for selector in state::selectors() {
            routes.extend(self.selected(&selector).await?);
        }
        let rest = state::selector_of_others();
        if self.is_any_called_like_a_state(&rest).await? {
            routes.extend(self.selected(&rest).await?);
        }
        Ok(routes)
    }

    async fn is_any_called_like_a_state(&self, selector: &str) -> Result<bool, Problem> {
        let found =
            in_time(self.maps.list_metadata(&ListParams::default().labels(selector))).await.map_err(unlisted)?;
        Ok(found.items.iter().any(|map| map.name_any().starts_with(STATE_PREFIX)))
    }

    async fn selected(&self, selector: &str) -> Result<Vec<(ObjectKey, Elsewhere)>, Problem> {
        let mut routes = Vec::new();
        let mut token = None;
        loop {
            let page = ListParams { limit: Some(PAGE), continue_token: token, ..ListParams::default() };
            let list = in_time(self.maps.list(&page.labels(selector))).await.map_err(unlisted)?;
            let states = list.items.iter().filter_map(|map| State::read(map).ok());
            routes.extend(states.map(|state| (state.route.clone(), recorded(&state))));
            token = list.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(routes);
            }
        }
    }
}

fn unlisted(error: kube::Error) -> Problem {
    kubernetes_problem(format_args!("listing the states of routes"), &error)
}

fn recorded(state: &State) -> Elsewhere {
    let leftovers = state.leftovers.iter().map(|leftover| &leftover.footprint);
    let footprints: Vec<&Footprint> = leftovers.chain([&state.footprint]).collect();
    Elsewhere {
        token_ids: footprints.iter().filter_map(|footprint| footprint.service_token_id.clone()).collect(),
        app_ids: footprints.iter().flat_map(|footprint| footprint.app_ids()).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn state(name: &str, app: &str) -> Value {
        json!({
            "metadata": { "name": name },
            "data": {
                "schema_version": "1", "annotation_hash": "h", "httproute_namespace": "shop", "httproute_name": name,
                "cloudflare_ids": json!({ "accessAppId": app }).to_string(),
            },
        })
    }

    /// A cluster with one state under our label, some `ConfigMap`s of others, and perhaps a state that lost its labels.
    #[derive(Clone, Default)]
    struct Maps {
        foreign: usize,
        unlabelled: Option<Value>,
        /// How many were sent with all that is in them.
        sent_whole: Arc<AtomicU64>,
    }

    impl Maps {
        fn answer(&self, request: &http::Request<Body>) -> Value {
            let query = request.uri().query().unwrap_or_default();
            let asked: String = form_decoded(query);
            let labelled = asked.contains(&format!("labelSelector={}", state::selectors()[0]));
            let others = asked.contains(&format!("labelSelector={}", state::selector_of_others()));
            let unselected = !asked.contains("labelSelector");
            let mut items: Vec<Value> = Vec::new();
            if labelled || unselected {
                items.push(state("cfzt-shop-app", "app-1"));
            }
            if others || unselected {
                let foreign =
                    |number| json!({ "metadata": { "name": format!("other-{number}") }, "data": { "a": "b" } });
                items.extend((0..self.foreign).map(foreign).chain(self.unlabelled.clone()));
            }
            let metadata = request
                .headers()
                .get("accept")
                .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("PartialObjectMetadata")));
            if metadata {
                for one in &mut items {
                    *one = json!({ "metadata": one["metadata"] });
                }
            } else {
                self.sent_whole.fetch_add(items.len() as u64, Ordering::Relaxed);
            }
            let kind = if metadata { "PartialObjectMetadataList" } else { "ConfigMapList" };
            let version = if metadata { "meta.k8s.io/v1" } else { "v1" };
            json!({ "apiVersion": version, "kind": kind, "metadata": { "resourceVersion": "1" }, "items": items })
        }

        fn states(&self) -> RecordedElsewhere {
            let maps = self.clone();
            let service = tower::service_fn(move |request: http::Request<Body>| {
                let answer = http::Response::new(Body::from(maps.answer(&request).to_string().into_bytes()));
                std::future::ready(Ok::<_, tower::BoxError>(answer))
            });
            let maps = Api::namespaced(Client::new(service, "default"), "cloudflare-zero-trust");
            RecordedElsewhere { maps, asked: AtomicU64::default(), listed: Mutex::default() }
        }
    }

    /// A query as it was meant.
    fn form_decoded(query: &str) -> String {
        let pairs = query.split('&').map(|pair| pair.replace('+', " "));
        let escapes = [("%2F", "/"), ("%3D", "="), ("%21", "!"), ("%2C", ","), ("%28", "("), ("%29", ")")];
        pairs.map(|pair| escapes.iter().fold(pair, |text, (escape, plain)| text.replace(escape, plain))).collect()
    }

    async fn apps(states: &RecordedElsewhere) -> Vec<String> {
        let listed = states.list().await.expect("the cluster answers");
        listed.iter().flat_map(|(_, recorded)| recorded.app_ids.iter().cloned()).collect()
    }

    #[tokio::test]
    async fn finding_25_configmaps_of_others_are_not_read_however_many_there_are() {
        for foreign in [10, 1_000] {
            let maps = Maps { foreign, ..Maps::default() };
            let states = maps.states();

            for _ in 0..5 {
                assert_eq!(apps(&states).await, ["app-1"]);
            }

            assert_eq!(maps.sent_whole.load(Ordering::Relaxed), 5, "beside {foreign} of others");
        }
    }

    #[tokio::test]
    async fn a_state_that_lost_its_labels_is_read_by_its_name() {
        let maps = Maps { unlabelled: Some(state("cfzt-shop-old", "app-2")), foreign: 3, ..Maps::default() };

        assert_eq!(apps(&maps.states()).await, ["app-1", "app-2"]);
    }
}
