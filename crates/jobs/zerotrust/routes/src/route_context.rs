//! One route's name with everything that a decision about it rests on, read from the caches and, where needed, from
//! Kubernetes and Cloudflare.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use kube::ResourceExt as _;
use portolan_cloudflare_api::Reader;
use portolan_core::{Hostname, ObjectKey, Problem};
use portolan_engine::{Levels, in_time};
use portolan_zerotrust_model::settings::ACCESS;
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{
    AddressSource, CloudflareTask, Enabled, HttpRoute, NO_TEMPLATE, RouteInput, RouteWish, SecretRef, Selected,
    Settings, State, WantedRoute, annotations, names, reasons, select, select_tenant, settings, still_there, target,
};

use crate::decide::TokenSecret;
use crate::hostname_owner::Reserved;
use crate::locks::NameTurn;
use crate::losses;
use crate::preview::Preview;
use crate::reasons::TaskFailure;
use crate::recover::Recovery;
use crate::shared::RoutesContext;
use crate::state_index::StoredState;
use crate::token::{self, FoundSecret};
use crate::zones;

/// Marks a task that takes down what an earlier tenant left.
pub(crate) const LEFTOVER: &str = "leftover";

/// A route's name and everything around it.
pub(crate) struct RouteContext {
    pub(crate) key: ObjectKey,
    /// The route, where there is one.
    pub(crate) route: Option<HttpRoute>,
    pub(crate) input: Option<RouteInput>,
    /// What is to stand, where that can be told.
    pub(crate) wanted: Option<WantedRoute>,
    pub(crate) known: Option<Arc<StoredState>>,
    pub(crate) task: Option<Arc<CloudflareTask>>,
    pub(crate) removal: Option<Arc<CloudflareTask>>,
    pub(crate) secret: TokenSecret,
    /// Why it cannot be told what is to stand.
    pub(crate) problem: Option<Problem>,
    /// Why the last step could not be done.
    pub(crate) stuck: Option<Problem>,
    pub(crate) tenant: Option<ObjectKey>,
    pub(crate) templates: BTreeSet<ObjectKey>,
    /// What is proven of things that only the route's annotations name.
    pub(crate) recovery: Recovery,
    /// Keeps others from the hostname until this pass has ended.
    pub(crate) reserved: Option<Reserved>,
    /// Whether something at Cloudflare is not as it was left.
    pub(crate) drifted: bool,
    /// Reason and message of what was told last to be wrong with it.
    pub(crate) told: Option<(&'static str, String)>,
    /// What stands at Cloudflare, where nothing may be applied but is to be shown.
    pub(crate) preview: Option<Preview>,
    _turn: NameTurn,
}

impl RouteContext {
    /// Whether the name is to be taken down.
    pub(crate) fn is_leaving(&self) -> bool {
        match &self.input {
            None => true,
            Some(input) => input.deleting || input.enabled() == Enabled::No,
        }
    }

    /// What is recorded, or is proven and about to be.
    pub(crate) fn recorded(&self) -> Option<&State> {
        match (&self.known, &self.recovery) {
            (Some(known), _) => Some(&known.state),
            (None, Recovery::Found(state)) => Some(state),
            (None, _) => None,
        }
    }

    /// Whether nothing is recorded or under way.
    pub(crate) fn is_clean(&self) -> bool {
        self.known.is_none() && self.task.is_none() && self.removal.is_none()
    }

    /// Why a name that was published has no record.
    pub(crate) fn without_record(&self) -> Option<(&'static str, String)> {
        let wanted = self.wanted.as_ref().filter(|_| self.task.is_none() && self.known.is_some())?;
        if given(wanted.spec.zone_id.as_ref()).is_some() {
            return None;
        }
        let hostname = wanted.spec.hostname.as_deref().unwrap_or_default();
        let message = format!(
            "no zone of the account holds {hostname}: it has a rule, but no record leads to it. Add the zone to the account, or \
             let the API token see it"
        );
        Some((reasons::DNS_SKIPPED, message))
    }

    /// Whether another route has the name that a task of this one tries to get.
    pub(crate) fn lost(&self) -> bool {
        let lost = self.problem.as_ref().is_some_and(|problem| problem.reason == reasons::HOSTNAME_CONFLICT);
        let wanted = self.input.as_ref().and_then(|input| input.hostname().ok()).map(|name| name.to_string());
        lost && self.task.as_ref().is_some_and(|task| task.spec.hostname == wanted)
    }

    /// Whether what is wanted takes something from the name that stands.
    pub(crate) fn loses(&self) -> bool {
        match (&self.wanted, &self.known) {
            (Some(wanted), Some(known)) => losses::loses(&known.state.footprint, &wanted.spec),
            _ => false,
        }
    }

    /// What the task says that failed, or that waits until Cloudflare answers again.
    pub(crate) fn failure(&self) -> Option<TaskFailure> {
        [&self.task, &self.removal].into_iter().flatten().find_map(|task| TaskFailure::of(task))
    }

    /// The templates that took part in what stands, or in what a task is about to make.
    fn took_part(&self) -> BTreeSet<ObjectKey> {
        let recorded = self.known.as_ref().and_then(|known| known.state.templates.clone());
        let queued = self.task.as_ref().and_then(|task| task.templates());
        recorded.into_iter().chain(queued).flatten().collect()
    }

    /// A problem where protection that stands would go though nobody says so, and which templates had asked for it was not
    /// recorded: one of them may be gone.
    fn nobody_was_forgotten(
        &self,
        input: &RouteInput,
        settings: &Settings,
        wanted: &WantedRoute,
    ) -> Result<(), Problem> {
        let untold = self.known.as_ref().is_some_and(|known| known.state.templates.is_none());
        let declined = input.input("template") == Some(NO_TEMPLATE);
        let said = settings.field(&ACCESS).layer.is_user() || declined;
        let Some(hostname) = open_again(self.known.as_deref(), wanted).filter(|_| untold && !said) else {
            return Ok(());
        };
        let message = format!(
            "{hostname} is protected by Access, nobody asks for that any more, and which templates did was not recorded: \
             what stands stays as it is. Make the template again that is missing, or set the annotation {}: \"false\" to \
             make the name public",
            annotations::name(ACCESS.name)
        );
        Err(Problem::waiting(reasons::TEMPLATE_NOT_FOUND, message))
    }

    /// The name that stands protected and is wanted open: its users say so, and it is no small thing.
    pub(crate) fn exposes(&self) -> Option<&str> {
        open_again(self.known.as_deref(), self.wanted.as_ref()?)
    }

    /// The zone that was found last, and the hash of what it was found for: by the task that is under way, else by what
    /// is recorded.
    fn last_zone(&self) -> Option<(Option<&str>, &str)> {
        match &self.task {
            Some(task) => Some((given(task.spec.zone_id.as_ref()), task.hash()?)),
            None => self
                .known
                .as_ref()
                .map(|known| (given(known.state.footprint.zone_id.as_ref()), known.state.hash.as_str())),
        }
    }
}

impl RoutesContext {
    /// Looks at a route's name; the route is given as it was seen, or is gone.
    pub(crate) async fn gather_context(
        &self,
        key: &ObjectKey,
        route: Option<&HttpRoute>,
    ) -> Result<RouteContext, Problem> {
        portolan_core::waypoint!();
        let turn = self.locks.turn(key).await;
        let mut subject = RouteContext {
            key: key.clone(),
            input: route.map(RouteInput::read),
            route: route.cloned(),
            wanted: None,
            known: self.state_index.state(key),
            task: self.state_index.task(key, TaskAction::Reconcile),
            removal: self.state_index.task(key, TaskAction::Delete),
            secret: TokenSecret::Unwanted,
            problem: None,
            stuck: self.stuck(key),
            tenant: None,
            templates: BTreeSet::new(),
            recovery: Recovery::Needless,
            reserved: None,
            drifted: self.is_drifted(key),
            told: self.statuses.about(key).and_then(|standing| standing.failure),
            preview: None,
            _turn: turn,
        };
        Box::pin(self.find_wish(&mut subject)).await;
        Box::pin(self.find_lost(&mut subject)).await;
        // It may have changed while others were asked.
        subject.drifted = self.is_drifted(key);
        Ok(subject)
    }

    /// What the route asks for. A problem leaves it open.
    async fn find_wish(&self, subject: &mut RouteContext) {
        let Some(input) = subject.input.clone().filter(|input| !input.deleting) else { return };
        match input.enabled() {
            Enabled::No => {}
            Enabled::Unclear(_) | Enabled::Misspelt(_) => subject.problem = input.unclear(),
            Enabled::Yes => match self.wanted_of(&input, subject).await {
                Ok(wanted) => subject.wanted = Some(wanted),
                Err(problem) => subject.problem = Some(problem),
            },
        }
    }

    /// A state may be lost: what the route's annotations name is looked for before anything else happens.
    async fn find_lost(&self, subject: &mut RouteContext) {
        match self.recover(subject).await {
            Ok(recovery) => subject.recovery = recovery,
            Err(problem) => {
                subject.recovery = Recovery::Unknown;
                subject.wanted = None;
                let message = format!(
                    "nothing is recorded for the route, and what its annotations name could not be looked for: {}. If nothing \
                     stands at Cloudflare, take the annotations with ids off the route",
                    problem.message
                );
                subject.problem.get_or_insert(Problem { message, ..problem });
            }
        }
    }

    async fn wanted_of(&self, input: &RouteInput, subject: &mut RouteContext) -> Result<WantedRoute, Problem> {
        // Whatever else is wrong: what is said about it is about the tenant's work.
        let recorded = || subject.known.as_ref().and_then(|known| known.state.tenant.clone());
        subject.tenant = select_tenant(input, self, self.namespace()).ok().map(|tenant| tenant.key()).or_else(recorded);
        if let Some(tenant) = &subject.tenant {
            Levels::mark(tenant);
        }
        input.hostname()?;
        let selected = select(input, self, self.namespace())?;
        subject.tenant = Some(selected.tenant.key());
        Levels::mark(&selected.tenant.key());
        subject.templates = selected.templates();
        still_there(input, &selected, &subject.took_part(), self, self.namespace())?;
        let settings = settings(input, &selected)?;
        let wish = RouteWish::of(input, &selected, &settings)?;
        let hostname = &wish.hostname;
        tracing::debug!(%hostname, settings = %settings.lines().join("; "), "Merged the settings");
        self.permit(input, hostname, &selected, &settings).await?;
        let ip = self.target(&settings, subject).await?;
        subject.reserved = Some(self.take_name(input, hostname, &selected)?);
        let wanted = self.with_zone(&wish, ip, subject).await?;
        subject.nobody_was_forgotten(input, &settings, &wanted)?;
        if let Some(former) = self.state_index.former(hostname.as_str()).filter(|_| wanted.is_open()) {
            former.may_open(input, &settings, self.namespace())?;
        }
        if asks_for_token(&wanted) {
            subject.secret = self.token_secret(subject).await?;
        }
        Ok(wanted)
    }

    /// The address of a name without a tunnel.
    async fn target(&self, settings: &Settings, subject: &RouteContext) -> Result<Option<Ipv4Addr>, Problem> {
        match settings.target()? {
            AddressSource::None => Ok(None),
            AddressSource::Static(ip) => Ok(Some(ip)),
            AddressSource::Service(key) => {
                // Noted before it is read: whatever becomes of it afterwards lets the route run again.
                self.service_users.note(&subject.key, &key);
                target::of_service(&key, self.service(&key).await?.as_ref()).map(Some)
            }
        }
    }

    /// What is to stand. Where nothing but the zone is open and what is recorded fits, nobody has to be asked.
    async fn with_zone(
        &self,
        wish: &RouteWish<'_>,
        ip: Option<Ipv4Addr>,
        subject: &RouteContext,
    ) -> Result<WantedRoute, Problem> {
        if let Some((zone, hash)) = subject.last_zone().filter(|_| !self.is_drifted(&subject.key))
            && let Some(wanted) = wish.placed(zone, ip).ok().filter(|wanted| wanted.hash == hash)
        {
            return Ok(wanted);
        }
        let reader = self.credentials.reader(&wish.selected.tenant.credential()).await?;
        let zone = self.zone(&reader, &wish.hostname, wish.selected).await?;
        wish.placed(zone.as_deref(), ip)
    }

    async fn zone(&self, reader: &Reader, hostname: &Hostname, selected: &Selected) -> Result<Option<String>, Problem> {
        let spec = &selected.tenant.spec;
        let only = spec.zone_id.as_deref().filter(|id| !id.is_empty());
        zones::look_up(&self.credentials, reader, &zones::ZoneQuestion { hostname, account: &spec.account_id, only })
            .await
    }

    /// The Secret for the token's credentials; one that is somebody else's is in the way.
    async fn token_secret(&self, subject: &RouteContext) -> Result<TokenSecret, Problem> {
        let state = subject.known.as_ref().map(|known| &known.state);
        let recorded = state.and_then(|state| state.token_secret_name.as_deref());
        let name = recorded.map_or_else(|| names::token_secret(&subject.key), str::to_owned);
        let found = in_time(self.secret_api(subject.key.namespace.as_deref()).get_opt(&name)).await;
        let found = found
            .map_err(|error| portolan_engine::kubernetes_problem(format_args!("reading Secret {name}"), &error))?;
        let client_id = state.and_then(|state| state.footprint.service_token_client_id.as_deref());
        match token::judge(found.as_ref(), recorded.is_some(), client_id) {
            FoundSecret::Whole => Ok(TokenSecret::Whole),
            // Before the first token there is nothing to lose.
            FoundSecret::Missing | FoundSecret::Edited
                if state.is_none_or(|state| state.footprint.service_token_id.is_none()) =>
            {
                Ok(TokenSecret::Unwanted)
            }
            FoundSecret::Missing | FoundSecret::Edited => Ok(TokenSecret::Lost),
            FoundSecret::Foreign => Err(token::conflict(&name)),
        }
    }
}

/// The name that is recorded as protected and is wanted open.
fn open_again<'a>(known: Option<&StoredState>, wanted: &'a WantedRoute) -> Option<&'a str> {
    let (stands, name) = (&known?.state.footprint, wanted.spec.hostname.as_deref()?);
    let same = stands.hostname.as_deref().is_none_or(|there| there == name);
    (wanted.is_open() && same && stands.access_app_id.is_some()).then_some(name)
}

fn given(id: Option<&String>) -> Option<&str> {
    id.map(String::as_str).filter(|id| !id.is_empty())
}

fn asks_for_token(wanted: &WantedRoute) -> bool {
    wanted.spec.operations.as_ref().and_then(|all| all.service_token.as_ref()?.enabled).unwrap_or(false)
}

/// Whether a task takes down what an earlier tenant left.
pub(crate) fn is_leftover(task: &CloudflareTask) -> bool {
    task.annotations().contains_key(&annotations::name(LEFTOVER))
}

/// The credential that a removal is to use, where one is recorded.
pub(crate) fn removal_credential(state: &State, leftover: bool) -> Option<SecretRef> {
    if leftover { state.leftovers.first()?.credential.clone() } else { state.credential.clone() }
}
