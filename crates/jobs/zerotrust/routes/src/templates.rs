//! The controller of templates: whether what they say can be used, and who uses it.

use std::sync::Arc;

use portolan_core::{ConditionStatus, NewCondition, ObjectKey, Plan, Problem};
use portolan_engine::{Outcome, Profile, Reconcile, Report};
use portolan_zerotrust_model::settings::TARGET_IP;
use portolan_zerotrust_model::{
    CloudflareZeroTrustTemplate as Template, CloudflareZeroTrustTenant as Tenant, CloudflareZeroTrustTenantSpec,
    HttpRoute, RouteInput, Selected, reasons, settings, target,
};
use serde_json::json;

use crate::shared::RoutesContext;
use crate::tenants::named_in;

/// The condition that says whether a template can be used.
const VALID: &str = "Valid";
/// The condition that says whether somebody uses a template.
const IN_USE: &str = "InUse";
/// Routes that a status lists.
const LISTED: usize = 50;

/// Reconciles templates.
pub(crate) struct TemplateController {
    pub(crate) shared: Arc<RoutesContext>,
}

/// Who uses a template, and what is wrong with it.
pub(crate) struct Use {
    routes: Vec<ObjectKey>,
    wrong: Result<(), Problem>,
}

impl Reconcile for TemplateController {
    type Object = Template;
    type Inputs = Use;
    type Plan = ();
    type Applied = ();
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile::of("CloudflareZeroTrustTemplate")
    }

    fn reacts_to_annotation(&self, _: &str) -> bool {
        false
    }

    fn project(&self, _: &Template) {}

    async fn gather(&self, template: &Template) -> Result<Use, Problem> {
        Ok(Use { routes: self.shared.statuses.of_template(&template.key()), wrong: check(template) })
    }

    fn plan(&self, _: &Template, _: &Use) -> Result<(), Problem> {
        Ok(())
    }

    fn changes(&self, (): &()) -> Plan {
        Plan::default()
    }

    async fn apply(&self, _: &Template, _: &Use, (): &()) -> Result<(), Problem> {
        Ok(())
    }

    fn report(&self, template: &Template, outcome: Outcome<'_, Self>) -> Report {
        let found = match outcome {
            Outcome::Applied { inputs, .. } | Outcome::Unchanged { inputs, .. } => inputs,
            Outcome::Failed(failure) => return Report::failed(failure.problem),
        };
        said(&template.key(), found)
    }
}

/// What is said of a template: the first routes of its namespace by name, and how many there are. However many use it, it is
/// as long.
fn said(template: &ObjectKey, found: &Use) -> Report {
    let valid = match &found.wrong {
        Ok(()) => NewCondition::of(VALID, ConditionStatus::True, reasons::VALID, "Everything in it can be used"),
        Err(problem) => NewCondition::of(VALID, ConditionStatus::False, reasons::INVALID_SPEC, problem.message.clone()),
    };
    let own = found.routes.iter().filter(|route| route.namespace == template.namespace);
    let listed: Vec<String> = own.map(ToString::to_string).take(LISTED).collect();
    Report {
        status: json!({"usedByHTTPRoutes": listed, "usedByCount": found.routes.len()}),
        conditions: vec![valid, in_use(template, &found.routes)],
        ..Report::default()
    }
}

/// Whether what a template says can be used, whoever uses it.
fn check(template: &Template) -> Result<(), Problem> {
    let route = RouteInput::read(&HttpRoute::default());
    let tenant = Tenant::new("", CloudflareZeroTrustTenantSpec::default());
    let selected = Selected { tenant: Arc::new(tenant), template: Some(Arc::new(template.clone())), base: None };
    let merged = settings(&route, &selected)?;
    // An address that comes from the route is checked there.
    merged.text(&TARGET_IP).map_or(Ok(()), |text| target::address(text).map(drop))
}

fn in_use(template: &ObjectKey, routes: &[ObjectKey]) -> NewCondition {
    match routes {
        [] => NewCondition::of(IN_USE, ConditionStatus::False, reasons::NOT_USED, "No route uses it"),
        some => {
            let message = format!("Used by {}", named_in(template, some.iter().map(|one| (one, one.to_string()))));
            NewCondition::of(IN_USE, ConditionStatus::True, reasons::IN_USE, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a template says that so many routes use, and how long that is.
    fn said_of(routes: usize) -> (Report, usize) {
        let route = |number| ObjectKey::namespaced("shop", format!("route-{number:06}"));
        let found = Use { routes: (0..routes).map(route).collect(), wrong: Ok(()) };
        let report = said(&ObjectKey::namespaced("shop", "base-prod"), &found);
        let conditions: usize = report.conditions.iter().map(|one| one.message.len()).sum();
        let length = report.status.to_string().len() + conditions;
        (report, length)
    }

    #[test]
    fn finding_24_what_is_said_of_a_template_is_no_longer_for_thirty_thousand_routes_than_for_a_hundred() {
        let ((_, short), (report, long)) = (said_of(100), said_of(30_000));

        assert!(long < short + 10, "{short} and {long} bytes");
        assert_eq!(report.status["usedByHTTPRoutes"].as_array().map(Vec::len), Some(LISTED));
        assert_eq!(report.status["usedByCount"], 30_000, "how many there are is still told");
    }
}
