//! Facts of the zerotrust job → tenants with their names.

use std::collections::BTreeMap;

use portolan_zerotrust::model::reasons;
use serde::Serialize;
use serde_json::Value;

use super::tree::{HeldDeletions, Leaf, NamedHealth, held};
use crate::health_view::{Health, HealthView};
use crate::zerotrust::{self, Facts, RouteView};

/// A tenant and the names that are published with it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tenant {
    #[serde(flatten)]
    pub(crate) state: NamedHealth,
    pub(crate) account_id: String,
    pub(crate) tunnel_id: String,
    pub(crate) names: NamesByHealth,
    /// Names that lost their Access application within a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exposed: Option<String>,
    /// Deletions that wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<HeldDeletions>,
}

/// Names by their health, and each of them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamesByHealth {
    pub(crate) total: usize,
    pub(crate) protected: usize,
    pub(crate) by_health: BTreeMap<&'static str, usize>,
    pub(crate) routes: Vec<Leaf>,
}

impl NamesByHealth {
    fn add(&mut self, view: &RouteView<'_>) {
        let seen = zerotrust::route(view);
        self.total += 1;
        self.protected += usize::from(seen.object["spec"]["protected"] == true);
        *self.by_health.entry(seen.health().as_str()).or_default() += 1;
        let protected = if seen.object["spec"]["protected"] == true { ", protected" } else { "" };
        let leads_to = match seen.text("/spec/leadsTo") {
            "" => String::new(),
            origin => format!(" → {origin}"),
        };
        let about = format!("{}{leads_to}{protected}", seen.text("/spec/hostname"));
        self.routes.push(Leaf { state: NamedHealth::of(&seen), about, sort: "route".to_owned() });
    }

    /// Those that are not Ready.
    pub(crate) fn unwell(&self) -> impl Iterator<Item = &Leaf> {
        self.routes.iter().filter(|route| route.state.health != Health::Ready)
    }
}

/// Tenants with their names, names without a tenant, and all of them as objects with a health.
pub(crate) fn read(facts: &Facts) -> (Vec<Tenant>, NamesByHealth, Vec<HealthView>) {
    let seen = zerotrust::seen(facts);
    let tenants = seen.iter().filter(|seen| seen.kind == "CloudflareZeroTrustTenant");
    let mut tenants: Vec<Tenant> = tenants.map(tenant).collect();
    let mut others = NamesByHealth::default();
    for view in facts.views() {
        let key = view.tenant.as_ref().map(|tenant| tenant.key().to_string());
        let names = match tenants.iter_mut().find(|tenant| key.as_ref() == Some(&tenant.state.name)) {
            Some(tenant) => &mut tenant.names,
            None => &mut others,
        };
        names.add(&view);
    }
    (tenants, others, seen)
}

fn tenant(seen: &HealthView) -> Tenant {
    Tenant {
        state: NamedHealth::of(seen),
        account_id: seen.text("/spec/accountId").to_owned(),
        tunnel_id: seen.text("/spec/tunnelId").to_owned(),
        names: NamesByHealth::default(),
        exposed: exposed(seen),
        held: held(seen),
    }
}

/// What the tenant says of names that became public.
fn exposed(seen: &HealthView) -> Option<String> {
    let conditions = seen.object["status"]["conditions"].as_array()?;
    let is_it = |one: &&Value| one["reason"] == reasons::PROTECTION_REMOVED && one["status"] == "True";
    conditions.iter().find(is_it)?["message"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_became_public_are_shown_while_the_tenant_says_so() {
        let seen = |status: &str, reason: &str| HealthView {
            kind: "CloudflareZeroTrustTenant".to_owned(),
            object: json!({"status": {"conditions": [
                {"type": "ProtectionLost", "status": status, "reason": reason, "message": "Public now: a.example.com"}]}}),
        };

        let told = exposed(&seen("True", "ProtectionRemoved"));
        assert_eq!(told.as_deref(), Some("Public now: a.example.com"));
        assert_eq!(exposed(&seen("False", "ProtectionKept")), None);
    }
}
