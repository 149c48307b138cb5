//! How each route stands, for the statuses of tenants and templates: found by either without a look at the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_core::ObjectKey;
use portolan_engine::{Metrics, Referrers, Verdicts};
use prometheus_client::metrics::counter::Counter;

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

/// How all routes stand that ask for something: their controller posts it, tenants and templates report it.
pub(crate) struct RouteStatuses {
    posted: Verdicts<ObjectKey, RouteStatus>,
    of_tenant: Arc<Referrers<ObjectKey>>,
    of_template: Arc<Referrers<ObjectKey>>,
    /// Held while one is posted, so that the indexes hear of a route in the order in which it came to stand so.
    posting: Mutex<()>,
    /// How many were looked at one by one.
    scanned: Counter,
}

impl RouteStatuses {
    /// Nothing is known yet.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let posted = Verdicts::<ObjectKey, RouteStatus>::default();
        let (of_tenant, of_template) = (Arc::<Referrers<_>>::default(), Arc::<Referrers<_>>::default());
        let (tenants, templates) = (Arc::clone(&of_tenant), Arc::clone(&of_template));
        // The first to hear of news: whoever hears it after this finds the route where it stands now.
        posted.on_news(move |route, before, after| {
            tenants.note(route.clone(), before.and_then(tenant), after.and_then(tenant));
            templates.note(route.clone(), before.map(used).unwrap_or_default(), after.map(used).unwrap_or_default());
        });
        Self { posted, of_tenant, of_template, posting: Mutex::default(), scanned: metrics.scans("HTTPRoute") }
    }

    /// A route stands so from now on, or asks for nothing any more.
    pub(crate) fn post(&self, route: &ObjectKey, status: Option<RouteStatus>) {
        let _alone = self.posting.lock().unwrap_or_else(PoisonError::into_inner);
        self.posted.post(route, status);
    }

    /// How a route stands.
    pub(crate) fn about(&self, route: &ObjectKey) -> Option<RouteStatus> {
        self.posted.about(route)
    }

    /// Calls back with what a route stood like, and how it stands.
    pub(crate) fn on_news(
        &self,
        listener: impl Fn(&ObjectKey, Option<&RouteStatus>, Option<&RouteStatus>) + Send + Sync + 'static,
    ) {
        self.posted.on_news(listener);
    }

    /// The routes that are published with a tenant, or want to be.
    pub(crate) fn of_tenant(&self, tenant: &ObjectKey) -> Vec<(ObjectKey, RouteStatus)> {
        let routes = self.of_tenant.of(tenant);
        self.scanned.inc_by(routes.len() as u64);
        routes.into_iter().filter_map(|route| Some((route.clone(), self.about(&route)?))).collect()
    }

    /// The routes whose settings come from a template.
    pub(crate) fn of_template(&self, template: &ObjectKey) -> Vec<ObjectKey> {
        self.of_template.of(template)
    }

    /// Looks at all of them.
    pub(crate) fn each(&self, look: impl FnMut((&ObjectKey, &RouteStatus))) {
        self.posted.read(|all| {
            self.scanned.inc_by(all.len() as u64);
            all.iter().for_each(look);
        });
    }
}

fn tenant(status: &RouteStatus) -> Option<ObjectKey> {
    status.tenant.clone()
}

fn used(status: &RouteStatus) -> BTreeSet<ObjectKey> {
    status.templates.clone()
}

/// Who should hear that a route stands otherwise.
pub(crate) fn touched(before: Option<&RouteStatus>, after: Option<&RouteStatus>) -> Touched {
    let templates = |one: Option<&RouteStatus>| one.map(|one| one.templates.clone()).unwrap_or_default();
    Touched {
        tenants: [before, after].into_iter().flatten().filter_map(|one| one.tenant.clone()).collect(),
        templates: templates(before).symmetric_difference(&templates(after)).cloned().collect(),
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
        let (before, after) = (standing("prod", &["t1", "t2"]), standing("test", &["t2", "t3"]));

        let moved = touched(Some(&before), Some(&after));
        assert_eq!(moved.tenants, [key("prod"), key("test")].into());
        assert_eq!(moved.templates, [key("t1"), key("t3")].into());

        let gone = touched(Some(&after), None);
        assert_eq!((gone.tenants.len(), gone.templates.len()), (1, 2));
    }

    #[test]
    fn a_route_is_found_by_the_tenant_and_the_templates_that_it_has_now() {
        let statuses = RouteStatuses::new(&Metrics::new());
        statuses.post(&key("app"), Some(standing("prod", &["t1"])));
        statuses.post(&key("web"), Some(standing("prod", &["t1", "t2"])));
        statuses.post(&key("app"), Some(standing("test", &["t2"])));

        let of =
            |tenant: &str| statuses.of_tenant(&key(tenant)).into_iter().map(|(route, _)| route).collect::<Vec<_>>();
        assert_eq!((of("prod"), of("test")), (vec![key("web")], vec![key("app")]));
        assert_eq!((statuses.of_template(&key("t1")), statuses.of_template(&key("t2")).len()), (vec![key("web")], 2));

        statuses.post(&key("web"), None);
        assert_eq!((of("prod"), statuses.of_template(&key("t1"))), (Vec::new(), Vec::new()));
    }
}
