//! `/accounts/{account_id}/access/identity_providers`: where people prove who they are.

use serde_json::{Value, json};

use super::{
    ACCESS, invalid,
    quota::{count, refuse_more},
};
use crate::{
    field::{BodyVerb, Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    reply::Refusal,
    state::State,
    store::{flag, text},
    table::{Collection, Fail, PLAIN, PendingChange, Rules},
};

pub(crate) static IDENTITY_PROVIDERS: Collection = Collection {
    name: "identity_providers",
    what: "access_identity_provider",
    path: "access/identity_providers",
    fields: FIELDS,
    filters: FILTERS,
    duplicate: Some(Fail(409, 11009, "access.api.error.identity_provider_already_exists")),
    group: "access_groups",
    rules: Rules { prepare, ..PLAIN },
    ..ACCESS
};

const TYPES: [&str; 15] = [
    "onetimepin",
    "azureAD",
    "saml",
    "centrify",
    "facebook",
    "github",
    "google-apps",
    "google",
    "linkedin",
    "oidc",
    "okta",
    "onelogin",
    "pingone",
    "yandex",
    "cloudflare",
];

const FIELDS: &[Member] = &[
    required("name", MemberType::Text),
    required("type", MemberType::OneOf(&TYPES)),
    required("config", MemberType::Object),
    optional("scim_config", MemberType::Object),
];

const FILTERS: &[Filter] = &[filter(
    "scim_enabled",
    Test::Special(|value, wanted| flag(&value["scim_config"], "enabled") == (wanted == "true")),
)];

/// Secrets of a provider are taken and never shown again, not even kept.
fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if text(value, "name").trim().is_empty() {
        return Err(invalid("name must not be empty"));
    }
    for (part, secret) in [("config", "client_secret"), ("scim_config", "secret")] {
        if let Some(members) = value.get_mut(part).and_then(Value::as_object_mut) {
            members.remove(secret);
        }
    }
    if change.verb == BodyVerb::Create {
        let limit = state.options.quotas.identity_providers;
        refuse_more(count(state, &IDENTITY_PROVIDERS, change.scope), limit, "identity providers")?;
    }
    if value.get("scim_config").is_none() {
        value["scim_config"] = json!({"enabled": false});
    }
    let members = value.as_object_mut().into_iter();
    members.for_each(|members| members.retain(|name, _| !matches!(name.as_str(), "created_at" | "updated_at")));
    value["uid"] = value["id"].clone();
    Ok(())
}
