//! How many objects of each kind an account may have.

use serde::Deserialize;

use super::invalid;
use crate::{reply::Refusal, state::State, table::Collection};

/// Limits of an account, as documented for accounts without a contract of their own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Applications.
    pub applications: usize,
    /// Reusable policies.
    pub policies: usize,
    /// Rule groups.
    pub groups: usize,
    /// Service tokens.
    pub service_tokens: usize,
    /// Identity providers.
    pub identity_providers: usize,
    /// Public domains of one application.
    pub domains_per_application: usize,
    /// Rules of all policies of one application.
    pub rules_per_application: usize,
    /// Rules of one group.
    pub rules_per_group: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            applications: 500,
            policies: 500,
            groups: 300,
            service_tokens: 50,
            identity_providers: 50,
            domains_per_application: 50,
            rules_per_application: 1000,
            rules_per_group: 1000,
        }
    }
}

/// Refuses one more of what there are already as many as allowed.
pub(super) fn refuse_more(there: usize, limit: usize, what: &str) -> Result<(), Refusal> {
    if there < limit { Ok(()) } else { Err(exceeded(what)) }
}

/// Refuses more than the limit.
pub(super) fn refuse_over(number: usize, limit: usize, what: &str) -> Result<(), Refusal> {
    if number <= limit { Ok(()) } else { Err(exceeded(what)) }
}

fn exceeded(what: &str) -> Refusal {
    // The service names neither a code of its own nor the limit.
    invalid(format!("maximum number of {what} has been reached"))
}

/// How many objects a collection has in an account.
pub(super) fn count(state: &State, row: &Collection, account: &str) -> usize {
    state.rows(row, account).map_or(0, crate::store::Rows::len)
}
