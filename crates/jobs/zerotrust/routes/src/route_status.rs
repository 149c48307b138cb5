//! How each route stands, for the statuses of tenants and templates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portolan_core::ObjectKey;

/// How a route stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteStatus {
    /// The tenant that it is published with.
    pub(crate) tenant: Option<ObjectKey>,
    /// The templates that its settings come from.
    pub(crate) templates: BTreeSet<ObjectKey>,
    /// Reason and message of what is wrong.
    pub(crate) failure: Option<(&'static str, String)>,
    /// Whether that is the rate limit, which all routes of its tenant wait for.
    pub(crate) limited: bool,
    /// Whether it stands as asked; a route that is at work is neither that nor failed.
    pub(crate) settled: bool,
    /// Whether its name has no record because no zone holds it.
    pub(crate) without_zone: bool,
}

/// Tenants and templates whose status may say something else now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) tenants: BTreeSet<ObjectKey>,
    pub(crate) templates: BTreeSet<ObjectKey>,
}

/// All routes that ask for something.
#[derive(Default)]
pub(crate) struct RouteStatuses {
    routes: Mutex<BTreeMap<ObjectKey, RouteStatus>>,
}

impl RouteStatuses {
    /// Notes how a route stands; answers who should hear of it.
    pub(crate) fn set(&self, route: &ObjectKey, standing: Option<RouteStatus>) -> Touched {
        let mut routes = self.routes();
        let before = routes.get(route);
        if before == standing.as_ref() {
            return Touched::default();
        }
        let concerned = [before, standing.as_ref()];
        let mut touched = Touched::default();
        for one in concerned.into_iter().flatten() {
            touched.tenants.extend(one.tenant.clone());
        }
        let of = |standing: Option<&RouteStatus>| standing.map(|one| one.templates.clone()).unwrap_or_default();
        let (was, is) = (of(before), of(standing.as_ref()));
        touched.templates = was.symmetric_difference(&is).cloned().collect();
        match standing {
            Some(standing) => routes.insert(route.clone(), standing),
            None => routes.remove(route),
        };
        touched
    }

    /// How one route stands.
    pub(crate) fn get(&self, route: &ObjectKey) -> Option<RouteStatus> {
        self.routes().get(route).cloned()
    }

    /// The routes for which something holds.
    pub(crate) fn routes_where(&self, holds: impl Fn(&RouteStatus) -> bool) -> Vec<(ObjectKey, RouteStatus)> {
        let routes = self.routes();
        routes.iter().filter(|(_, one)| holds(one)).map(|(key, one)| (key.clone(), one.clone())).collect()
    }

    /// Looks at all routes.
    pub(crate) fn each(&self, look: impl FnMut(&RouteStatus)) {
        self.routes().values().for_each(look);
    }

    fn routes(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, RouteStatus>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    fn standing(tenant: &str, templates: &[&str]) -> RouteStatus {
        let templates = templates.iter().map(|name| key(name)).collect();
        RouteStatus { tenant: Some(key(tenant)), templates, settled: true, ..RouteStatus::default() }
    }

    #[test]
    fn tenants_hear_of_every_change_and_templates_of_those_who_come_and_go() {
        let statuses = RouteStatuses::default();
        statuses.set(&key("a"), Some(standing("prod", &["t1", "t2"])));

        let moved = statuses.set(&key("a"), Some(standing("test", &["t2", "t3"])));
        assert_eq!(moved.tenants, [key("prod"), key("test")].into());
        assert_eq!(moved.templates, [key("t1"), key("t3")].into());
        assert_eq!(statuses.set(&key("a"), Some(standing("test", &["t2", "t3"]))), Touched::default());

        let gone = statuses.set(&key("a"), None);
        assert_eq!((gone.tenants.len(), gone.templates.len()), (1, 2));
    }
}
