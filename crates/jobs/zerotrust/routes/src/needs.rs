//! Which Secrets are needed to take down what stands, and whether who needs them is going. Pure but for the caches.

use std::collections::BTreeMap;

use portolan_core::ObjectKey;
use portolan_engine::SecretNeed;
use portolan_zerotrust_model::state::StatePhase;
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, Enabled, State};

use crate::shared::RoutesContext;

/// The finalizer that keeps credential Secrets while something stands that was made with them.
pub const CREDENTIAL_FINALIZER: &str = "portolan.dev/credential-zerotrust";

impl RoutesContext {
    /// The Secrets that something recorded or under way can only be taken down with.
    pub(crate) fn needed_secrets(&self) -> BTreeMap<ObjectKey, SecretNeed> {
        let mut needed = BTreeMap::new();
        for known in self.state_index.all() {
            let state = &known.state;
            let standing = (!state.footprint.is_empty()).then(|| self.credential_of(state)).flatten();
            let left = state.leftovers.iter().filter_map(|one| one.credential.clone());
            for secret in standing.into_iter().chain(left) {
                note(&mut needed, secret.object(), self.need_of(state));
            }
        }
        for task in self.state_index.tasks.iter() {
            if let Some(secret) = &task.spec.credential_secret_ref {
                note(&mut needed, secret.object(), self.need_of_task(&task));
            }
        }
        needed
    }

    fn need_of(&self, state: &State) -> SecretNeed {
        let tenant_goes = self.tenant_of(state).is_some_and(|tenant| tenant.metadata.deletion_timestamp.is_some());
        if state.phase == StatePhase::Deleting || tenant_goes || self.is_leaving(&state.route) {
            SecretNeed::Leaving
        } else {
            SecretNeed::Staying
        }
    }

    fn need_of_task(&self, task: &CloudflareTask) -> SecretNeed {
        let leaving =
            task.spec.action() == TaskAction::Delete || task.route().is_none_or(|route| self.is_leaving(&route));
        if leaving { SecretNeed::Leaving } else { SecretNeed::Staying }
    }

    /// Whether a route is going, is gone or no longer asks. One that is not watched is none of these.
    pub(crate) fn is_leaving(&self, route: &ObjectKey) -> bool {
        match self.routes.get(route) {
            Some(one) => one.deleting || one.projection.is_some_and(|input| input.enabled() == Enabled::No),
            None => self.settings.selection().covers(route.namespace.as_deref()),
        }
    }
}

fn note(needed: &mut BTreeMap<ObjectKey, SecretNeed>, secret: ObjectKey, need: SecretNeed) {
    let entry = needed.entry(secret).or_insert(need);
    *entry = need.max(*entry);
}
