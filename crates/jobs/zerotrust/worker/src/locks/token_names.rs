//! Tasks that make a token of the same name take turns: a token carries no mark, so that one made by another task at the same
//! moment could be taken for a lost one of our own.
//!
//! Tasks of this process wait in line for the name; those of other processes are kept away by a lease that a few names share,
//! so that there is no lease for every name there ever was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_core::{OwnerId, Problem, WriteGate};
use portolan_exposure::{Desired, Footprint};
use tokio::sync::OwnedMutexGuard;

use crate::locks::documents::{self, DocumentLocks, LockTerm};

/// Who may make a token of which name.
#[derive(Default)]
pub(crate) struct TokenNameLocks {
    names: Mutex<BTreeMap<TokenName, Arc<tokio::sync::Mutex<()>>>>,
}

/// An account and a token's name in it.
type TokenName = (String, String);

/// A turn; dropped, the next one's comes.
pub(crate) struct TokenNameLock {
    _here: OwnedMutexGuard<()>,
    elsewhere: Vec<Arc<LockTerm>>,
}

impl TokenNameLock {
    /// Open while the turn is surely ours.
    pub(crate) fn gate(&self) -> WriteGate {
        documents::gate(self.elsewhere.clone())
    }
}

impl TokenNameLocks {
    /// Waits for the turn of a wish that may make a token; none is needed where the token is known.
    pub(crate) async fn take(
        &self,
        desired: Option<&Desired>,
        recorded: &Footprint,
        locks: &DocumentLocks,
    ) -> Result<Option<TokenNameLock>, Problem> {
        portolan_core::waypoint!();
        let desired = desired.filter(|_| recorded.service_token_id.is_none());
        let Some(token) = desired.and_then(|desired| desired.token.as_ref()) else { return Ok(None) };
        let account = desired.map(|desired| desired.account_id.clone()).unwrap_or_default();
        let document = document(&account, &token.name);
        let here = self.of((account, token.name.clone())).lock_owned().await;
        let elsewhere = locks.enter([document].into()).await?;
        Ok(Some(TokenNameLock { _here: here, elsewhere }))
    }

    fn of(&self, name: TokenName) -> Arc<tokio::sync::Mutex<()>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(names.entry(name).or_default())
    }
}

/// What is locked for a name: one sixteenth of an account's tokens.
fn document(account: &str, name: &str) -> String {
    let digest = OwnerId::derive(name).to_string();
    format!("accounts/{account}/service_tokens/{}", digest.get(..1).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_name_is_one_lock_and_all_names_are_sixteen() {
        let names: Vec<String> = (0..500).map(|number| format!("web-{number}-service-token")).collect();
        let locks: BTreeSet<String> = names.iter().map(|name| document("a1", name)).collect();

        assert_eq!(document("a1", "web-service-token"), document("a1", "web-service-token"));
        assert_ne!(document("a1", "web-service-token"), document("a2", "web-service-token"));
        assert_eq!(locks.len(), 16);
    }
}
