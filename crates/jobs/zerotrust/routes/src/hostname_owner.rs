//! Who has a hostname: the route that it is recorded for, else the oldest that asks for it in the same account.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use portolan_core::{Hostname, ObjectKey, Problem};
use portolan_engine::Handle;
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{Enabled, RouteInput, Selected, reasons, select};

use crate::shared::{Projection, RoutesContext};

/// Names that passes are about to take: two passes at once never both get one.
#[derive(Clone, Default)]
pub(crate) struct Reservations {
    names: Arc<Mutex<HashMap<(String, String), TakenName>>>,
}

/// A name that a pass is about to take.
struct TakenName {
    by: ObjectKey,
    /// Routes that were refused meanwhile, and look again when the pass has ended: it may have taken nothing.
    refused: BTreeSet<ObjectKey>,
}

/// A name that nobody else gets as long as this lives.
pub(crate) struct Reserved {
    reservations: Reservations,
    routes: Handle<Projection>,
    name: (String, String),
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let taken = self.reservations.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        if let Some(taken) = taken.filter(|taken| !taken.refused.is_empty()) {
            self.routes.enqueue_all(&taken.refused);
        }
    }
}

impl RoutesContext {
    /// Takes a hostname for a route; a problem where another route has it.
    pub(crate) fn take_name(
        &self,
        input: &RouteInput,
        hostname: &Hostname,
        selected: &Selected,
    ) -> Result<Reserved, Problem> {
        portolan_core::waypoint!();
        let name = (selected.tenant.spec.account_id.clone(), hostname.to_string());
        let mut names = self.reservations.names.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = names.get_mut(&name).filter(|taken| taken.by != input.key).map(|taken| {
            taken.refused.insert(input.key.clone());
            taken.by.clone()
        });
        if let Some(rival) = taken.or_else(|| self.holder(input, hostname.as_str(), &name.0)) {
            // Who has a name in another namespace is not for this one to know.
            let rival = if rival.namespace == input.key.namespace {
                format!("HTTPRoute {rival}")
            } else {
                "a route of another namespace".to_owned()
            };
            let message = format!(
                "{rival} has {hostname} already; this route takes over when that one goes or takes another name"
            );
            return Err(Problem::waiting(reasons::HOSTNAME_CONFLICT, message));
        }
        names.insert(name.clone(), TakenName { by: input.key.clone(), refused: BTreeSet::new() });
        drop(names);
        Ok(Reserved { reservations: self.reservations.clone(), routes: self.routes.clone(), name })
    }

    /// The route that has a hostname before the given one.
    fn holder(&self, input: &RouteInput, hostname: &str, account: &str) -> Option<ObjectKey> {
        if self.has_published(&input.key, hostname, account) {
            return None;
        }
        // Where both have a task, the older one goes first.
        let own = self.queues(&input.key, hostname, account).then_some((input.created, &input.key));
        let goes_first = |other: &ObjectKey| {
            let created = self.routes.get(other).and_then(|other| other.projection).map(|other| other.created);
            own.is_none_or(|own| created.is_some_and(|created| (created, other) < own))
        };
        let mut others = self.state_index.holders(hostname).into_iter().filter(|other| *other != input.key);
        let holder = others.find(|other| {
            self.has_published(other, hostname, account) || (self.queues(other, hostname, account) && goes_first(other))
        });
        holder.or_else(|| self.elder(input, hostname, account))
    }

    /// Whether a name stands for a route.
    fn has_published(&self, route: &ObjectKey, hostname: &str, account: &str) -> bool {
        self.state_index.state(route).is_some_and(|known| {
            let footprint = &known.state.footprint;
            footprint.hostname.as_deref() == Some(hostname)
                && (footprint.is_published() || footprint.access_app_id.is_some())
                && footprint.account_id.as_deref().is_none_or(|there| there == account)
        })
    }

    /// Whether a task makes the name stand for a route.
    fn queues(&self, route: &ObjectKey, hostname: &str, account: &str) -> bool {
        self.state_index.task(route, TaskAction::Reconcile).is_some_and(|task| {
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
            .filter(|rival| !self.asks_for_too_little(&rival.key))
            .min_by_key(|rival| (rival.created, rival.key.clone()));
        elder.map(|rival| rival.key.clone())
    }

    /// Whether a route does not get the name that it asks for because it asks for less protection than it had: it keeps
    /// nobody from it.
    fn asks_for_too_little(&self, route: &ObjectKey) -> bool {
        let failure = self.statuses.get(route).and_then(|standing| standing.failure);
        failure.is_some_and(|(reason, _)| reason == reasons::PROTECTION_WOULD_BE_LOST)
    }

    fn account_of(&self, route: &RouteInput) -> Option<String> {
        let selected = select(route, self, self.namespace()).ok()?;
        // A route that may not have the name keeps nobody else from it.
        self.may_have(route, &selected).then(|| selected.tenant.spec.account_id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn scenario_30_whoever_was_refused_for_a_pass_under_way_looks_again_when_it_has_ended() {
        let route = |name: &str| ObjectKey { namespace: Some("default".to_owned()), name: name.to_owned() };
        let name = ("account".to_owned(), "shared.example.com".to_owned());
        let (reservations, routes) = (Reservations::default(), Handle::new());
        let refused = BTreeSet::from([route("newer"), route("newest")]);
        reservations.names.lock().unwrap().insert(name.clone(), TakenName { by: route("older"), refused });
        let reserved = Reserved { reservations: reservations.clone(), routes: routes.clone(), name };
        assert_eq!(routes.busy(), 0);

        drop(reserved);

        assert_eq!(routes.busy(), 2);
        assert!(reservations.names.lock().unwrap().is_empty());
    }
}
