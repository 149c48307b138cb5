//! What the edge reads of the simulator's state.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    access::{organization, view as access},
    dns::{RECORDS, name::ancestors},
    rulesets,
    state::State,
    store::{flag, is_deleted, text},
    tunnel::TUNNELS,
    zone::ZONES,
};

/// A read-only look at the state.
#[derive(Clone, Copy)]
pub(super) struct StateView<'a>(&'a State);

/// A tunnel that exists.
pub(super) struct TunnelView<'a> {
    pub(super) account: String,
    pub(super) object: &'a Value,
    /// The document, `null` where none was written.
    pub(super) config: &'a Value,
}

impl<'a> StateView<'a> {
    pub(super) fn of(state: &'a State) -> Self {
        Self(state)
    }

    /// The zone that answers for a name: the longest one that is active.
    pub(super) fn zone(self, host: &str) -> Option<&'a Value> {
        let zones = self.0.rows(&ZONES, "")?;
        ancestors(host).find_map(|name| zones.by_key(name).find(|zone| text(zone, "status") == "active"))
    }

    /// Records with exactly this name.
    pub(super) fn records(self, zone: &str, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        let name = name.to_owned();
        self.0.rows(&RECORDS, zone).into_iter().flat_map(move |rows| rows.by_key(&name))
    }

    pub(super) fn tunnel(self, id: &str) -> Option<TunnelView<'a>> {
        let account = self.0.scope_with(&TUNNELS, id)?;
        let object = self.0.get(&TUNNELS, &account, id).filter(|tunnel| !is_deleted(tunnel))?;
        let inside = self.0.tunnels.get(id)?;
        Some(TunnelView { account, object, config: &inside.configuration["config"] })
    }

    /// The team's name in the login's address.
    pub(super) fn team(self, account: &str) -> String {
        organization::team(self.0, account)
    }

    pub(super) fn is_paused(zone: &Value) -> bool {
        flag(zone, "paused")
    }

    /// All Access applications of an account.
    pub(super) fn apps(self, account: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        access::apps(self.0, account)
    }

    /// The policies of an application, in order.
    pub(super) fn policies(self, account: &str, app: &'a Value) -> Vec<Cow<'a, Value>> {
        access::policies(self.0, account, app)
    }

    pub(super) fn group(self, account: &str, id: &str) -> Option<&'a Value> {
        access::group(self.0, account, id)
    }

    /// The id of the service token that this id and secret open.
    pub(super) fn token(self, account: &str, client_id: &str, secret: &str) -> Option<String> {
        access::authenticate(self.0, account, client_id, secret)
    }

    /// The redirect rules of a zone.
    pub(super) fn redirects(self, zone: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        rulesets::redirects(self.0, zone)
    }
}
