//! Tasks that make a token of the same name take turns: a token carries no mark, so that one made by another task at the same
//! moment could be taken for a lost one of our own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_exposure::{Desired, Footprint};
use tokio::sync::OwnedMutexGuard;

/// Who may make a token of which name.
#[derive(Default)]
pub(crate) struct Turns {
    names: Mutex<BTreeMap<Name, Arc<tokio::sync::Mutex<()>>>>,
}

/// An account and a token's name in it.
type Name = (String, String);

/// A turn; dropped, the next one's comes.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Waits for the turn of a wish that may make a token; none is needed where the token is known.
    pub(crate) async fn take(&self, desired: Option<&Desired>, recorded: &Footprint) -> Option<Turn> {
        let desired = desired.filter(|_| recorded.service_token_id.is_none())?;
        let token = desired.token.as_ref()?;
        let turn = self.of((desired.account_id.clone(), token.name.clone()));
        Some(turn.lock_owned().await)
    }

    fn of(&self, name: Name) -> Arc<tokio::sync::Mutex<()>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(names.entry(name).or_default())
    }
}
