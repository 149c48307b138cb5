//! What a wish would take from a name that stands: the name itself, or its protection. It is counted as a deletion is.

use portolan_engine::DeletionScope;
use portolan_exposure::Footprint;
use portolan_zerotrust_model::{CloudflareTaskSpec, State};

use crate::shared::RoutesContext;

/// The collection that names are counted in.
const NAMES: &str = "names";

/// Whether carrying out a task takes down the name that stands, or leaves it without the application that it has. A name
/// that moves to another tunnel of the account is neither: its record follows without a gap.
pub(crate) fn loses(recorded: &Footprint, wanted: &CloudflareTaskSpec) -> bool {
    if recorded.is_empty() {
        return false;
    }
    let differs = |there: &Option<String>, wanted: &Option<String>| there.is_some() && there != wanted;
    let operations = wanted.operations.clone().unwrap_or_default();
    let tunnel = operations.tunnel_route.is_some_and(|one| one.enabled.unwrap_or(true));
    let address = operations.dns_record.is_some_and(|one| one.enabled.unwrap_or(false));
    let protected = operations.access_app.is_some_and(|one| one.enabled.unwrap_or(false));
    let goes = differs(&recorded.hostname, &wanted.hostname)
        || differs(&recorded.account_id, &wanted.account_id)
        || !(tunnel || address);
    let opens = recorded.access_app_id.is_some() && !protected;
    (recorded.is_published() && goes) || opens
}

impl RoutesContext {
    /// What the names of a state's tenant are counted in.
    pub(crate) fn names_of(&self, state: &State) -> Option<DeletionScope> {
        let tenant = self.tenant_key(state)?;
        Some(DeletionScope { id: tenant.to_string(), collection: NAMES.to_owned(), label: format!("tenant {tenant}") })
    }

    /// Whether a route that stays is about to lose its name or its protection.
    pub(crate) fn is_losing(&self, state: &State) -> bool {
        let Some(input) = self.routes.get(&state.route).and_then(|route| route.projection) else { return false };
        let wanted = self.wanted_again(&input, state.footprint.zone_id.as_deref(), &state.footprint);
        wanted.is_ok_and(|wanted| wanted.hash != state.hash && loses(&state.footprint, &wanted.spec))
    }

    /// A name stays as it is: whoever wanted to take it down no longer does.
    pub(crate) fn keeps(&self, state: &State) {
        let (Some(scope), Some(hostname)) = (self.names_of(state), &state.footprint.hostname) else { return };
        if self.deletions.stays(&scope, hostname)
            && let Some(tenant) = self.tenant_key(state)
        {
            self.tenant_changed(&tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::AccessSettings;
    use portolan_zerotrust_model::task::{Operations, TunnelOperation};

    use super::*;

    fn recorded() -> Footprint {
        let text = |text: &str| Some(text.to_owned());
        Footprint {
            account_id: text("acc"),
            hostname: text("a.example.com"),
            tunnel_id: text("t1"),
            has_rule: true,
            cname_record_id: text("r1"),
            access_app_id: text("app"),
            ..Footprint::default()
        }
    }

    fn wanted(hostname: &str, account: &str, access: bool) -> CloudflareTaskSpec {
        CloudflareTaskSpec {
            hostname: Some(hostname.to_owned()),
            account_id: Some(account.to_owned()),
            operations: Some(Operations {
                tunnel_route: Some(TunnelOperation::default()),
                access_app: Some(AccessSettings { enabled: Some(access), ..AccessSettings::default() }),
                ..Operations::default()
            }),
            ..CloudflareTaskSpec::default()
        }
    }

    #[test]
    fn ux_c4_renames_other_accounts_and_lost_protection_are_losses() {
        let same = wanted("a.example.com", "acc", true);
        let other_tunnel = CloudflareTaskSpec { tunnel_id: Some("t2".to_owned()), ..same.clone() };

        assert!(!loses(&recorded(), &same) && !loses(&recorded(), &other_tunnel));
        assert!(loses(&recorded(), &wanted("b.example.com", "acc", true)));
        assert!(loses(&recorded(), &wanted("a.example.com", "other", true)));
        assert!(loses(&recorded(), &wanted("a.example.com", "acc", false)));
        assert!(loses(&recorded(), &CloudflareTaskSpec { operations: None, ..same }));
        assert!(!loses(&Footprint::default(), &wanted("b.example.com", "acc", false)), "nothing stands");
    }
}
