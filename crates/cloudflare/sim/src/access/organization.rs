//! `/accounts/{account_id}/access/organizations`: the account's Zero Trust organisation. Every account has one here.
//!
//! The answer is one object, not a list:
//! <https://developers.cloudflare.com/api/resources/zero_trust/subresources/organizations/methods/list/>

use serde_json::json;

use crate::{
    account::ACCOUNTS,
    call::RoutedCall,
    reply::{Reply, Success},
    state::State,
    store::text,
};

/// What follows a team's name in the address of its login.
pub(crate) const LOGIN_DOMAIN: &str = ".cloudflareaccess.com";

/// `GET …/organizations`
#[expect(clippy::unnecessary_wraps, reason = "the shape of a handler")]
pub(crate) fn get(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let name = state.get(&ACCOUNTS, "", account).map_or("", |account| text(account, "name")).to_owned();
    Ok(Success::of(&json!({
        "auth_domain": format!("{}{LOGIN_DOMAIN}", team(state, account)),
        "name": name,
        "is_ui_read_only": false,
        "auto_redirect_to_identity": false,
        "allow_authenticate_via_warp": false,
        "login_design": {},
        "session_duration": "24h",
    })))
}

/// The team's name in the login's address.
pub(crate) fn team(state: &State, account: &str) -> String {
    let name = state.get(&ACCOUNTS, "", account).map_or("", |account| text(account, "name"));
    let slug: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "team".to_owned() } else { slug.to_owned() }
}
