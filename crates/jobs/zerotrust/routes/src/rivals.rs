//! Who has a hostname: the route that it is recorded for, else the oldest that asks for it in the same account.

use portolan_core::{Hostname, ObjectKey, Problem};
use portolan_zerotrust_model::task::Action;
use portolan_zerotrust_model::{Enabled, RouteInput, Selected, reasons, select};

use crate::shared::Shared;

impl Shared {
    /// A problem where another route has the hostname.
    pub(crate) fn refuse_rivals(
        &self,
        input: &RouteInput,
        hostname: &Hostname,
        selected: &Selected,
    ) -> Result<(), Problem> {
        let account = &selected.tenant.spec.account_id;
        match self.holder(input, hostname.as_str(), account) {
            None => Ok(()),
            Some(rival) => Err(Problem::waiting(
                reasons::HOSTNAME_CONFLICT,
                format!(
                    "HTTPRoute {rival} has {hostname} already; this route takes over when that one goes or takes another name"
                ),
            )),
        }
    }

    /// The route that has a hostname before the given one.
    fn holder(&self, input: &RouteInput, hostname: &str, account: &str) -> Option<ObjectKey> {
        if self.records(&input.key, hostname, account) {
            return None;
        }
        let others = self.records.holders(hostname).into_iter().filter(|other| *other != input.key);
        let holder = others
            .into_iter()
            .find(|other| self.records(other, hostname, account) || self.queues(other, hostname, account));
        holder.or_else(|| self.elder(input, hostname, account))
    }

    /// Whether a name is recorded for a route.
    fn records(&self, route: &ObjectKey, hostname: &str, account: &str) -> bool {
        self.records.state(route).is_some_and(|known| {
            let footprint = &known.state.footprint;
            footprint.hostname.as_deref() == Some(hostname)
                && footprint.account_id.as_deref().is_none_or(|there| there == account)
        })
    }

    /// Whether a task makes the name stand for a route.
    fn queues(&self, route: &ObjectKey, hostname: &str, account: &str) -> bool {
        self.records.task(route, Action::Reconcile).is_some_and(|task| {
            task.spec.hostname.as_deref() == Some(hostname) && task.spec.account_id.as_deref() == Some(account)
        })
    }

    /// An older route that asks for the same.
    fn elder(&self, input: &RouteInput, hostname: &str, account: &str) -> Option<ObjectKey> {
        let own = (input.created, &input.key);
        let claims = self.claims.of(hostname).into_iter().filter(|other| *other != input.key);
        let rivals = claims.filter_map(|other| self.routes.get(&other)?.projection);
        let elder = rivals
            .filter(|rival| !rival.deleting && rival.enabled() == Enabled::Yes && (rival.created, &rival.key) < own)
            .filter(|rival| self.account_of(rival).as_deref() == Some(account))
            .min_by_key(|rival| (rival.created, rival.key.clone()));
        elder.map(|rival| rival.key.clone())
    }

    fn account_of(&self, route: &RouteInput) -> Option<String> {
        select(route, self, self.namespace()).ok().map(|selected| selected.tenant.spec.account_id.clone())
    }
}
