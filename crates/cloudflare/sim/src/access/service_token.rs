//! `/accounts/{account_id}/access/service_tokens`: credentials for programs. The secret is shown once.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    ACCESS, INVALID, duration, group, invalid,
    quota::{count, refuse_more},
    seconds, secret, stamp,
};
use crate::{
    call::RoutedCall,
    crud,
    field::{self, BodyVerb, Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    ids::IdForm,
    reply::{Refusal, Reply, Success},
    state::State,
    store::{id_of, text},
    table::{Collection, CollectionAction, LOOKED_AT, PLAIN, PendingChange, Rules},
};

pub(crate) static SERVICE_TOKENS: Collection = Collection {
    name: "service_tokens",
    what: "access_service_token",
    path: "access/service_tokens",
    actions: LOOKED_AT,
    fields: FIELDS,
    filters: FILTERS,
    key: |value| text(value, "client_id").to_owned(),
    group: "access_service_tokens",
    statuses: (201, 200),
    rules: Rules { prepare, changed, ..PLAIN },
    ..ACCESS
};

const FIELDS: &[Member] = &[
    required("name", MemberType::Text),
    optional("duration", MemberType::Text),
    optional("enabled", MemberType::Bool),
    optional("client_secret_version", MemberType::Number),
    optional(PREVIOUS, MemberType::Text),
];

const FILTERS: &[Filter] = &[filter("name", Test::Is("name")), filter("search", Test::Contains("name"))];

pub(super) const PREVIOUS: &str = "previous_client_secret_expires_at";
const YEAR: &str = "8760h";

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if text(value, "name").trim().is_empty() {
        return Err(invalid("name must not be empty"));
    }
    let new = change.verb == BodyVerb::Create;
    if value.get("duration").is_none() {
        value["duration"] = json!(YEAR);
    }
    if new || change.old.is_some_and(|old| old["duration"] != value["duration"]) {
        value["expires_at"] = expiry(state, text(value, "duration"))?;
    }
    if let Some(until) = value.get(PREVIOUS).and_then(Value::as_str) {
        value[PREVIOUS] = Value::from(format!("{:.0}", time(until)?));
    }
    if new {
        refuse_more(
            count(state, &SERVICE_TOKENS, change.scope),
            state.options.quotas.service_tokens,
            "service tokens",
        )?;
        value["client_id"] = Value::from(format!("{}.access", state.ids.next(IdForm::Hex)));
        value["last_seen_at"] = Value::Null;
    }
    for (name, default) in [("enabled", json!(true)), ("client_secret_version", json!(1))] {
        if value.get(name).is_none() {
            value[name] = default;
        }
    }
    stamp(state, value, new);
    Ok(())
}

/// When a token of this duration, made or refreshed now, ends.
fn expiry(state: &State, text: &str) -> Result<Value, Refusal> {
    if text == "forever" {
        return Ok(Value::Null);
    }
    let length = duration::parse(text).and_then(|length| SignedDuration::try_from(length).ok());
    let end = length.and_then(|length| (state.options.clock)().checked_add(length).ok());
    match end {
        Some(end) => Ok(Value::from(format!("{end:.0}"))),
        None => Err(invalid("duration must be such as 300ms or 2h45m, or forever")),
    }
}

fn time(text: &str) -> Result<Timestamp, Refusal> {
    text.parse().map_err(|_| invalid(format!("{PREVIOUS} must be a time such as 2026-01-01T00:00:00Z")))
}

fn changed(state: &mut State, _: &str, action: CollectionAction, value: &Value) {
    if action == CollectionAction::Delete {
        state.service_tokens.remove(id_of(value));
    }
}

/// `POST …/service_tokens`
pub(crate) fn create(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let made = crud::create(state, &SERVICE_TOKENS, account, call.json()?, None)?;
    let secret = secret::renew(state, id_of(&made));
    state.note(call.who(), &SERVICE_TOKENS, account, &[(CollectionAction::Create, &made)]);
    Ok(with_secret(made, secret).with(201))
}

fn with_secret(mut token: Value, secret: String) -> Success {
    token["client_secret"] = Value::from(secret);
    Success::of(&token)
}

/// `PUT …/service_tokens/{id}`: what is not sent stays. A higher version of the secret is a rotation.
pub(crate) fn update(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let old = crud::existing(state, &SERVICE_TOKENS, call)?.clone();
    let body = call.json()?;
    let version = |value: &Value| value["client_secret_version"].as_f64().unwrap_or_default();
    let rotates = version(&body) > version(&old);
    let mut new = crud::change(state, &SERVICE_TOKENS, account, BodyVerb::Patch, body.clone(), &old)?;
    if rotates && body.get(PREVIOUS).is_none() {
        new[PREVIOUS] = Value::from(seconds(state));
        state.rows_mut(&SERVICE_TOKENS, account).replace(new.clone());
    }
    state.note(call.who(), &SERVICE_TOKENS, account, &[(CollectionAction::Patch, &new)]);
    if rotates {
        let secret = secret::renew(state, id_of(&new));
        return Ok(with_secret(new, secret));
    }
    Ok(Success::of(&new))
}

/// `POST …/service_tokens/{id}/rotate`: a new secret; the last one counts until a given time, by default until now.
pub(crate) fn rotate(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let mut token = crud::existing(state, &SERVICE_TOKENS, call)?.clone();
    let sent = field::check(call.json()?, &[optional(PREVIOUS, MemberType::Text)], BodyVerb::Create, INVALID)?;
    let until = match sent.get(PREVIOUS).and_then(Value::as_str) {
        Some(until) => format!("{:.0}", time(until)?),
        None => seconds(state),
    };
    token[PREVIOUS] = Value::from(until);
    token["client_secret_version"] = json!(token["client_secret_version"].as_u64().unwrap_or(1) + 1);
    stamp(state, &mut token, false);
    let secret = secret::renew(state, id_of(&token));
    state.rows_mut(&SERVICE_TOKENS, account).replace(token.clone());
    state.note(call.who(), &SERVICE_TOKENS, account, &[(CollectionAction::Patch, &token)]);
    Ok(with_secret(token, secret))
}

/// `POST …/service_tokens/{id}/refresh`: the token's duration begins again.
pub(crate) fn refresh(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let mut token = crud::existing(state, &SERVICE_TOKENS, call)?.clone();
    token["expires_at"] = expiry(state, text(&token, "duration"))?;
    stamp(state, &mut token, false);
    state.rows_mut(&SERVICE_TOKENS, account).replace(token.clone());
    state.note(call.who(), &SERVICE_TOKENS, account, &[(CollectionAction::Patch, &token)]);
    Ok(Success::of(&token))
}

/// `DELETE …/service_tokens/{id}`: not while a policy or group names it. The answer is the token as it was.
pub(crate) fn delete(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let old = crud::existing(state, &SERVICE_TOKENS, call)?.clone();
    if group::is_named(state, account, "service_token", "token_id", id_of(&old)) {
        let why = "cannot delete service token because it is used by a policy, group, or app SCIM configuration";
        return Err(Refusal::bad(12139, format!("access.api.error.service_token_in_use: {why}")));
    }
    let gone = crud::remove(state, &SERVICE_TOKENS, account, old);
    state.note(call.who(), &SERVICE_TOKENS, account, &[(CollectionAction::Delete, &gone)]);
    Ok(Success::of(&gone))
}
