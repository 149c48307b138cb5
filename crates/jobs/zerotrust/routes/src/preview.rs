//! What would change at Cloudflare, where nothing may be applied: `portolan plan` and `--dry-run` show it.

use portolan_core::{Plan, Problem};
use portolan_exposure::{Exposure, Footprint, Fresh, Notes, gather, plan, withdraw};
use portolan_zerotrust_model::{CloudflareTaskSpec, RouteRef, SecretRef};

use crate::decide::TokenSecret;
use crate::shared::Shared;
use crate::subject::Subject;

impl Shared {
    /// The changes that the steps of a name would lead to, in their order.
    pub(crate) async fn preview(&self, subject: &Subject) -> Result<Plan, Problem> {
        if let Some(problem) = &subject.problem {
            return Err(problem.clone());
        }
        let recorded = subject.known.as_ref().map(|known| known.state.footprint.clone()).unwrap_or_default();
        let mut all = Plan::default();
        let credential = subject.known.as_ref().and_then(|known| known.state.credential.clone());
        if let Some(wanted) = &subject.wanted {
            let account = wanted.spec.account_id.as_deref();
            let moves = recorded.account_id.as_deref().is_some_and(|there| Some(there) != account);
            let here = if moves { Footprint::default() } else { recorded.clone() };
            all.changes.extend(self.preview_wanted(subject, &wanted.spec, &here).await?.changes().changes);
            if moves {
                all.changes.extend(self.preview_removal(subject, &recorded, credential).await?.changes);
            }
        } else {
            all = self.preview_removal(subject, &recorded, credential).await?;
        }
        for leftover in subject.known.iter().flat_map(|known| &known.state.leftovers) {
            let gone = self.preview_removal(subject, &leftover.footprint, leftover.credential.clone()).await?;
            all.changes.extend(gone.changes);
        }
        Ok(all)
    }

    fn notes(&self, subject: &Subject) -> Notes {
        Notes { secret_present: subject.secret != TokenSecret::Lost, ..Notes::at((self.context.clock)()) }
    }

    async fn preview_wanted(
        &self,
        subject: &Subject,
        spec: &CloudflareTaskSpec,
        recorded: &Footprint,
    ) -> Result<Exposure, Problem> {
        let wanted = spec.desired(&self.context.owner)?;
        let reader = self.credentials.reader(&spec.credential_secret_ref.clone().unwrap_or_default()).await?;
        let live = gather(&reader, &wanted.mark, Some(&wanted), recorded, Fresh::after_now()).await?;
        plan(&wanted, recorded, &live, &self.notes(subject))
    }

    async fn preview_removal(
        &self,
        subject: &Subject,
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
        let live = gather(&reader, &mark, None, recorded, Fresh::after_now()).await?;
        Ok(withdraw(&mark, recorded, &live, &self.notes(subject))?.changes())
    }
}
