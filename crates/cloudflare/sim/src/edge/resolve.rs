//! A name in, the record that answers for it and what it leads to out.

use serde_json::Value;

use super::{
    decision::{EdgeOutcome, EdgeRecord},
    failure,
    view::StateView,
};
use crate::{
    dns::name::ancestors,
    store::{flag, id_of, text},
};

/// What every tunnel's name ends in.
const TUNNELS: &str = ".cfargotunnel.com";
/// How many aliases are followed.
const HOPS: usize = 8;

/// What is known of a name.
pub(super) struct ResolvedName<'a> {
    pub(super) zone: Option<&'a Value>,
    pub(super) record: Option<EdgeRecord>,
    pub(super) target: Result<RequestDestination, EdgeOutcome>,
}

/// Where requests for a name go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestDestination {
    /// Into the tunnel with this id.
    Tunnel(String),
    /// To an origin at this address or name, outside of all tunnels.
    Outside(String),
}

impl RequestDestination {
    pub(super) fn tunnel(&self) -> Option<&str> {
        match self {
            Self::Tunnel(id) => Some(id),
            Self::Outside(_) => None,
        }
    }
}

/// The answer for a name that is in no zone.
pub(super) fn unknown(host: &str) -> EdgeOutcome {
    failure::dns(format!("{host} is in no active zone of this simulator"))
}

pub(super) fn resolve<'a>(view: StateView<'a>, host: &str) -> ResolvedName<'a> {
    let Some(zone) = view.zone(host) else {
        return ResolvedName { zone: None, record: None, target: Err(unknown(host)) };
    };
    let Some(record) = find(view, zone, host) else {
        let target = Err(failure::dns(format!("no A, AAAA or CNAME record in {} is for {host}", text(zone, "name"))));
        return ResolvedName { zone: Some(zone), record: None, target };
    };
    let target = if StateView::is_paused(zone) {
        Err(failure::dns(format!("Cloudflare is paused for {}", text(zone, "name"))))
    } else if flag(record, "proxied") {
        follow(view, record, HOPS)
    } else {
        let (name, content) = (text(record, "name"), text(record, "content"));
        Err(failure::dns(format!("the record {name} is not proxied: visitors go to {content} past Cloudflare")))
    };
    ResolvedName { zone: Some(zone), record: Some(EdgeRecord::of(record)), target }
}

/// The record that answers: of the name itself, else the wildcard next above it.
fn find<'a>(view: StateView<'a>, zone: &Value, host: &str) -> Option<&'a Value> {
    let id = id_of(zone);
    if view.records(id, host).next().is_some() {
        return view.records(id, host).find(|record| leads(record));
    }
    for above in ancestors(host).skip(1) {
        if let Some(found) = view.records(id, &format!("*.{above}")).find(|record| leads(record)) {
            return Some(found);
        }
        if view.records(id, above).next().is_some() {
            return None;
        }
    }
    None
}

fn leads(record: &Value) -> bool {
    matches!(text(record, "type"), "A" | "AAAA" | "CNAME")
}

fn follow(view: StateView<'_>, record: &Value, hops: usize) -> Result<RequestDestination, EdgeOutcome> {
    let content = text(record, "content").trim_end_matches('.').to_ascii_lowercase();
    if text(record, "type") != "CNAME" {
        return Ok(RequestDestination::Outside(content));
    }
    if let Some(id) = content.strip_suffix(TUNNELS) {
        return Ok(RequestDestination::Tunnel(id.to_owned()));
    }
    if hops == 0 {
        return Err(failure::dns(format!("the aliases of {} never end", text(record, "name"))));
    }
    let next = view.zone(&content).and_then(|zone| find(view, zone, &content));
    next.map_or(Ok(RequestDestination::Outside(content)), |next| follow(view, next, hops - 1))
}
