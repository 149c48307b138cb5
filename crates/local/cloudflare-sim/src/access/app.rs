//! `/accounts/{account_id}/access/apps`: names that ask who is there before they answer.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    INVALID, PAGES, app_policies, check_duration,
    identity_provider::IDENTITY_PROVIDERS,
    invalid,
    quota::{count, refuse_more, refuse_over},
    stamp,
};
use crate::{
    field::{Field, Kind, Verb, optional, required},
    filter::{Filter, Test, filter},
    ids::IdForm,
    mask::mask,
    reply::Refusal,
    state::State,
    store::{flag, id_of, text},
    table::{Action, Change, Collection, Fail, PLAIN, Rules, Scope},
};

pub(crate) static APPS: Collection = Collection {
    name: "access_apps",
    what: "access_application",
    scope: Scope::Account,
    path: "access/apps",
    id: IdForm::Uuid,
    actions: &[Action::List, Action::Get, Action::Create, Action::Replace, Action::Delete],
    fields: FIELDS,
    filters: FILTERS,
    paging: PAGES,
    soft_delete: false,
    times: ("created_at", Some("updated_at")),
    key: |value| text(value, "domain").to_owned(),
    duplicate: Some(TAKEN),
    not_found: Fail(404, 11021, "access.api.error.unknown_application"),
    invalid: INVALID,
    group: "access_apps",
    statuses: (201, 202),
    rules: Rules { prepare, show, ..PLAIN },
};

const TAKEN: Fail = Fail(409, 11010, "access.api.error.application_already_exists");

/// Kinds of applications that are served; they have the same members.
const TYPES: Kind = Kind::OneOf(&["self_hosted", "ssh", "vnc"]);

const FIELDS: &[Field] = &[
    required("type", TYPES),
    required("domain", Kind::Text),
    optional("name", Kind::Text),
    optional("allow_authenticate_via_warp", Kind::Bool),
    optional("allow_iframe", Kind::Bool),
    optional("allowed_idps", Kind::Texts),
    optional("app_launcher_visible", Kind::Bool),
    optional("auto_redirect_to_identity", Kind::Bool),
    optional("cors_headers", Kind::Object),
    optional("custom_deny_message", Kind::Text),
    optional("custom_deny_url", Kind::Text),
    optional("custom_non_identity_deny_url", Kind::Text),
    optional("custom_pages", Kind::Texts),
    optional("destinations", Kind::List),
    optional("eager_redirect_cookie_setting", Kind::Bool),
    optional("enable_binding_cookie", Kind::Bool),
    optional("http_only_cookie_attribute", Kind::Bool),
    optional("logo_url", Kind::Text),
    optional("mfa_config", Kind::Object),
    optional("oauth_configuration", Kind::Object),
    optional("options_preflight_bypass", Kind::Bool),
    optional("path_cookie_attribute", Kind::Bool),
    optional("policies", Kind::List),
    optional("read_service_tokens_from_header", Kind::Text),
    optional("same_site_cookie_attribute", Kind::OneOf(&["none", "lax", "strict"])),
    optional("scim_config", Kind::Object),
    optional("self_hosted_domains", Kind::Texts),
    optional("service_auth_401_redirect", Kind::Bool),
    optional("session_duration", Kind::Text),
    optional("skip_interstitial", Kind::Bool),
    optional("tags", Kind::Texts),
    optional("use_clientless_isolation_app_launcher_url", Kind::Bool),
];

const FILTERS: &[Filter] = &[
    filter("name", Test::Loosely("name")),
    filter("domain", Test::Loosely("domain")),
    filter("aud", Test::Is("aud")),
    filter(
        "search",
        Test::Special(|value, wanted| {
            ["name", "domain", "aud"]
                .iter()
                .any(|member| text(value, member).to_lowercase().contains(&wanted.to_lowercase()))
        }),
    ),
    filter("exact", Test::Manner),
    filter("target_attributes", Test::Manner),
];

fn prepare(state: &mut State, change: &Change<'_>, value: &mut Value) -> Result<(), Refusal> {
    set_domains(state, change, value)?;
    refuse_taken(state, change.scope, value)?;
    check_settings(state, change.scope, value)?;
    if change.verb == Verb::Create {
        let limit = state.options.quotas.applications;
        refuse_more(count(state, &APPS, change.scope), limit, "applications")?;
        value["uid"] = value["id"].clone();
        value["aud"] = Value::from(state.ids.next(IdForm::Hex) + &state.ids.next(IdForm::Hex));
    }
    set_policies(state, change, value)?;
    // Credentials for provisioning are taken and never shown again.
    if let Some(config) = value.get_mut("scim_config") {
        mask(config);
    }
    complete(value);
    stamp(state, value, change.verb == Verb::Create);
    Ok(())
}

/// Policies that are not sent stay as they are.
fn set_policies(state: &mut State, change: &Change<'_>, value: &mut Value) -> Result<(), Refusal> {
    let old: Vec<Value> = change.old.map(|old| app_policies::stored(old).cloned().collect()).unwrap_or_default();
    value["policies"] = match change.sent.get("policies").filter(|policies| !policies.is_null()) {
        Some(policies) => app_policies::read(state, change.scope, policies, &old)?,
        None => Value::Array(old),
    };
    Ok(())
}

/// The domains that an application covers, as `destinations` and in the older form.
fn set_domains(state: &State, change: &Change<'_>, value: &mut Value) -> Result<(), Refusal> {
    let main = domain(text(value, "domain"))?;
    let destinations = change.sent.get("destinations").and_then(Value::as_array);
    let older = change.sent.get("self_hosted_domains").and_then(Value::as_array);
    let public = |uri: &str| domain(uri).map(|uri| json!({"type": "public", "uri": uri}));
    let destinations = match (destinations, older) {
        (Some(list), _) => list.iter().map(destination).collect::<Result<Vec<_>, _>>()?,
        (None, Some(list)) => list.iter().filter_map(Value::as_str).map(public).collect::<Result<Vec<_>, _>>()?,
        (None, None) => vec![public(&main)?],
    };
    value["domain"] = Value::from(main.as_str());
    value["self_hosted_domains"] =
        destinations.iter().filter(|found| is_public(found)).map(|found| found["uri"].clone()).collect();
    value["destinations"] = Value::Array(destinations);
    let number = domains(value).count();
    if !domains(value).any(|found| found == main) {
        return Err(invalid(format!("domain {main} is not included in destinations")));
    }
    refuse_over(number, state.options.quotas.domains_per_application, "domains per application")
}

fn is_public(destination: &Value) -> bool {
    text(destination, "type") == "public"
}

/// The public domains of an application.
pub(crate) fn domains(app: &Value) -> impl Iterator<Item = &str> {
    app["self_hosted_domains"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn destination(sent: &Value) -> Result<Value, Refusal> {
    let kinds = [
        "public",
        "private",
        "via_mcp_server_portal",
        "worker",
        "preview_worker",
        "all_workers",
        "all_preview_workers",
    ];
    let mut destination = sent.clone();
    if sent.is_object() && sent.get("type").is_none() {
        destination["type"] = json!("public");
    }
    let kind = text(&destination, "type");
    if !kinds.contains(&kind) {
        return Err(invalid("a destination has a type: public, private, …"));
    }
    if kind == "public" {
        let known = ["type", "uri", "overrides"];
        let members = destination.as_object().into_iter().flatten();
        if let Some((name, _)) = members.into_iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(invalid(format!("a public destination has no member {name}")));
        }
        destination["uri"] = Value::from(domain(text(&destination, "uri"))?);
    }
    Ok(destination)
}

/// A host with perhaps a path; `*` may stand for any part of either.
fn domain(given: &str) -> Result<String, Refusal> {
    let given = given.trim_end_matches('/');
    let (host, path) = given.split_once('/').map_or((given, None), |(host, path)| (host, Some(path)));
    let host = host.to_ascii_lowercase();
    if !host.contains('.')
        || !crate::dns::name::is_domain(&host.replace('*', "x"))
        || given.contains(char::is_whitespace)
    {
        return Err(invalid(format!("{given} is not a domain")));
    }
    Ok(path.map_or(host.clone(), |path| format!("{host}/{path}")))
}

fn refuse_taken(state: &State, account: &str, value: &Value) -> Result<(), Refusal> {
    let mut others = state.all(&APPS, account).filter(|other| id_of(other) != id_of(value));
    let shares = |other: &Value| domains(other).any(|taken| domains(value).any(|wanted| wanted == taken));
    if others.any(shares) { Err(TAKEN.refusal()) } else { Ok(()) }
}

fn check_settings(state: &State, account: &str, value: &Value) -> Result<(), Refusal> {
    check_duration(value, "session_duration")?;
    if flag(value, "options_preflight_bypass") && value.get("cors_headers").is_some() {
        return Err(invalid("options_preflight_bypass cannot be turned on with cors_headers"));
    }
    for name in ["logo_url", "custom_deny_url", "custom_non_identity_deny_url"] {
        let url = text(value, name);
        if !url.is_empty() && !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(invalid(format!("{name} must be a URL")));
        }
    }
    let mut providers = value["allowed_idps"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match providers.find(|id| state.get(&IDENTITY_PROVIDERS, account, id).is_none()) {
        Some(unknown) => Err(invalid(format!("identity provider {unknown} does not exist"))),
        None => Ok(()),
    }
}

/// What an application has unless its sender said otherwise.
fn complete(value: &mut Value) {
    let defaults = json!({
        "name": "", "allowed_idps": [], "app_launcher_visible": true, "auto_redirect_to_identity": false,
        "enable_binding_cookie": false, "http_only_cookie_attribute": true, "options_preflight_bypass": false,
        "session_duration": "24h", "tags": [],
    });
    if let (Some(members), Value::Object(defaults)) = (value.as_object_mut(), defaults) {
        for (name, default) in defaults {
            members.entry(name).or_insert(default);
        }
    }
}

/// Links are shown as the policies they lead to.
fn show<'a>(state: &State, account: &str, value: &'a Value, _: Action) -> Cow<'a, Value> {
    if app_policies::links(value).next().is_none() {
        return Cow::Borrowed(value);
    }
    let policies = app_policies::stored(value).filter_map(|policy| app_policies::resolved(state, account, policy));
    let mut shown = value.clone();
    shown["policies"] = policies.map(Cow::into_owned).collect();
    Cow::Owned(shown)
}
