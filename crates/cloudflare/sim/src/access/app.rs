//! `/accounts/{account_id}/access/apps`: names that ask who is there before they answer.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    ACCESS, app_policies, check_duration, domain,
    identity_provider::IDENTITY_PROVIDERS,
    invalid,
    quota::{count, refuse_more},
    stamp, tag,
};
use crate::{
    field::{BodyVerb, Member, MemberType, optional},
    filter::{Filter, Test, filter},
    ids::IdForm,
    mask::mask,
    reply::Refusal,
    state::State,
    store::{flag, text},
    table::{Collection, CollectionAction, Fail, PLAIN, PendingChange, Rules},
};

pub(crate) static APPS: Collection = Collection {
    name: "access_apps",
    what: "access_application",
    path: "access/apps",
    fields: FIELDS,
    filters: FILTERS,
    key: |value| text(value, "domain").to_owned(),
    duplicate: Some(TAKEN),
    not_found: Fail(404, 11021, "access.api.error.unknown_application"),
    rules: Rules { prepare, show, ..PLAIN },
    ..ACCESS
};

pub(super) const TAKEN: Fail = Fail(409, 11010, "access.api.error.application_already_exists");

/// Kinds of applications that are served; they have the same members.
const TYPES: [&str; 3] = ["self_hosted", "ssh", "vnc"];

const FIELDS: &[Member] = &[
    // Both are needed, and looked at by rules: a body without them is refused for its type.
    optional("type", MemberType::Text),
    optional("domain", MemberType::Text),
    optional("name", MemberType::Text),
    optional("allow_authenticate_via_warp", MemberType::Bool),
    optional("allow_iframe", MemberType::Bool),
    optional("allowed_idps", MemberType::Texts),
    optional("app_launcher_visible", MemberType::Bool),
    optional("auto_redirect_to_identity", MemberType::Bool),
    optional("cors_headers", MemberType::Object),
    optional("custom_deny_message", MemberType::Text),
    optional("custom_deny_url", MemberType::Text),
    optional("custom_non_identity_deny_url", MemberType::Text),
    optional("custom_pages", MemberType::Texts),
    optional("destinations", MemberType::List),
    optional("eager_redirect_cookie_setting", MemberType::Bool),
    optional("enable_binding_cookie", MemberType::Bool),
    optional("http_only_cookie_attribute", MemberType::Bool),
    optional("logo_url", MemberType::Text),
    optional("mfa_config", MemberType::Object),
    optional("oauth_configuration", MemberType::Object),
    optional("options_preflight_bypass", MemberType::Bool),
    optional("path_cookie_attribute", MemberType::Bool),
    optional("policies", MemberType::List),
    optional("read_service_tokens_from_header", MemberType::Text),
    optional("same_site_cookie_attribute", MemberType::OneOf(&["none", "lax", "strict"])),
    optional("scim_config", MemberType::Object),
    optional("self_hosted_domains", MemberType::Texts),
    optional("service_auth_401_redirect", MemberType::Bool),
    optional("session_duration", MemberType::Text),
    optional("skip_interstitial", MemberType::Bool),
    optional("tags", MemberType::Texts),
    optional("use_clientless_isolation_app_launcher_url", MemberType::Bool),
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

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if !TYPES.contains(&text(value, "type")) {
        return Err(invalid("app type is missing or invalid"));
    }
    domain::set(state, change, value)?;
    domain::refuse_taken(state, change.scope, value)?;
    check_settings(state, change.scope, value)?;
    if change.verb == BodyVerb::Create {
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
    stamp(state, value, change.verb == BodyVerb::Create);
    Ok(())
}

/// Policies that are not sent stay as they are.
fn set_policies(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    let old: Vec<Value> = change.old.map(|old| app_policies::stored(old).cloned().collect()).unwrap_or_default();
    value["policies"] = match change.sent.get("policies").filter(|policies| !policies.is_null()) {
        Some(policies) => app_policies::read(state, change.scope, policies, &old)?,
        None => Value::Array(old),
    };
    Ok(())
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
    // An organisation here has no such duration: every account begins without one.
    if flag(value, "allow_authenticate_via_warp") {
        let why = "cannot be set if the Warp Auth Session Duration is not set for the account";
        return Err(invalid(format!("allow_authenticate_via_warp {why}")));
    }
    tag::refuse_unknown(state, account, value)?;
    check_providers(state, account, value)
}

/// Whoever is sent on to a provider at once must have no choice between several:
/// <https://developers.cloudflare.com/api/resources/zero_trust/subresources/access/subresources/applications/methods/create/>.
fn check_providers(state: &State, account: &str, value: &Value) -> Result<(), Refusal> {
    let providers: Vec<&str> =
        value["allowed_idps"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(unknown) = providers.iter().find(|id| state.get(&IDENTITY_PROVIDERS, account, id).is_none()) {
        return Err(invalid(format!("identity provider {unknown} does not exist")));
    }
    if flag(value, "auto_redirect_to_identity") && providers.len() != 1 {
        return Err(invalid("auto_redirect_to_identity needs exactly one identity provider in allowed_idps"));
    }
    Ok(())
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
fn show<'a>(state: &State, account: &str, value: &'a Value, _: CollectionAction) -> Cow<'a, Value> {
    if app_policies::links(value).next().is_none() {
        return Cow::Borrowed(value);
    }
    let policies = app_policies::stored(value).filter_map(|policy| app_policies::resolved(state, account, policy));
    let mut shown = value.clone();
    shown["policies"] = policies.map(Cow::into_owned).collect();
    Cow::Owned(shown)
}
