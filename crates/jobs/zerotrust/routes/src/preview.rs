//! What would change at Cloudflare, where nothing may be applied: `portolan plan` and `--dry-run` show it.
//!
//! What stands is read first; what follows from it is planned without asking anybody.

use portolan_core::{Mark, NameChanges, Plan, Problem};
use portolan_exposure::{Desired, Footprint, Fresh, Live, PlanContext, gather_with, plan, withdraw};
use portolan_zerotrust_model::{CloudflareTaskSpec, RouteRef, SecretRef};

use crate::decide::TokenSecret;
use crate::route_context::RouteContext;
use crate::shared::RoutesContext;

/// What stands at Cloudflare for a name, and what shall become of it.
pub(crate) struct Preview {
    names: NameChanges,
    plan_context: PlanContext,
    published: Option<PreviewedName<Box<Desired>>>,
    /// What is taken down, after what is published.
    withdrawn: Vec<PreviewedName<Mark>>,
}

/// One name as it stands in one account, with the wish for it.
struct PreviewedName<W> {
    wish: W,
    recorded: Footprint,
    live: Live,
}

impl Preview {
    /// The changes that the steps of a name would lead to, in their order.
    pub(crate) fn plan(&self) -> Result<Plan, Problem> {
        let mut all = Plan { names: self.names.clone(), ..Plan::default() };
        if let Some(PreviewedName { wish, recorded, live }) = &self.published {
            all.extend(plan(wish, recorded, live, &self.plan_context)?.changes());
        }
        for PreviewedName { wish, recorded, live } in &self.withdrawn {
            all.extend(withdraw(wish, recorded, live, &self.plan_context)?.changes());
        }
        Ok(all)
    }
}

impl RouteContext {
    /// What is recorded, also by tasks that an older operator left.
    fn stands(&self) -> Footprint {
        let recorded = self.recorded().map(|state| state.footprint.clone()).unwrap_or_default();
        let older = [&self.task, &self.removal].into_iter().flatten().filter(|task| task.is_older());
        older.fold(recorded, |recorded, task| task.taken_over(&recorded))
    }
}

impl RoutesContext {
    /// Reads what stands for a name.
    pub(crate) async fn preview(&self, subject: &RouteContext) -> Result<Preview, Problem> {
        if let Some(problem) = &subject.problem {
            return Err(problem.clone());
        }
        let recorded = subject.stands();
        let mut preview = Preview {
            names: self.names(subject),
            plan_context: self.plan_context(subject),
            published: None,
            withdrawn: Vec::new(),
        };
        let told = || subject.removal.as_ref().and_then(|task| task.spec.credential_secret_ref.clone());
        let credential = subject.recorded().and_then(|state| self.credential_of(state)).or_else(told);
        if let Some(wanted) = &subject.wanted {
            let account = wanted.spec.account_id.as_deref();
            let moves = recorded.account_id.as_deref().is_some_and(|there| Some(there) != account);
            let here = if moves { Footprint::default() } else { recorded.clone() };
            preview.published = Some(Box::pin(self.look_at_wanted(&preview.plan_context, &wanted.spec, here)).await?);
            if moves {
                preview.withdrawn.extend(Box::pin(self.look_at_removal(subject, recorded, credential)).await?);
            }
        } else {
            preview.withdrawn.extend(Box::pin(self.look_at_removal(subject, recorded, credential)).await?);
        }
        for leftover in subject.known.iter().flat_map(|known| &known.state.leftovers) {
            let (footprint, credential) = (leftover.footprint.clone(), leftover.credential.clone());
            preview.withdrawn.extend(Box::pin(self.look_at_removal(subject, footprint, credential)).await?);
        }
        Ok(preview)
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

    fn plan_context(&self, subject: &RouteContext) -> PlanContext {
        let older = subject.task.as_ref().filter(|task| task.is_older());
        PlanContext {
            // What an older operator has not collected is lost.
            secret_present: subject.secret == TokenSecret::Whole
                || (subject.secret == TokenSecret::Unwanted && older.is_none()),
            intent: older.and_then(|task| task.unreported()),
            ..PlanContext::at((self.context.clock)())
        }
    }

    async fn look_at_wanted(
        &self,
        plan_context: &PlanContext,
        spec: &CloudflareTaskSpec,
        recorded: Footprint,
    ) -> Result<PreviewedName<Box<Desired>>, Problem> {
        let wish = Box::new(spec.desired(&self.context.owner)?);
        let reader = self.credentials.reader(&spec.credential_secret_ref.clone().unwrap_or_default()).await?;
        let (mark, intent) = (&wish.mark, plan_context.intent.as_ref());
        let live = gather_with(&reader, mark, Some(&wish), &recorded, intent, Fresh::after_now()).await?;
        Ok(PreviewedName { wish, recorded, live })
    }

    /// None where nothing stands, or nothing is known to take it down with.
    async fn look_at_removal(
        &self,
        subject: &RouteContext,
        recorded: Footprint,
        credential: Option<SecretRef>,
    ) -> Result<Option<PreviewedName<Mark>>, Problem> {
        let Some(credential) = credential.filter(|_| !recorded.is_empty()) else { return Ok(None) };
        let route = &subject.key;
        let namespace = route.namespace.clone().unwrap_or_default();
        let route = Some(RouteRef { name: route.name.clone(), namespace, uid: None });
        let wish =
            CloudflareTaskSpec { httproute_ref: route, ..CloudflareTaskSpec::default() }.mark(&self.context.owner)?;
        let reader = self.credentials.reader(&credential).await?;
        let intent = self.plan_context(subject).intent;
        let live = gather_with(&reader, &wish, None, &recorded, intent.as_ref(), Fresh::after_now()).await?;
        Ok(Some(PreviewedName { wish, recorded, live }))
    }
}
