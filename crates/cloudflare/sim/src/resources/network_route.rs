//! `/accounts/{account_id}/teamnet/routes`: networks behind tunnels, by id and, in the older form, by network.

use std::{borrow::Cow, net::IpAddr};

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::{
    call::RoutedCall,
    crud,
    field::{BodyVerb, Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    reply::{Refusal, Reply, Success},
    resources::NETWORKING,
    state::State,
    store::{id_of, is_deleted, text},
    table::{Collection, CollectionAction, Fail, PLAIN, PendingChange, Rules},
    tunnel::TUNNELS,
    virtual_network::{self, COMMENT, VIRTUAL_NETWORKS},
};

pub(crate) static ROUTES: Collection = Collection {
    name: "routes",
    what: "tunnel_route",
    path: "teamnet/routes",
    fields: FIELDS,
    filters: FILTERS,
    key: |value| key(text(value, "network"), text(value, "virtual_network_id")),
    duplicate: Some(Fail(409, 1014, "You already have a route defined for this exact IP subnet")),
    not_found: Fail(404, 1002, "Route not found"),
    rules: Rules { prepare, show, ..PLAIN },
    ..NETWORKING
};

const FIELDS: &[Member] = &[
    required("network", MemberType::Text),
    required("tunnel_id", MemberType::Text),
    optional("comment", MemberType::Text),
    optional("virtual_network_id", MemberType::Text),
];

const FILTERS: &[Filter] = &[
    filter("comment", Test::Is("comment")),
    filter("existed_at", Test::Special(existed_at)),
    filter("is_deleted", Test::Deleted),
    filter("network_subset", Test::Special(|value, wanted| contains(wanted, text(value, "network")))),
    filter("network_superset", Test::Special(|value, wanted| contains(text(value, "network"), wanted))),
    filter("route_id", Test::Is("id")),
    filter("tun_types", Test::Special(|_, wanted| wanted.split(',').any(|kind| kind == "cfd_tunnel"))),
    filter("tunnel_id", Test::Is("tunnel_id")),
    filter("virtual_network_id", Test::Is("virtual_network_id")),
];

fn key(network: &str, virtual_network: &str) -> String {
    format!("{network} {virtual_network}")
}

/// Whether an object was there at this time.
pub(crate) fn existed_at(value: &Value, at: &str) -> bool {
    let deleted = value["deleted_at"].as_str();
    text(value, "created_at") <= at && deleted.is_none_or(|deleted| deleted > at)
}

fn contains(outer: &str, inner: &str) -> bool {
    match (outer.parse::<IpNet>(), inner.parse::<IpNet>()) {
        (Ok(outer), Ok(inner)) => outer.contains(&inner),
        _ => false,
    }
}

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    value["network"] = Value::from(network(text(value, "network"))?.to_string());
    if text(value, "comment").chars().count() > COMMENT {
        return Err(Refusal::bad(1004, format!("comment must not be longer than {COMMENT} characters.")));
    }
    let lives = |row, id: &str| state.get(row, change.scope, id).is_some_and(|found| !is_deleted(found));
    if !lives(&TUNNELS, text(value, "tunnel_id")) {
        return Err(TUNNELS.not_found.refusal());
    }
    let chosen = text(value, "virtual_network_id");
    if chosen.is_empty() {
        value["virtual_network_id"] = json!(virtual_network::default_of(state, change.scope));
    } else if !lives(&VIRTUAL_NETWORKS, chosen) {
        return Err(VIRTUAL_NETWORKS.not_found.refusal());
    }
    if value["comment"].is_null() {
        value["comment"] = json!("");
    }
    Ok(())
}

fn network(text: &str) -> Result<IpNet, Refusal> {
    let wrong = |why: String| Refusal::bad(1004, format!("Invalid network {text}: {why}."));
    let network: IpNet = text.parse().map_err(|_| wrong("it must be in CIDR notation".into()))?;
    if network.addr() == network.network() {
        Ok(network)
    } else {
        Err(wrong(format!("it has host bits set, the network is {}", network.trunc())))
    }
}

/// Lists say the names of what a route leads through.
fn show<'a>(state: &State, scope: &str, value: &'a Value, action: CollectionAction) -> Cow<'a, Value> {
    if action != CollectionAction::List {
        return Cow::Borrowed(value);
    }
    let name = |row, id: &str| state.get(row, scope, id).map_or(Value::Null, |found| found["name"].clone());
    let mut shown = value.clone();
    shown["tun_type"] = json!("cfd_tunnel");
    shown["tunnel_name"] = name(&TUNNELS, text(value, "tunnel_id"));
    shown["virtual_network_name"] = name(&VIRTUAL_NETWORKS, text(value, "virtual_network_id"));
    Cow::Owned(shown)
}

/// `POST …/routes/network/{network}`
pub(crate) fn create_by_network(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let mut body = call.json()?;
    body["network"] = Value::from(call.param("network"));
    let made = crud::create(state, &ROUTES, account, body, None)?;
    state.note(call.who(), &ROUTES, account, &[(CollectionAction::Create, &made)]);
    Ok(Success::of(&made))
}

/// `PATCH …/routes/network/{network}`
pub(crate) fn patch_by_network(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let body = call.json()?;
    let old = by_network(state, call, text(&body, "virtual_network_id"))?;
    let new = crud::change(state, &ROUTES, account, BodyVerb::Patch, body, &old)?;
    state.note(call.who(), &ROUTES, account, &[(CollectionAction::Patch, &new)]);
    Ok(Success::of(&new))
}

/// `DELETE …/routes/network/{network}`
pub(crate) fn delete_by_network(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let old = by_network(state, call, "")?;
    let gone = crud::remove(state, &ROUTES, account, old);
    state.note(call.who(), &ROUTES, account, &[(CollectionAction::Delete, &gone)]);
    Ok(Success::of(&gone))
}

/// The live route for the network in the path; without a virtual network, the one in the default.
fn by_network(state: &State, call: &RoutedCall, virtual_network: &str) -> Result<Value, Refusal> {
    let account = call.param("account_id");
    let network = network(call.param("network"))?.to_string();
    let chosen = call.query_one("virtual_network_id").or(Some(virtual_network)).filter(|id| !id.is_empty());
    let chosen = chosen.map(str::to_owned).or_else(|| virtual_network::default_of(state, account)).unwrap_or_default();
    let rows = state.rows(&ROUTES, account);
    let found = rows.and_then(|rows| rows.by_key(&key(&network, &chosen)).find(|route| !is_deleted(route)));
    found.cloned().ok_or_else(|| ROUTES.not_found.refusal())
}

/// `GET …/routes/ip/{ip}`: the narrowest route to an address.
pub(crate) fn find_by_ip(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let ip: IpAddr = call.param("ip").parse().map_err(|_| Refusal::bad(1004, "Invalid IP address."))?;
    let chosen = call.query_one("virtual_network_id").map(str::to_owned);
    let chosen = chosen.or_else(|| virtual_network::default_of(state, account)).unwrap_or_default();
    let width = |route: &&Value| text(route, "network").parse::<IpNet>().ok().filter(|net| net.contains(&ip));
    let candidates = state
        .all(&ROUTES, account)
        .filter(|route| !is_deleted(route) && text(route, "virtual_network_id") == chosen && width(route).is_some());
    let narrowest = candidates.max_by_key(|route| (width(route).map_or(0, |net| net.prefix_len()), id_of(route)));
    let found = narrowest.ok_or_else(|| ROUTES.not_found.refusal())?;
    Ok(Success::of(&show(state, account, found, CollectionAction::List)))
}
