//! `/accounts/{account_id}/cfd_tunnel`: tunnels, their tokens, connections and configurations.

use std::{borrow::Cow, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    call::RoutedCall,
    crud,
    field::{BodyVerb, Member, MemberType, Presence, optional, required},
    filter::{Filter, Test, filter},
    ids::IdForm,
    ingress,
    network_route::{ROUTES, existed_at},
    reply::{Refusal, Reply, Success},
    resources::NETWORKING,
    state::State,
    store::{id_of, is_deleted, text},
    table::{Collection, CollectionAction, Fail, PLAIN, PendingChange, Rules},
};

pub(crate) static TUNNELS: Collection = Collection {
    name: "cfd_tunnel",
    what: "tunnel",
    path: "cfd_tunnel",
    fields: FIELDS,
    filters: FILTERS,
    duplicate: Some(Fail(
        409,
        1013,
        "You already have a tunnel with this name. Delete the existing tunnel, or choose a different name for your new \
         tunnel.",
    )),
    not_found: Fail(404, 1003, "Tunnel not found"),
    invalid: 1001,
    group: "tunnel",
    rules: Rules { prepare, may_delete, changed, show, ..PLAIN },
    ..NETWORKING
};

const FIELDS: &[Member] = &[
    required("name", MemberType::Text),
    Member { name: "config_src", kind: MemberType::OneOf(&["local", "cloudflare"]), role: Presence::CreateOnly },
    optional("tunnel_secret", MemberType::Text),
];

const FILTERS: &[Filter] = &[
    filter("name", Test::Is("name")),
    filter("uuid", Test::Is("id")),
    filter("is_deleted", Test::Deleted),
    filter("existed_at", Test::Special(existed_at)),
    filter("include_prefix", Test::StartsWith("name")),
    filter("exclude_prefix", Test::Special(|value, prefix| !text(value, "name").starts_with(prefix))),
    filter("status", Test::Is("status")),
    filter("was_active_at", Test::Manner),
    filter("was_inactive_at", Test::Manner),
];

/// What a tunnel has that its object does not show.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Inside {
    secret: String,
    /// Connected clients, as `…/connections` lists them.
    clients: Vec<Value>,
    /// The configuration document with its version.
    pub(crate) configuration: Value,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("configuration", &self.configuration).finish_non_exhaustive()
    }
}

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if text(value, "name").trim().is_empty() {
        return Err(Refusal::bad(1001, "name is a required field."));
    }
    let secret = value.as_object_mut().and_then(|members| members.remove("tunnel_secret"));
    let secret = secret.as_ref().and_then(Value::as_str).map(check_secret).transpose()?;
    if change.verb == BodyVerb::Create {
        complete(change.scope, value);
    }
    crud::refuse_duplicate(state, &TUNNELS, change.scope, value)?;
    let id = id_of(value).to_owned();
    match (secret, state.tunnels.get_mut(&id)) {
        (Some(secret), Some(inside)) => secret.clone_into(&mut inside.secret),
        (None, Some(_)) => {}
        (secret, None) => {
            let secret = secret.map_or_else(|| STANDARD.encode(state.ids.bytes()), str::to_owned);
            let configuration = json!({
                "account_id": change.scope, "tunnel_id": id, "version": 0, "config": null,
                "source": value["config_src"], "created_at": value["created_at"],
            });
            state.tunnels.insert(id, Inside { secret, clients: Vec::new(), configuration });
        }
    }
    Ok(())
}

fn check_secret(secret: &str) -> Result<&str, Refusal> {
    match STANDARD.decode(secret) {
        Ok(bytes) if bytes.len() >= 32 => Ok(secret),
        _ => Err(Refusal::bad(1004, "tunnel_secret must be at least 32 bytes and encoded as a base64 string.")),
    }
}

fn complete(account: &str, value: &mut Value) {
    if value.get("config_src").is_none() {
        value["config_src"] = json!("local");
    }
    let remote = text(value, "config_src") == "cloudflare";
    let rest = json!({
        "account_tag": account, "connections": [], "conns_active_at": null, "conns_inactive_at": null,
        "tun_type": "cfd_tunnel", "metadata": {}, "status": "inactive", "remote_config": remote,
    });
    if let (Some(members), Value::Object(rest)) = (value.as_object_mut(), rest) {
        members.extend(rest);
    }
}

fn may_delete(state: &State, call: &RoutedCall, scope: &str, value: &Value) -> Result<(), Refusal> {
    if call.query_one("cascade") == Some("true") {
        return Ok(());
    }
    if state.tunnels.get(id_of(value)).is_some_and(|inside| !inside.clients.is_empty()) {
        return Err(Refusal::bad(1022, "Cannot delete tunnel because it has active connections"));
    }
    if routes_of(state, scope, value).is_empty() {
        Ok(())
    } else {
        Err(Refusal::bad(1023, "Cannot delete tunnel because it has IP routes"))
    }
}

fn routes_of(state: &State, scope: &str, tunnel: &Value) -> Vec<Value> {
    let uses = |route: &&Value| !is_deleted(route) && text(route, "tunnel_id") == id_of(tunnel);
    state.all(&ROUTES, scope).filter(uses).cloned().collect()
}

/// A deleted tunnel takes its connections and routes with it.
fn changed(state: &mut State, scope: &str, action: CollectionAction, value: &Value) {
    if action != CollectionAction::Delete {
        return;
    }
    for route in routes_of(state, scope, value) {
        crud::remove(state, &ROUTES, scope, route);
    }
    set_clients(state, scope, id_of(value), Vec::new());
}

/// Only the answer to a creation holds the secret.
fn show<'a>(state: &State, scope: &str, value: &'a Value, action: CollectionAction) -> Cow<'a, Value> {
    let Some(inside) = state.tunnels.get(id_of(value)).filter(|_| action == CollectionAction::Create) else {
        return Cow::Borrowed(value);
    };
    let mut shown = value.clone();
    shown["credentials_file"] = json!({
        "AccountTag": scope, "TunnelID": value["id"], "TunnelName": value["name"], "TunnelSecret": inside.secret,
    });
    shown["token"] = Value::from(token_text(scope, id_of(value), inside));
    Cow::Owned(shown)
}

fn token_text(account: &str, tunnel: &str, inside: &Inside) -> String {
    STANDARD.encode(json!({"a": account, "t": tunnel, "s": inside.secret}).to_string())
}

/// The live tunnel that the path names.
fn live(state: &State, call: &RoutedCall) -> Result<(String, String), Refusal> {
    let tunnel = crud::existing(state, &TUNNELS, call)?;
    if is_deleted(tunnel) {
        Err(TUNNELS.not_found.refusal())
    } else {
        Ok((call.param("account_id").to_owned(), id_of(tunnel).to_owned()))
    }
}

fn inside<'a>(state: &'a State, id: &str) -> Result<&'a Inside, Refusal> {
    state.tunnels.get(id).ok_or_else(|| TUNNELS.not_found.refusal())
}

/// `GET …/token`
pub(crate) fn token(state: &mut State, call: &RoutedCall) -> Reply {
    let (account, id) = live(state, call)?;
    Ok(Success::of(&token_text(&account, &id, inside(state, &id)?)))
}

/// `GET …/connections`
pub(crate) fn connections(state: &mut State, call: &RoutedCall) -> Reply {
    let (_, id) = live(state, call)?;
    Ok(Success::of(&inside(state, &id)?.clients))
}

/// `DELETE …/connections`
pub(crate) fn disconnect(state: &mut State, call: &RoutedCall) -> Reply {
    let (account, id) = live(state, call)?;
    let clients = inside(state, &id)?.clients.clone();
    let kept = match call.query_one("client_id") {
        Some(client) => clients.into_iter().filter(|found| id_of(found) != client).collect(),
        None => Vec::new(),
    };
    set_clients(state, &account, &id, kept);
    Ok(Success::of(&json!({})))
}

/// `GET …/configurations`
pub(crate) fn configuration(state: &mut State, call: &RoutedCall) -> Reply {
    let (_, id) = live(state, call)?;
    Ok(Success::of(&inside(state, &id)?.configuration))
}

/// `PUT …/configurations`: the whole document; every write makes a new version.
pub(crate) fn configure(state: &mut State, call: &RoutedCall) -> Reply {
    let (account, id) = live(state, call)?;
    let sent = crate::field::check(call.json()?, &[required("config", MemberType::Object)], BodyVerb::Create, 1001)?;
    let shown = write_configuration(state, &id, sent["config"].clone())?;
    state.note(call.who(), &TUNNELS, &account, &[(CollectionAction::Patch, &json!({"id": id}))]);
    Ok(Success::of(&shown))
}

/// Gives a tunnel another configuration, with the next version. A tunnel that is managed locally takes it and goes on by the file
/// beside its client: <https://developers.cloudflare.com/tunnel/advanced/local-management>.
pub(crate) fn write_configuration(state: &mut State, id: &str, config: Value) -> Result<Value, Refusal> {
    ingress::check(&config)?;
    let now = state.now();
    let account = state.scope_with(&TUNNELS, id).unwrap_or_default();
    let source = state.get(&TUNNELS, &account, id).map_or(Value::Null, |tunnel| tunnel["config_src"].clone());
    let Some(inside) = state.tunnels.get_mut(id) else { return Err(TUNNELS.not_found.refusal()) };
    let document = &mut inside.configuration;
    document["version"] = Value::from(document["version"].as_u64().unwrap_or_default() + 1);
    document["config"] = config;
    document["source"] = source;
    document["created_at"] = Value::from(now);
    Ok(document.clone())
}

/// Connects a client to a tunnel, as `cloudflared` would.
pub(crate) fn connect(state: &mut State, tunnel: &str) -> Option<String> {
    let account = state.scope_with(&TUNNELS, tunnel)?;
    let client = state.ids.next(IdForm::Uuid);
    let connection = state.ids.next(IdForm::Uuid);
    let now = state.now();
    let entry = json!({
        "id": client, "arch": "linux_amd64", "version": "2026.10.0", "config_version": 0, "run_at": now,
        "features": ["ha-origin"],
        "conns": [{
            "id": connection, "uuid": connection, "client_id": client, "client_version": "2026.10.0",
            "colo_name": "AMS01", "is_pending_reconnect": false, "opened_at": now, "origin_ip": "198.51.100.7",
        }],
    });
    let mut clients = state.tunnels.get(tunnel)?.clients.clone();
    clients.push(entry);
    set_clients(state, &account, tunnel, clients);
    Some(client)
}

/// A tunnel that never ran is inactive; one that lost its clients is down.
fn set_clients(state: &mut State, account: &str, tunnel: &str, clients: Vec<Value>) {
    let now = state.now();
    let Some(mut value) = state.get(&TUNNELS, account, tunnel).cloned() else { return };
    let had = text(&value, "status") == "healthy";
    if clients.is_empty() && had {
        (value["status"], value["conns_inactive_at"]) = (json!("down"), json!(now));
    } else if !clients.is_empty() && !had {
        (value["status"], value["conns_active_at"]) = (json!("healthy"), json!(now));
    }
    let connections = clients.iter().flat_map(|client| client["conns"].as_array().cloned().unwrap_or_default());
    value["connections"] = connections.collect();
    state.rows_mut(&TUNNELS, account).replace(value);
    if let Some(inside) = state.tunnels.get_mut(tunnel) {
        inside.clients = clients;
    }
}
