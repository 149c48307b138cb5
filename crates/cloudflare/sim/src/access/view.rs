//! What the edge asks: which applications there are, whom they let in, whose credentials these are.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    app::APPS,
    app_policies::{resolved, stored},
    group::GROUPS,
};
pub(crate) use super::{
    domain::domains,
    secret::{authenticate, mark_seen},
};
use crate::state::State;

/// All applications of an account. [`domains`] says what each covers.
pub(crate) fn apps<'a>(state: &'a State, account: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    state.all(&APPS, account)
}

/// The policies of an application, whole, in the order in which they are asked.
pub(crate) fn policies<'a>(state: &State, account: &str, app: &'a Value) -> Vec<Cow<'a, Value>> {
    stored(app).filter_map(|policy| resolved(state, account, policy)).collect()
}

/// A group by its id.
pub(crate) fn group<'a>(state: &'a State, account: &str, id: &str) -> Option<&'a Value> {
    state.get(&GROUPS, account, id)
}
