//! State `ConfigMap`s and tasks as the route side sees them: by route, and by the hostname that they hold.
//!
//! Both are mirrored from the cluster, and our own writes are seen at once: a pass never decides on what it has changed
//! itself a moment ago.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use portolan_core::ObjectKey;
use portolan_engine::{Cache, Context, Selection, key_of};
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, Former, State};
use prometheus_client::metrics::counter::Counter;

/// A state as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredState {
    /// The `ConfigMap`'s name.
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: Option<String>,
    pub(crate) state: State,
    /// Whether the user says that it is to be forgotten as it is.
    pub(crate) forget: bool,
    /// Whether it holds what no state may hold.
    pub(crate) unclean: bool,
}

impl StoredState {
    /// Reads a `ConfigMap`; none where it is no state.
    pub(crate) fn read(map: &ConfigMap) -> Option<Self> {
        State::route_of(map)?;
        let state = State::read(map)
            .inspect_err(|error| tracing::warn!(%error, "A state is left alone that cannot be read"))
            .ok()?;
        Some(Self {
            name: map.name_any(),
            uid: map.uid().unwrap_or_default(),
            version: map.resource_version(),
            state,
            forget: State::is_forced_to_forget(map),
            unclean: State::needs_scrubbing(map),
        })
    }
}

/// States and tasks.
#[derive(Clone)]
pub(crate) struct StateIndex {
    pub(crate) states: Cache<ConfigMap>,
    pub(crate) tasks: Cache<CloudflareTask>,
    /// Where both are.
    namespace: Arc<str>,
    index: Arc<Mutex<StateMaps>>,
    /// How many states were looked at one by one.
    scanned: Counter,
}

#[derive(Default)]
struct StateMaps {
    /// States by the `ConfigMap`'s name.
    states: HashMap<String, Arc<StoredState>>,
    /// Names of `ConfigMap`s by route.
    state_of: HashMap<ObjectKey, BTreeSet<String>>,
    /// Names of `ConfigMap`s by tenant, as it is recorded.
    of_tenant: HashMap<ObjectKey, BTreeSet<String>>,
    /// Names of tasks by route and action.
    task_of: HashMap<(ObjectKey, Removal), BTreeSet<String>>,
    /// Protected names that their routes let go.
    formers: HashMap<String, Former>,
    /// Routes that a name is recorded for, or is being made to stand for.
    holders: HashMap<String, BTreeMap<ObjectKey, u32>>,
}

/// Whether a task takes a name down.
type Removal = bool;

impl StateMaps {
    fn hold(&mut self, hostname: Option<&str>, route: &ObjectKey) {
        if let Some(hostname) = hostname {
            *self.holders.entry(hostname.to_owned()).or_default().entry(route.clone()).or_default() += 1;
        }
    }

    fn release(&mut self, hostname: Option<&str>, route: &ObjectKey) {
        let Some(hostname) = hostname else { return };
        let Some(routes) = self.holders.get_mut(hostname) else { return };
        if let Some(count) = routes.get_mut(route) {
            *count -= 1;
            if *count == 0 {
                routes.remove(route);
            }
        }
        if routes.is_empty() {
            self.holders.remove(hostname);
        }
    }

    fn state_changed(&mut self, name: &str, after: Option<StoredState>) {
        if let Some(known) = self.states.remove(name) {
            let route = &known.state.route;
            take(&mut self.state_of, route, name);
            known.state.tenant.iter().for_each(|tenant| take(&mut self.of_tenant, tenant, name));
            self.release(known.state.footprint.hostname.as_deref(), route);
        }
        if let Some(known) = after {
            let route = known.state.route.clone();
            self.state_of.entry(route.clone()).or_default().insert(name.to_owned());
            if let Some(tenant) = &known.state.tenant {
                self.of_tenant.entry(tenant.clone()).or_default().insert(name.to_owned());
            }
            self.hold(known.state.footprint.hostname.as_deref(), &route);
            self.states.insert(name.to_owned(), Arc::new(known));
        }
    }

    fn task_changed(&mut self, before: Option<&CloudflareTask>, after: Option<&CloudflareTask>) {
        for (task, is_there) in [(before, false), (after, true)] {
            let Some((task, route)) = task.and_then(|task| Some((task, task.route()?))) else { continue };
            let (removal, name) = (task.spec.action() == TaskAction::Delete, task.name_any());
            let hostname = task.spec.hostname.as_deref().filter(|_| !removal);
            if is_there {
                self.task_of.entry((route.clone(), removal)).or_default().insert(name);
                self.hold(hostname, &route);
            } else {
                take(&mut self.task_of, &(route.clone(), removal), &name);
                self.release(hostname, &route);
            }
        }
    }
}

fn take<K: std::hash::Hash + Eq>(map: &mut HashMap<K, BTreeSet<String>>, key: &K, name: &str) {
    if let Some(names) = map.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            map.remove(key);
        }
    }
}

/// Of what is neither a state nor a former name, nothing matters but that its name is taken.
fn keep_states_whole(map: &mut ConfigMap) {
    if State::route_of(map).is_none() && Former::read(map).is_none() {
        (map.data, map.binary_data, map.metadata.annotations) = (None, None, None);
    }
}

impl StateIndex {
    /// Mirrors of both, in the operator's namespace.
    pub(crate) fn new(context: &Context) -> Self {
        let namespace = context.operator_namespace.as_str();
        let own = || Selection::all().within(namespace);
        let states = Cache::<ConfigMap>::of(own()).trimming(keep_states_whole);
        let tasks = Cache::<CloudflareTask>::of(own());
        let index: Arc<Mutex<StateMaps>> = Arc::default();
        let shared = Arc::clone(&index);
        states.on_change(move |before, after| {
            let Some(map) = after.or(before) else { return };
            let mut index = lock(&shared);
            index.state_changed(&map.name_any(), after.and_then(StoredState::read));
            if let Some(former) = before.and_then(Former::read) {
                index.formers.remove(&former.hostname);
            }
            if let Some(former) = after.and_then(Former::read) {
                index.formers.insert(former.hostname.clone(), former);
            }
        });
        let shared = Arc::clone(&index);
        tasks.on_change(move |before, after| lock(&shared).task_changed(before, after));
        Self { states, tasks, namespace: namespace.into(), index, scanned: context.metrics.scans("ConfigMap") }
    }

    /// The state of a route.
    pub(crate) fn state(&self, route: &ObjectKey) -> Option<Arc<StoredState>> {
        portolan_core::waypoint!();
        let index = self.index();
        let name = index.state_of.get(route)?.first()?;
        index.states.get(name).cloned()
    }

    /// The task that makes a route's name stand, or takes it down.
    pub(crate) fn task(&self, route: &ObjectKey, action: TaskAction) -> Option<Arc<CloudflareTask>> {
        let name = self.index().task_of.get(&(route.clone(), action == TaskAction::Delete))?.first()?.clone();
        self.tasks.get(&ObjectKey::namespaced(&*self.namespace, name))
    }

    /// Routes that have a hostname: it is recorded for them, or a task makes it stand for them.
    pub(crate) fn holders(&self, hostname: &str) -> Vec<ObjectKey> {
        self.index().holders.get(hostname).map(|routes| routes.keys().cloned().collect()).unwrap_or_default()
    }

    /// The route that let a protected name go.
    pub(crate) fn former(&self, hostname: &str) -> Option<Former> {
        self.index().formers.get(hostname).cloned()
    }

    /// Protected names that nobody took for long.
    pub(crate) fn stale(&self, now: jiff::Timestamp) -> Vec<String> {
        let index = self.index();
        index.formers.values().filter(|former| former.is_stale(now)).map(|former| former.hostname.clone()).collect()
    }

    /// Whether something is recorded or under way for a route.
    pub(crate) fn knows(&self, route: &ObjectKey) -> bool {
        let index = self.index();
        let under_way = |removal: Removal| index.task_of.contains_key(&(route.clone(), removal));
        index.state_of.contains_key(route) || under_way(false) || under_way(true)
    }

    /// States that were recorded with a tenant, under the key that was recorded: older operators left its namespace out.
    pub(crate) fn recorded_with(&self, tenant: &ObjectKey) -> Vec<Arc<StoredState>> {
        let index = self.index();
        let names = index.of_tenant.get(tenant).into_iter().flatten();
        self.counted(names.filter_map(|name| index.states.get(name).cloned()).collect())
    }

    /// All states.
    pub(crate) fn all(&self) -> Vec<Arc<StoredState>> {
        self.counted(self.index().states.values().cloned().collect())
    }

    fn counted(&self, states: Vec<Arc<StoredState>>) -> Vec<Arc<StoredState>> {
        self.scanned.inc_by(states.len() as u64);
        states
    }

    /// Routes that something is recorded or under way for.
    pub(crate) fn routes(&self) -> BTreeSet<ObjectKey> {
        let index = self.index();
        index.state_of.keys().cloned().chain(index.task_of.keys().map(|(route, _)| route.clone())).collect()
    }

    fn index(&self) -> MutexGuard<'_, StateMaps> {
        lock(&self.index)
    }
}

fn lock(index: &Mutex<StateMaps>) -> MutexGuard<'_, StateMaps> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of any object.
pub(crate) fn key<K: kube::Resource<DynamicType = ()>>(object: &K) -> ObjectKey {
    key_of(object.meta())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finding_25_of_configmaps_of_others_nothing_is_kept_but_that_their_name_is_taken() {
        let map = |data: serde_json::Value| -> ConfigMap {
            let note = json!({ "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(1 << 20) });
            let meta = json!({ "name": "cfzt-shop-app", "annotations": note });
            let mut map = serde_json::from_value(json!({ "metadata": meta, "data": data })).unwrap();
            keep_states_whole(&mut map);
            map
        };

        let foreign = map(json!({ "blob": "x".repeat(1 << 20) }));
        let state = map(json!({ "httproute_namespace": "shop", "httproute_name": "app" }));

        assert!(serde_json::to_string(&foreign).unwrap().len() < 200);
        assert_eq!(foreign.name_any(), "cfzt-shop-app");
        assert!(state.data.is_some() && state.metadata.annotations.is_some());
    }
}
