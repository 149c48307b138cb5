//! `/accounts/{account_id}/gateway/configuration`: what holds for all of an account's Gateway. Every account has it, and
//! nobody makes or deletes it.
//!
//! A PATCH changes the groups of settings that it names, each as a whole, and leaves the others:
//! <https://developers.cloudflare.com/api/resources/zero_trust/subresources/gateway/subresources/configurations/methods/edit/>

use serde_json::{Value, json};

use crate::{
    call::RoutedCall,
    field::{self, BodyVerb, Member, MemberType, optional, required},
    ids::IdForm,
    page::Paging,
    reply::{Refusal, Reply, Success},
    state::State,
    table::{Collection, CollectionAction, Fail, ROW},
};

/// Where documents are kept, each known by its account. They are served at paths of their own.
pub(crate) static CONFIGURATIONS: Collection = Collection {
    name: "gateway_configuration",
    what: "gateway_configuration",
    path: "gateway/configuration",
    id: IdForm::Hex,
    actions: &[],
    fields: FIELDS,
    paging: Paging::Pages { default: 1, min: 1, max: 1 },
    times: ("created_at", Some("updated_at")),
    key: |_| String::new(),
    not_found: Fail(404, 1001, "configuration not found"),
    invalid: INVALID,
    group: "gateway",
    ..ROW
};

/// The documentation names no code for what is refused.
const INVALID: u64 = 1000;

const FIELDS: &[Member] = &[required("settings", MemberType::Object)];

/// The groups of settings, and the members of each.
const GROUPS: &[(&str, &[Member])] = &[
    ("activity_log", &[optional("enabled", MemberType::Bool)]),
    (
        "antivirus",
        &[
            optional("enabled_download_phase", MemberType::Bool),
            optional("enabled_upload_phase", MemberType::Bool),
            optional("fail_closed", MemberType::Bool),
            optional("notification_settings", MemberType::Object),
        ],
    ),
    (
        "block_page",
        &[
            optional("enabled", MemberType::Bool),
            optional("name", MemberType::Text),
            optional("footer_text", MemberType::Text),
            optional("header_text", MemberType::Text),
            optional("logo_path", MemberType::Text),
            optional("background_color", MemberType::Text),
            optional("mailto_address", MemberType::Text),
            optional("mailto_subject", MemberType::Text),
            optional("suppress_footer", MemberType::Bool),
            optional("include_context", MemberType::Bool),
            optional("mode", MemberType::OneOf(&["", "customized_block_page", "redirect_uri"])),
            optional("target_uri", MemberType::Text),
        ],
    ),
    ("body_scanning", &[optional("inspection_mode", MemberType::OneOf(&["deep", "shallow"]))]),
    (
        "browser_isolation",
        &[
            optional("url_browser_isolation_enabled", MemberType::Bool),
            optional("non_identity_enabled", MemberType::Bool),
        ],
    ),
    ("certificate", &[required("id", MemberType::Text)]),
    ("custom_certificate", &[required("enabled", MemberType::Bool), optional("id", MemberType::Text)]),
    ("extended_email_matching", &[optional("enabled", MemberType::Bool)]),
    ("fips", &[optional("tls", MemberType::Bool)]),
    ("protocol_detection", &[optional("enabled", MemberType::Bool)]),
    ("tls_decrypt", &[optional("enabled", MemberType::Bool)]),
];

/// `GET …/configuration`
#[expect(clippy::unnecessary_wraps, reason = "the shape of a handler")]
pub(crate) fn get(state: &mut State, call: &RoutedCall) -> Reply {
    Ok(Success::of(&shown(current(state, call.param("account_id")))))
}

/// `PATCH …/configuration`
pub(crate) fn patch(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let sent = field::check(call.json()?, FIELDS, BodyVerb::Patch, INVALID)?;
    let mut document = current(state, account);
    for (group, said) in sent["settings"].as_object().into_iter().flatten() {
        let mut now = checked(group, said)?;
        keep_read_only(group, &document["settings"][group], &mut now);
        document["settings"][group] = now;
    }
    document["updated_at"] = Value::from(state.now());
    let rows = state.rows_mut(&CONFIGURATIONS, account);
    if rows.replace(document.clone()).is_none() {
        rows.insert(document.clone());
    }
    state.note(call.who(), &CONFIGURATIONS, account, &[(CollectionAction::Patch, &document)]);
    Ok(Success::of(&shown(document)))
}

fn checked(group: &str, said: &Value) -> Result<Value, Refusal> {
    let Some((_, members)) = GROUPS.iter().find(|(name, _)| *name == group) else {
        return Err(Refusal::bad(INVALID, format!("Request body is invalid: unknown field \"settings.{group}\".")));
    };
    // A group is replaced as a whole, so what it needs has to be there.
    Ok(Value::Object(field::check(said.clone(), members, BodyVerb::Replace, INVALID)?))
}

/// What the service itself says of a group stays.
fn keep_read_only(group: &str, before: &Value, now: &mut Value) {
    let members = GROUPS.iter().find(|(name, _)| *name == group).map_or(&[] as &[Member], |(_, members)| members);
    for (name, value) in before.as_object().into_iter().flatten() {
        if members.iter().all(|member| member.name != name) {
            now[name] = value.clone();
        }
    }
}

/// An account's document: as it was last written, or as every account has it.
fn current(state: &State, account: &str) -> Value {
    let usual = || {
        json!({
            "id": account,
            "settings": {
                "activity_log": { "enabled": true },
                "antivirus": { "enabled_download_phase": false, "enabled_upload_phase": false, "fail_closed": false },
                "block_page": { "enabled": false, "read_only": false, "version": 0 },
                "fips": { "tls": false },
                "protocol_detection": { "enabled": false },
                "tls_decrypt": { "enabled": false },
            },
            "created_at": "2024-01-01T00:00:00.000000Z",
            "updated_at": "2024-01-01T00:00:00.000000Z",
        })
    };
    state.get(&CONFIGURATIONS, account, account).cloned().unwrap_or_else(usual)
}

/// A document has no id of its own.
fn shown(mut document: Value) -> Value {
    if let Some(members) = document.as_object_mut() {
        members.remove("id");
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_not_known_or_has_a_member_that_is_not_is_refused_by_name() {
        let refused = |group: &str, said: Value| checked(group, &said).unwrap_err().failures[0].message.clone();

        assert!(refused("tls", json!({})).contains("settings.tls"));
        assert!(refused("tls_decrypt", json!({ "enable": true })).contains("\"enable\""));
        assert!(refused("block_page", json!({ "version": 1 })).contains("\"version\""));
        assert!(refused("custom_certificate", json!({})).contains("enabled is a required field"));
    }
}
