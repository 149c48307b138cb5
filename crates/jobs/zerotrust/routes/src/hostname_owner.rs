//! Who has a hostname: the route that it is recorded for, else the oldest that asks for it in the same account.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_core::{Hostname, ObjectKey, Problem};
use portolan_engine::{Claims, Handle, Projected, Seniority};
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{Enabled, RouteInput, Selected, reasons, select};

use crate::shared::{RouteProjection, RoutesContext};

/// Whoever lost a name hears when that may be otherwise; should nobody tell, it has a look this much later.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// Which routes ask for a hostname, and in which account they may have it.
#[derive(Default)]
pub(crate) struct HostnameClaims {
    claims: Claims<String>,
    accounts: Mutex<FoundAccounts>,
}

/// The accounts in which routes may have the names that they ask for. Finding one out takes a selection of templates and
/// merging settings: it is done once, and again when something changed that it rests on.
#[derive(Default)]
struct FoundAccounts {
    /// How often something changed: what was found out meanwhile is not kept.
    changes: u64,
    found: HashMap<ObjectKey, Option<String>>,
}

impl HostnameClaims {
    /// What a route asks for is news. Answers who else asks for what it asks for no longer.
    pub(crate) fn seen(
        &self,
        route: &ObjectKey,
        before: Option<&Projected<RouteProjection>>,
        after: Option<&Projected<RouteProjection>>,
    ) -> Vec<ObjectKey> {
        let mut accounts = self.accounts();
        accounts.changes += 1;
        accounts.found.remove(route);
        drop(accounts);
        let asked = |input: &RouteProjection| {
            let asks = !input.deleting && input.enabled() == Enabled::Yes;
            input.hostname().ok().filter(|_| asks).map(|name| name.to_string())
        };
        self.claims.seen(before, after, asked).map(|released| self.claims.of(&released)).unwrap_or_default()
    }

    /// Tenants or templates changed: who may have a name is found out anew.
    pub(crate) fn doubt(&self) {
        let mut accounts = self.accounts();
        accounts.changes += 1;
        accounts.found.clear();
    }

    /// The routes that ask for a hostname, the oldest first.
    pub(crate) fn of(&self, hostname: &str) -> Vec<ObjectKey> {
        self.claims.of(&hostname.to_owned())
    }

    /// The oldest route that asks for a hostname in an account and is older than the given one. `find` finds out the
    /// account of a route; one about which `stands_back` holds keeps nobody from the name.
    fn elder(
        &self,
        (hostname, account): (&str, &str),
        than: &Seniority,
        find: impl Fn(&ObjectKey) -> Option<String>,
        stands_back: impl Fn(&ObjectKey) -> bool,
    ) -> Option<ObjectKey> {
        let rivals = |route: &ObjectKey| self.account_of(route, &find).as_deref() == Some(account);
        self.claims.elder(&hostname.to_owned(), than, |route| rivals(route) && !stands_back(route))
    }

    fn account_of(&self, route: &ObjectKey, find: impl Fn(&ObjectKey) -> Option<String>) -> Option<String> {
        let accounts = self.accounts();
        if let Some(found) = accounts.found.get(route) {
            return found.clone();
        }
        let changes = accounts.changes;
        drop(accounts);
        let found = find(route);
        let mut accounts = self.accounts();
        if accounts.changes == changes {
            accounts.found.insert(route.clone(), found.clone());
        }
        found
    }

    fn accounts(&self) -> MutexGuard<'_, FoundAccounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    routes: Handle<RouteProjection>,
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
            return Err(Problem::waiting(reasons::HOSTNAME_CONFLICT, message).with_retry_after(LOOK_AGAIN));
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
        let own = Seniority::new(Some(input.created), input.key.clone());
        let account_of = |route: &ObjectKey| self.account_of(self.routes.get(route)?.projection?.as_ref());
        self.claims.elder((hostname, account), &own, account_of, |route| self.asks_for_too_little(route))
    }

    /// Whether a route does not get the name that it asks for because it asks for less protection than it had: it keeps
    /// nobody from it.
    fn asks_for_too_little(&self, route: &ObjectKey) -> bool {
        let failure = self.statuses.about(route).and_then(|standing| standing.failure);
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
    use std::cell::Cell;

    use jiff::Timestamp;
    use portolan_zerotrust_model::HttpRoute;
    use serde_json::json;

    use super::*;

    fn route(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    fn asks(name: &str, second: i64) -> RouteInput {
        let object = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {
                "name": name, "namespace": "default",
                "creationTimestamp": Timestamp::from_second(second).unwrap().to_string(),
                "annotations": {
                    "cfzt.cloudflare.com/enabled": "true", "cfzt.cloudflare.com/hostname": "app.example.com",
                },
            },
            "spec": {},
        });
        RouteInput::read(&serde_json::from_value::<HttpRoute>(object).unwrap())
    }

    impl HostnameClaims {
        fn note(&self, input: &RouteInput) {
            let own = Seniority::new(Some(input.created), input.key.clone());
            self.claims.note(None, Some((input.hostname().unwrap().to_string(), own)));
        }
    }

    /// Routes that all ask for one name, in two accounts by turns, each looking once for its elder; how often it was found
    /// out in which account a route is.
    fn selections_for(size: usize) -> usize {
        let (claims, selections) = (HostnameClaims::default(), Cell::new(0));
        let account = |number: usize| if number.is_multiple_of(2) { "even" } else { "odd" };
        let name = |number: usize| format!("route-{number:05}");
        for number in 0..size {
            let input = asks(&name(number), i64::try_from(number).unwrap());
            claims.note(&input);
        }
        for number in 0..size {
            let input = asks(&name(number), i64::try_from(number).unwrap());
            let find = |other: &ObjectKey| {
                selections.set(selections.get() + 1);
                Some(account(other.name["route-".len()..].parse().unwrap()).to_owned())
            };
            let own = Seniority::new(Some(input.created), input.key.clone());
            let elder = claims.elder(("app.example.com", account(number)), &own, find, |_| false);
            assert_eq!(elder, (number >= 2).then(|| route(&name(number % 2))));
        }
        selections.get()
    }

    #[test]
    fn finding_23_who_has_a_name_is_selected_for_once_however_many_ask() {
        let (small, large) = (selections_for(50), selections_for(500));

        assert!(small <= 50 && large <= 500, "{small} and {large} selections");
    }

    #[test]
    fn who_has_a_name_is_found_out_anew_when_tenants_or_templates_changed() {
        let claims = HostnameClaims::default();
        for (name, second) in [("older", 1), ("newer", 2)] {
            claims.note(&asks(name, second));
        }
        let newer = asks("newer", 2);
        let own = Seniority::new(Some(newer.created), newer.key.clone());
        let elder = |account: Option<&str>| {
            let find = |_: &ObjectKey| account.map(str::to_owned);
            claims.elder(("app.example.com", "a"), &own, find, |_| false)
        };
        assert_eq!(elder(Some("a")), Some(route("older")));
        assert_eq!(elder(None), Some(route("older")), "it was found out already");

        claims.doubt();

        assert_eq!(elder(None), None);
    }

    #[tokio::test]
    async fn scenario_30_whoever_was_refused_for_a_pass_under_way_looks_again_when_it_has_ended() {
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
