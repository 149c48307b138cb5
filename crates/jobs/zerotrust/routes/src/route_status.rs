//! How each route stands, for the statuses of tenants and templates.

use std::collections::BTreeSet;

use portolan_core::ObjectKey;
use portolan_engine::Verdicts;

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
pub(crate) type RouteStatuses = Verdicts<ObjectKey, RouteStatus>;

/// Who should hear that a route stands otherwise.
pub(crate) fn touched(before: Option<&RouteStatus>, after: Option<&RouteStatus>) -> Touched {
    let templates = |one: Option<&RouteStatus>| one.map(|one| one.templates.clone()).unwrap_or_default();
    Touched {
        tenants: [before, after].into_iter().flatten().filter_map(|one| one.tenant.clone()).collect(),
        templates: templates(before).symmetric_difference(&templates(after)).cloned().collect(),
    }
}

/// The routes for which something holds.
pub(crate) fn routes_where(
    statuses: &RouteStatuses,
    holds: impl Fn(&RouteStatus) -> bool,
) -> Vec<(ObjectKey, RouteStatus)> {
    let held = |(key, one): (&ObjectKey, &RouteStatus)| holds(one).then(|| (key.clone(), one.clone()));
    statuses.read(|routes| routes.iter().filter_map(held).collect())
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
}
