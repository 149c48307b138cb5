//! What would change at Cloudflare, where nothing may be applied: `portolan plan` and `--dry-run` show it.

use portolan_core::{NameChanges, Plan, Problem};
use portolan_exposure::{Exposure, Footprint, Fresh, Notes, gather_with, plan, withdraw};
use portolan_zerotrust_model::{CloudflareTaskSpec, RouteRef, SecretRef};

use crate::decide::TokenSecret;
use crate::shared::RoutesContext;
use crate::subject::RouteContext;

impl RouteContext {
    /// What is recorded, also by tasks that an older operator left.
    fn stands(&self) -> Footprint {
        let recorded = self.recorded().map(|state| state.footprint.clone()).unwrap_or_default();
        let older = [&self.task, &self.removal].into_iter().flatten().filter(|task| task.is_older());
        older.fold(recorded, |recorded, task| task.taken_over(&recorded))
    }
}

impl RoutesContext {
    /// The changes that the steps of a name would lead to, in their order.
    pub(crate) async fn preview(&self, subject: &RouteContext) -> Result<Plan, Problem> {
        if let Some(problem) = &subject.problem {
            return Err(problem.clone());
        }
        let recorded = subject.stands();
        let mut all = Plan { names: self.names(subject), ..Plan::default() };
        let told = || subject.removal.as_ref().and_then(|task| task.spec.credential_secret_ref.clone());
        let credential = subject.recorded().and_then(|state| self.credential_of(state)).or_else(told);
        if let Some(wanted) = &subject.wanted {
            let account = wanted.spec.account_id.as_deref();
            let moves = recorded.account_id.as_deref().is_some_and(|there| Some(there) != account);
            let here = if moves { Footprint::default() } else { recorded.clone() };
            all.extend(self.preview_wanted(subject, &wanted.spec, &here).await?.changes());
            if moves {
                all.extend(self.preview_removal(subject, &recorded, credential).await?);
            }
        } else {
            all.extend(self.preview_removal(subject, &recorded, credential).await?);
        }
        for leftover in subject.known.iter().flat_map(|known| &known.state.leftovers) {
            all.extend(self.preview_removal(subject, &leftover.footprint, leftover.credential.clone()).await?);
        }
        Ok(all)
    }

    /// The names that were protected so far, and the one that would be published.
    fn names(&self, subject: &RouteContext) -> NameChanges {
        let mut names = NameChanges::default();
        let leftovers = subject.known.iter().flat_map(|known| &known.state.leftovers);
        for footprint in leftovers.map(|leftover| &leftover.footprint).chain([&subject.stands()]) {
            names.protected_before.extend(footprint.protected_names().map(str::to_owned));
        }
        let wanted = subject.wanted.as_ref().and_then(|wanted| wanted.spec.desired(&self.context.owner).ok());
        if let Some(wanted) = wanted {
            let side = if wanted.access.is_some() { &mut names.protected } else { &mut names.open };
            side.insert(wanted.hostname.to_string());
        }
        names
    }

    fn notes(&self, subject: &RouteContext) -> Notes {
        let older = subject.task.as_ref().filter(|task| task.is_older());
        Notes {
            // What an older operator has not collected is lost.
            secret_present: subject.secret == TokenSecret::Whole
                || (subject.secret == TokenSecret::Unwanted && older.is_none()),
            intent: older.and_then(|task| task.unreported()),
            ..Notes::at((self.context.clock)())
        }
    }

    async fn preview_wanted(
        &self,
        subject: &RouteContext,
        spec: &CloudflareTaskSpec,
        recorded: &Footprint,
    ) -> Result<Exposure, Problem> {
        let wanted = spec.desired(&self.context.owner)?;
        let reader = self.credentials.reader(&spec.credential_secret_ref.clone().unwrap_or_default()).await?;
        let notes = self.notes(subject);
        let (mark, intent) = (&wanted.mark, notes.intent.as_ref());
        let live = gather_with(&reader, mark, Some(&wanted), recorded, intent, Fresh::after_now()).await?;
        plan(&wanted, recorded, &live, &notes)
    }

    async fn preview_removal(
        &self,
        subject: &RouteContext,
        recorded: &Footprint,
        credential: Option<SecretRef>,
    ) -> Result<Plan, Problem> {
        let Some(credential) = credential.filter(|_| !recorded.is_empty()) else { return Ok(Plan::default()) };
        let route = &subject.key;
        let namespace = route.namespace.clone().unwrap_or_default();
        let route = Some(RouteRef { name: route.name.clone(), namespace, uid: None });
        let mark =
            CloudflareTaskSpec { httproute_ref: route, ..CloudflareTaskSpec::default() }.mark(&self.context.owner)?;
        let reader = self.credentials.reader(&credential).await?;
        let notes = self.notes(subject);
        let live = gather_with(&reader, &mark, None, recorded, notes.intent.as_ref(), Fresh::after_now()).await?;
        Ok(withdraw(&mark, recorded, &live, &notes)?.changes())
    }
}
