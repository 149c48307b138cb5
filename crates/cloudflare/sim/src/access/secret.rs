//! The secrets of service tokens: what is kept of them, and whether one that is shown is right.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    seconds,
    service_token::{PREVIOUS, SERVICE_TOKENS},
};
use crate::{
    ids::IdForm,
    state::State,
    store::{flag, id_of},
};

/// What is kept of a token's secrets: digests alone.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Secrets {
    current: Vec<u8>,
    previous: Option<Vec<u8>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

fn digest(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

/// Compares without telling by its time where two digests differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

/// Gives a token another secret. The last one stays known; whether it still counts, the token's object says.
pub(super) fn renew(state: &mut State, id: &str) -> String {
    let secret: String = [state.ids.next(IdForm::Hex), state.ids.next(IdForm::Hex)].concat();
    let secrets = state.service_tokens.entry(id.to_owned()).or_default();
    let last = std::mem::replace(&mut secrets.current, digest(&secret));
    secrets.previous = Some(last).filter(|last| !last.is_empty());
    secret
}

/// Gives a token a secret that somebody knows already.
pub(crate) fn know_secret(state: &mut State, id: &str, secret: &str) {
    state.service_tokens.entry(id.to_owned()).or_default().current = digest(secret);
}

/// The id of the token that these two headers stand for now, if they are right.
pub(crate) fn authenticate(state: &State, account: &str, client_id: &str, secret: &str) -> Option<String> {
    let token = state.rows(&SERVICE_TOKENS, account)?.by_key(client_id).next()?;
    let now = (state.options.clock)();
    let before = |name| token[name].as_str().and_then(|end| end.parse::<Timestamp>().ok()).is_some_and(|end| now < end);
    let lasts = token["expires_at"].is_null() || before("expires_at");
    let (secrets, given) = (state.service_tokens.get(id_of(token))?, digest(secret));
    let current = same(&secrets.current, &given);
    let previous = before(PREVIOUS) && secrets.previous.as_ref().is_some_and(|last| same(last, &given));
    (flag(token, "enabled") && lasts && (current || previous)).then(|| id_of(token).to_owned())
}

/// Notes that a token was used.
pub(crate) fn mark_seen(state: &mut State, account: &str, id: &str) {
    let now = seconds(state);
    if let Some(mut token) = state.get(&SERVICE_TOKENS, account, id).cloned() {
        token["last_seen_at"] = Value::from(now);
        state.rows_mut(&SERVICE_TOKENS, account).replace(token);
    }
}
