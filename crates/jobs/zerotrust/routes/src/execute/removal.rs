//! A name is taken down: asked for, recorded, queued, and at the end forgotten.

use portolan_core::{ObjectId, Problem};
use portolan_engine::{Notice, Surroundings, is_ending};
use portolan_exposure::Footprint;
use portolan_zerotrust_model::state::StatePhase;
use portolan_zerotrust_model::task::{DeleteIds, TaskAction};
use portolan_zerotrust_model::{CloudflareTaskSpec, SecretRef, State, TenantRef, reasons};

use super::Executor;
use super::stored::describe;
use crate::zones;

/// Of more names it is not worked out which of them are about to be lost: each is counted when it comes.
const MOST_LOOKED_AT: usize = 1000;

impl Executor<'_> {
    fn asker(&self) -> ObjectId {
        ObjectId::new("HTTPRoute", self.subject.key.clone())
    }

    /// Asks whether so much may be deleted, and records that it will be.
    pub(super) async fn begin_removal(&mut self) -> Result<(), Problem> {
        let mut state = self.state();
        if state.phase == StatePhase::Deleting {
            return Ok(());
        }
        self.ask_for_deletion(&state).await?;
        state.phase = StatePhase::Deleting;
        self.store(&state).await
    }

    /// Asks whether a name may be withdrawn or lose its protection, before a task is made that does it.
    pub(super) async fn ask_to_lose(&mut self) -> Result<(), Problem> {
        self.ask_for_deletion(&self.state()).await
    }

    async fn ask_for_deletion(&mut self, state: &State) -> Result<(), Problem> {
        let (Some(scope), Some(hostname)) = (self.shared.names_of(state), state.footprint.hostname.clone()) else {
            return Ok(());
        };
        let Some(tenant) = self.shared.tenant_key(state) else { return Ok(()) };
        let ending = is_ending(&self.shared.client(), self.subject.key.namespace.as_deref()).await;
        let ending = ending.then(|| self.subject.key.namespace.clone()).flatten();
        let surroundings = || {
            let of_tenant = self.shared.states_of(&tenant).into_iter();
            let of_tenant: Vec<_> = of_tenant.filter(|known| known.state.footprint.hostname.is_some()).collect();
            let looks = of_tenant.len() <= MOST_LOOKED_AT;
            let losing = |state: &State| looks && state.phase != StatePhase::Deleting && self.shared.is_losing(state);
            let going = of_tenant
                .iter()
                .filter(|known| self.is_going(&known.state, ending.as_deref()) || losing(&known.state))
                .filter(|known| known.state.route != self.subject.key);
            Surroundings {
                following: going.filter_map(|known| known.state.footprint.hostname.clone()).collect(),
                total: of_tenant.len(),
            }
        };
        let news = || self.shared.tenant_changed(&tenant);
        self.shared.deletions.ask(self.asker(), &scope, &[hostname], surroundings, news).await
    }

    /// Whether a route is going too and has not been counted yet.
    fn is_going(&self, state: &State, ending: Option<&str>) -> bool {
        if state.phase == StatePhase::Deleting {
            return false;
        }
        let ends = ending.is_some() && state.route.namespace.as_deref() == ending;
        ends || self.shared.is_leaving(&state.route)
    }

    /// Makes the task that takes the name down.
    pub(super) async fn queue_removal(&mut self) -> Result<(), Problem> {
        let state = self.state();
        let footprint = self.located(&state).await?;
        let spec = self.removal_spec(&state, &footprint, state.credential.clone())?;
        self.make_removal(spec, false).await
    }

    /// Makes the task that takes down what an earlier tenant left.
    pub(super) async fn queue_leftover(&mut self) -> Result<(), Problem> {
        let state = self.state();
        let Some(leftover) = state.leftovers.first() else { return Ok(()) };
        let mut spec = self.removal_spec(&state, &leftover.footprint, leftover.credential.clone())?;
        spec.tenant_ref = leftover.tenant.clone().or(spec.tenant_ref);
        self.make_removal(spec, true).await
    }

    /// Gives the removal that waits the credential that is recorded now; what it noted about its attempts stays.
    pub(super) async fn recredit_removal(&mut self) -> Result<(), Problem> {
        let (Some(task), state) = (self.removal.clone(), self.state()) else { return Ok(()) };
        let leftover = crate::route_context::is_leftover(&task);
        let credential_secret_ref = crate::route_context::removal_credential(&state, leftover);
        let spec = CloudflareTaskSpec { credential_secret_ref, ..task.spec.clone() };
        self.removal = Some(self.replace_task(&task, self.removal_task(spec, leftover)).await?);
        self.mark_pending(TaskAction::Delete).await
    }

    async fn make_removal(&mut self, spec: CloudflareTaskSpec, leftover: bool) -> Result<(), Problem> {
        let task = self.removal_task(spec, leftover);
        self.removal = Some(self.make_task(task, TaskAction::Delete).await?);
        self.mark_pending(TaskAction::Delete).await
    }

    fn removal_spec(
        &self,
        state: &State,
        footprint: &Footprint,
        credential: Option<SecretRef>,
    ) -> Result<CloudflareTaskSpec, Problem> {
        let Some(credential) = credential.or_else(|| self.shared.credential_of(state)) else {
            let message = format!(
                "{} cannot be taken down: neither its state nor a tenant says with which API token. Make the tenant again, \
                 or set force-forget on ConfigMap {} to leave everything at Cloudflare",
                footprint.hostname.as_deref().unwrap_or("the name"),
                state.name
            );
            return Err(Problem::waiting(reasons::TENANT_NOT_FOUND, message));
        };
        let mut ids = DeleteIds::from(footprint);
        ids.service_token_secret_name.clone_from(&state.token_secret_name);
        Ok(CloudflareTaskSpec {
            action: Some(TaskAction::Delete),
            httproute_ref: Some(state.route_ref()),
            tenant_ref: self.shared.tenant_key(state).as_ref().map(TenantRef::to),
            credential_secret_ref: Some(credential),
            hostname: footprint.hostname.clone(),
            account_id: footprint.account_id.clone().or_else(|| self.tenant_account(state)),
            tunnel_id: footprint.tunnel_id.clone(),
            zone_id: footprint.zone_id.clone(),
            delete_ids: Some(ids),
            ..CloudflareTaskSpec::default()
        })
    }

    /// What stands, with the name, the tunnel and the zone that the first operators did not record: without them a rule
    /// or a record would stay.
    async fn located(&self, state: &State) -> Result<Footprint, Problem> {
        let mut footprint = state.footprint.clone();
        let asked = self.subject.input.as_ref().and_then(|input| input.hostname().ok());
        footprint.hostname = footprint.hostname.or_else(|| asked.map(|name| name.to_string()));
        let Some(tenant) = self.shared.tenant_of(state) else { return Ok(footprint) };
        if footprint.has_rule {
            footprint.tunnel_id.get_or_insert_with(|| tenant.spec.tunnel_id.clone());
        }
        let hostname = footprint.hostname.as_deref().and_then(|name| portolan_core::Hostname::parse(name).ok());
        let lacks_zone = footprint.zone_id.is_none() && footprint.record_ids().next().is_some();
        let Some(hostname) = hostname.filter(|_| lacks_zone) else { return Ok(footprint) };
        let reader = self.shared.credentials.reader(&tenant.credential()).await?;
        let question = zones::ZoneQuestion { hostname: &hostname, account: &tenant.spec.account_id, only: None };
        footprint.zone_id = zones::look_up(&self.shared.credentials, &reader, &question).await?;
        Ok(footprint)
    }

    /// The account of a state's tenant, for states of older operators that recorded none.
    fn tenant_account(&self, state: &State) -> Option<String> {
        Some(self.shared.tenant_of(state)?.spec.account_id.clone())
    }

    /// A task that may have made things that nobody knows of becomes the one that takes them down: it alone knows since
    /// when to look for them.
    pub(super) async fn convert_task(&mut self) -> Result<(), Problem> {
        let Some(task) = self.task.clone() else { return Ok(()) };
        let mut state = self.state();
        if self.known.is_none() {
            describe(&mut state, &task);
        }
        if self.known.is_some()
            && let Err(problem) = self.begin_removal().await
        {
            // Held, but not to be published meanwhile.
            self.drop_task(TaskAction::Reconcile).await?;
            return Err(problem);
        }
        let footprint = match state.footprint.hostname {
            Some(_) => state.footprint.clone(),
            None => Footprint {
                hostname: task.spec.hostname.clone(),
                account_id: task.spec.account_id.clone(),
                tunnel_id: task.spec.tunnel_id.clone(),
                zone_id: task.spec.zone_id.clone().filter(|zone| !zone.is_empty()),
                ..state.footprint.clone()
            },
        };
        let spec = self.removal_spec(&state, &footprint, state.credential.clone())?;
        let changed = self.replace_task(&task, self.removal_task(spec, false)).await?;
        (self.task, self.removal) = (None, Some(changed));
        self.mark_pending(TaskAction::Delete).await
    }

    /// The name is wanted again. What a removal that was begun has left is all that stands: the rest is made anew.
    pub(super) async fn cancel_removal(&mut self) -> Result<(), Problem> {
        let begun = self.removal.as_ref().filter(|task| !crate::route_context::is_leftover(task));
        let status = begun.and_then(|task| task.status.clone()).unwrap_or_default();
        if self.known.is_some() && (status.attempts.is_some() || status.result.is_some()) {
            let mut state = self.state();
            if let Some(left) = status.result {
                state.footprint = left.footprint();
            }
            state.hash.clear();
            state.phase = StatePhase::Active;
            self.store(&state).await?;
        }
        self.drop_task(TaskAction::Delete).await?;
        self.activate().await
    }

    /// What was to be taken down is gone.
    pub(super) async fn finish_removal(&mut self) -> Result<(), Problem> {
        let mut state = self.state();
        let hostname = state.footprint.hostname.clone().unwrap_or_default();
        if self.known.is_some() && !state.leftovers.is_empty() {
            state.footprint = Footprint::default();
            state.hash.clear();
            self.store(&state).await?;
        } else {
            self.forget().await?;
        }
        self.drop_task(TaskAction::Delete).await?;
        self.notices.push(Notice::normal(reasons::DELETED, format!("{hostname} was taken down")));
        Ok(())
    }

    /// What an earlier tenant left is gone.
    pub(super) async fn finish_leftover(&mut self) -> Result<(), Problem> {
        let mut state = self.state();
        if self.known.is_some() && !state.leftovers.is_empty() {
            state.leftovers.remove(0);
            self.store(&state).await?;
        }
        self.drop_task(TaskAction::Delete).await
    }

    /// Nothing stands any more, or the user says so: Secret and state go.
    pub(super) async fn forget(&mut self) -> Result<(), Problem> {
        if self.known.is_some() {
            self.drop_secret_of_token().await?;
            self.shared.set_cleared(&self.subject.key, true);
            self.drop_state().await?;
        }
        if let Some(scope) = self.shared.deletions.withdraw(&self.asker()) {
            self.shared.deletions.flush(&scope).await?;
        }
        Ok(())
    }
}
