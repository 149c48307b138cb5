//! States and annotations as they are written.

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Resource as _, ResourceExt as _};
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{FIELD_MANAGER, in_time};
use portolan_zerotrust_model::names::{RouteObjectNames, User};
use portolan_zerotrust_model::state::{Leftover, StatePhase};
use portolan_zerotrust_model::{CloudflareTask, Former, State, TenantRef, annotations};
use serde_json::json;

use super::{Executor, is_missing, refused};
use crate::outputs;
use crate::recover::Recovery;
use crate::shared::RoutesContext;
use crate::state_index::{StoredState, key};

impl Executor<'_> {
    /// The state there is, or one for which nothing is recorded yet.
    pub(super) fn state(&self) -> State {
        match &self.known {
            Some(known) => known.state.clone(),
            None => State::new(self.new_state_name(), self.subject.key.clone()),
        }
    }

    fn new_state_name(&self) -> String {
        let user = |name: &str| {
            let place = ObjectKey::namespaced(self.shared.namespace(), name);
            match self.shared.state_index.states.get(&place) {
                None => User::Nobody,
                Some(map) if State::route_of(&map).as_ref() == Some(&self.subject.key) => User::Ours,
                Some(_) => User::Other,
            }
        };
        RouteObjectNames::of_route(&self.subject.key).choose(user).to_owned()
    }

    /// Writes a state: a new one, or over the one that we know.
    pub(super) async fn store(&mut self, state: &State) -> Result<(), Problem> {
        portolan_core::waypoint!();
        self.remember(Some(state)).await?;
        let api = self.shared.state_api();
        let mut map = state.write(self.shared.namespace());
        let doing = format!("writing the state {}", state.name);
        let written = match &self.known {
            None => {
                let made = in_time(api.create(&PostParams::default(), &map)).await;
                match made {
                    Err(error) if is_missing(&error) => {
                        self.make_namespace().await;
                        in_time(api.create(&PostParams::default(), &map)).await
                    }
                    made => made,
                }
            }
            Some(known) => {
                map.metadata.resource_version.clone_from(&known.version);
                map.metadata.uid = Some(known.uid.clone());
                if known.forget {
                    let forget = (annotations::name("force-forget"), "true".to_owned());
                    map.metadata.annotations.get_or_insert_default().extend([forget]);
                }
                in_time(api.replace(&state.name, &PostParams::default(), &map)).await
            }
        };
        let written = written.map_err(|error| refused(&doing, &error))?;
        self.known = StoredState::read(&written).map(Into::into);
        self.shared.set_cleared(&self.subject.key, false);
        self.shared.state_index.states.wrote(written);
        let taken = state.footprint.hostname.as_deref().filter(|name| state.keeps(name));
        match taken.and_then(|name| self.shared.state_index.former(name)) {
            Some(former) => self.shared.forget_former(&former.hostname).await,
            None => Ok(()),
        }
    }

    /// Protected names that the route lets go are remembered before nothing else tells of them.
    async fn remember(&self, after: Option<&State>) -> Result<(), Problem> {
        let Some(known) = &self.known else { return Ok(()) };
        let let_go = |name: &&str| !after.is_some_and(|state| state.keeps(name));
        for hostname in known.state.guarded().into_iter().filter(let_go) {
            let former =
                Former { hostname: hostname.to_owned(), route: self.subject.key.clone(), let_go_at: self.now() };
            let map = former.write(self.shared.namespace());
            let parameters = PatchParams::apply(FIELD_MANAGER).force();
            let name = Former::map_name(hostname);
            let written =
                in_time(self.shared.state_api().patch(&name, &parameters, &Patch::Apply(&applied(&map)))).await;
            let written =
                written.map_err(|error| refused(&format!("remembering that {hostname} was protected"), &error))?;
            self.shared.state_index.states.wrote(written);
        }
        Ok(())
    }

    /// The operator's own namespace may be missing where it runs outside of the cluster.
    pub(super) async fn make_namespace(&self) {
        let metadata = ObjectMeta { name: Some(self.shared.namespace().to_owned()), ..ObjectMeta::default() };
        let namespace = k8s_openapi::api::core::v1::Namespace { metadata, ..Default::default() };
        let api = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(self.shared.client());
        if let Err(error) = in_time(api.create(&PostParams::default(), &namespace)).await {
            tracing::debug!(%error, "The operator's namespace could not be made");
        }
    }

    /// Writes a state of an older operator in our form, which holds no secret.
    pub(super) async fn scrub(&mut self) -> Result<(), Problem> {
        let state = self.state();
        tracing::info!(state = state.name, "Took secrets out of a state that an older operator left");
        self.store(&state).await
    }

    /// Records which templates took part, where an earlier version did not.
    pub(super) async fn note_templates(&mut self) -> Result<(), Problem> {
        let state = State { templates: Some(self.subject.templates.clone()), ..self.state() };
        self.store(&state).await
    }

    /// Records what is proven to be ours, though its state was lost.
    pub(super) async fn record_recovered(&mut self) -> Result<(), Problem> {
        let Recovery::Found(found) = &self.subject.recovery else { return Ok(()) };
        let state = State { name: self.new_state_name(), ..(**found).clone() };
        tracing::info!(route = %self.subject.key, state = state.name, "Rebuilt a state that was lost");
        self.store(&state).await
    }

    /// What stands in another account waits there until the new one stands.
    pub(super) async fn set_aside(&mut self) -> Result<(), Problem> {
        let mut state = self.state();
        let footprint = std::mem::take(&mut state.footprint);
        let tenant = state.tenant.as_ref().map(TenantRef::to);
        let credential = self.shared.credential_of(&state);
        state.leftovers.push(Leftover { footprint, credential, tenant });
        state.hash.clear();
        self.store(&state).await
    }

    /// The name returns to an account in which something of it still stands.
    pub(super) async fn take_back(&mut self) -> Result<(), Problem> {
        let account = self.subject.wanted.as_ref().and_then(|wanted| wanted.spec.account_id.clone());
        let mut state = self.state();
        let Some(place) = state.leftovers.iter().position(|leftover| leftover.footprint.account_id == account) else {
            return Ok(());
        };
        let leftover = state.leftovers.remove(place);
        state.footprint = leftover.footprint;
        state.credential = leftover.credential.or(state.credential);
        state.hash.clear();
        if let Some(removal) = self.removal.clone() {
            self.delete_task(&removal).await?;
            self.removal = None;
        }
        self.store(&state).await
    }

    /// Records what a task knows, though it is not done or nobody wants it any more.
    pub(super) async fn harvest(&mut self) -> Result<(), Problem> {
        let Some(task) = self.task.clone() else { return Ok(()) };
        let result = task.status.as_ref().and_then(|status| status.result.clone()).unwrap_or_default();
        let mut state = self.state();
        describe(&mut state, &task);
        state.joined_by(task.templates());
        state.stands(result.footprint(), &self.now());
        if state.footprint.service_token_id.is_some() {
            state
                .token_secret_name
                .get_or_insert_with(|| portolan_zerotrust_model::names::token_secret(&self.subject.key));
        }
        // What was executed in part is not what the hash stands for.
        state.hash.clear();
        self.store(&state).await
    }

    /// The state goes.
    pub(super) async fn drop_state(&mut self) -> Result<(), Problem> {
        self.remember(None).await?;
        let Some(known) = self.known.take() else { return Ok(()) };
        let preconditions = Preconditions { uid: Some(known.uid.clone()), resource_version: known.version.clone() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match in_time(self.shared.state_api().delete(&known.name, &parameters)).await {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(refused(&format!("deleting the state {}", known.name), &error)),
        }
        let place = ObjectKey::namespaced(self.shared.namespace(), known.name.clone());
        self.shared.state_index.states.deleted(&place, &known.uid);
        Ok(())
    }

    /// Makes the annotations on the route what the state says now.
    pub(super) async fn write_outputs_of(&self, state: &State) -> Result<(), Problem> {
        let Some(route) = self.living_route() else { return Ok(()) };
        match outputs::difference(route.annotations(), &outputs::wanted(Some(state), None)) {
            Some(changes) => self.annotate(changes).await,
            None => Ok(()),
        }
    }

    /// Says on the route what stops it.
    pub(crate) async fn write_trouble(&mut self, problem: &Problem) -> Result<(), Problem> {
        let Some(route) = self.living_route() else { return Ok(()) };
        let known = self.known.as_ref().map(|known| &known.state);
        let mut wanted = outputs::wanted(known, Some(&outputs::Trouble::of(problem)));
        if self.subject.recovery.keeps_annotations() {
            wanted.extend(crate::recover::ids(route.annotations()));
        }
        match outputs::difference(route.annotations(), &wanted) {
            Some(changes) => self.annotate(changes).await,
            None => Ok(()),
        }
    }

    /// Makes the annotations on the route what they should be.
    pub(super) async fn write_outputs(&mut self) -> Result<(), Problem> {
        match self.plan.outputs.clone() {
            Some(changes) => self.annotate(changes).await,
            None => Ok(()),
        }
    }

    async fn annotate(&self, changes: serde_json::Map<String, serde_json::Value>) -> Result<(), Problem> {
        let route = &self.subject.key;
        let patch = json!({"metadata": {"annotations": changes}});
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match in_time(self.shared.route_api(route).patch(&route.name, &parameters, &Patch::Merge(patch))).await {
            Ok(_) => Ok(()),
            // A route that went meanwhile is seen by its next pass.
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(&format!("writing the annotations of HTTPRoute {route}"), &error)),
        }
    }

    /// A state that was marked as going stays after all.
    pub(super) async fn activate(&mut self) -> Result<(), Problem> {
        let mut state = self.state();
        if self.known.is_none() || state.phase == StatePhase::Active {
            return Ok(());
        }
        state.phase = StatePhase::Active;
        self.store(&state).await
    }
}

/// A `ConfigMap` as it is applied.
fn applied(map: &ConfigMap) -> serde_json::Value {
    let mut applied = json!(map);
    applied["apiVersion"] = json!(ConfigMap::API_VERSION);
    applied["kind"] = json!(ConfigMap::KIND);
    applied
}

impl RoutesContext {
    /// That a name was protected need not be remembered any more.
    pub(crate) async fn forget_former(&self, hostname: &str) -> Result<(), Problem> {
        let name = Former::map_name(hostname);
        let place = ObjectKey::namespaced(self.namespace(), name.clone());
        match in_time(self.state_api().delete(&name, &DeleteParams::default())).await {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(refused(&format!("deleting ConfigMap {name}"), &error)),
        }
        if let Some(uid) = self.state_index.states.get(&place).and_then(|map| map.uid()) {
            self.state_index.states.deleted(&place, &uid);
        }
        Ok(())
    }
}

/// What a task says about where its result belongs.
pub(super) fn describe(state: &mut State, task: &CloudflareTask) {
    let spec = &task.spec;
    state.uid = spec.httproute_ref.as_ref().and_then(|route| route.uid.clone()).or(state.uid.take());
    state.tenant = spec.tenant_ref.as_ref().map(TenantRef::key).or(state.tenant.take());
    state.credential = spec.credential_secret_ref.clone().or(state.credential.take());
    let operations = spec.operations.as_ref();
    let dns_only = operations.and_then(|all| all.dns_record.as_ref()?.enabled).unwrap_or(false);
    state.mode = if dns_only {
        portolan_zerotrust_model::state::PublishMode::DnsOnly
    } else {
        portolan_zerotrust_model::state::PublishMode::Tunnel
    };
    state.origin_service = operations.and_then(|all| all.tunnel_route.as_ref()?.origin_service.clone());
}

/// Name and uid of a task, as deletions need them.
pub(super) fn identity(task: &CloudflareTask) -> (ObjectKey, String) {
    (key(task), task.meta().uid.clone().unwrap_or_default())
}
