//! Who asks, and what they may see and change.

use std::collections::{BTreeMap, BTreeSet};

use http::HeaderMap;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::reply::Refusal;

/// How much of a group of the API a credential may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RightLevel {
    /// Look.
    Read,
    /// Look and change.
    Edit,
}

/// The groups that permissions are given for: `access_apps` with policies, `access_groups` with identity providers,
/// `rulesets` with redirects, `ssl` for certificates.
pub(crate) const GROUPS: [&str; 12] = [
    "access_apps",
    "access_groups",
    "access_service_tokens",
    "account_settings",
    "audit_logs",
    "dns",
    "gateway",
    "networks",
    "rulesets",
    "ssl",
    "tunnel",
    "zone",
];

/// The user of credentials that name none.
const NOBODY: &str = "token@example.com";

/// What a credential may see and do. Groups are `access_apps` (with policies), `access_groups` (with identity providers),
/// `access_service_tokens`, `account_settings`, `audit_logs`, `dns`, `gateway`, `networks`, `rulesets`, `ssl`, `tunnel`, `zone`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    accounts: Option<BTreeSet<String>>,
    zones: Option<BTreeSet<String>>,
    groups: Option<BTreeMap<String, RightLevel>>,
    email: Option<String>,
    expires_on: Option<Timestamp>,
    disabled: bool,
    of_account: bool,
}

impl Grant {
    /// Everything, everywhere.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only what further calls of this method name.
    pub fn only(mut self, group: &str, level: RightLevel) -> Self {
        self.groups.get_or_insert_default().insert(group.to_owned(), level);
        self
    }

    /// Sees this account; without any call, all of them.
    pub fn account(mut self, id: &str) -> Self {
        self.accounts.get_or_insert_default().insert(id.to_owned());
        self
    }

    /// Sees this zone; without any call, all zones of its accounts.
    pub fn zone(mut self, id: &str) -> Self {
        self.zones.get_or_insert_default().insert(id.to_owned());
        self
    }

    /// The user behind the credential, as audit entries show it. Requests of all credentials of a user are counted together.
    pub fn email(mut self, email: &str) -> Self {
        self.email = Some(email.to_owned());
        self
    }

    /// Good until then.
    pub fn expires_on(mut self, time: Timestamp) -> Self {
        self.expires_on = Some(time);
        self
    }

    /// Switched off: it is known, and good for nothing.
    pub fn disabled(mut self) -> Self {
        self.disabled = true;
        self
    }

    /// Belongs to an account, not to a user, and is verified there.
    pub fn of_account(mut self) -> Self {
        self.of_account = true;
        self
    }

    /// The user it belongs to.
    pub(crate) fn user(&self) -> &str {
        self.email.as_deref().unwrap_or(NOBODY)
    }

    /// When it ends, if ever.
    pub(crate) fn expiry(&self) -> Option<Timestamp> {
        self.expires_on
    }

    /// `active`, `disabled` or `expired`, as the API says it.
    pub(crate) fn status(&self, now: Timestamp) -> &'static str {
        match self.expires_on {
            _ if self.disabled => "disabled",
            Some(time) if time <= now => "expired",
            _ => "active",
        }
    }

    pub(crate) fn sees_account(&self, id: &str) -> bool {
        self.accounts.as_ref().is_none_or(|accounts| accounts.contains(id))
    }

    pub(crate) fn sees_zone(&self, id: &str, account: &str) -> bool {
        self.sees_account(account) && self.zones.as_ref().is_none_or(|zones| zones.contains(id))
    }

    pub(crate) fn allows(&self, group: &str, level: RightLevel) -> bool {
        let Some(groups) = &self.groups else { return true };
        groups.get(group).is_some_and(|granted| *granted >= level)
    }
}

/// The credential behind a request.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    /// A digest of the credential: its id, and what requests are counted by.
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) grant: Grant,
}

/// Registered credentials. As long as there never was one, any is accepted.
#[derive(Debug, Default)]
pub(crate) struct RegisteredCredentials {
    known: BTreeMap<String, Grant>,
    closed: bool,
}

impl RegisteredCredentials {
    pub(crate) fn add_token(&mut self, token: &str, grant: Grant) {
        self.closed = true;
        self.known.insert(digest(token), grant);
    }

    pub(crate) fn add_key(&mut self, email: &str, key: &str, grant: Grant) {
        self.closed = true;
        self.known.insert(digest(&format!("{email} {key}")), grant.email(email));
    }

    pub(crate) fn revoke(&mut self, token: &str) -> bool {
        self.known.remove(&digest(token)).is_some()
    }

    /// The credential's digest, or why the headers hold none.
    pub(crate) fn identify(headers: &HeaderMap) -> Result<Presented, Refusal> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(value) = header("authorization") {
            return bearer(value).map(|token| Presented { id: digest(token), key: false });
        }
        match (header("x-auth-key"), header("x-auth-email")) {
            (Some(key), Some(email)) if !key.is_empty() && !email.is_empty() => {
                Ok(Presented { id: digest(&format!("{email} {key}")), key: true })
            }
            _ => Err(Refusal::bad(9106, "Missing X-Auth-Key, X-Auth-Email or Authorization headers")),
        }
    }

    /// Whose limit a request counts against: the user's, or a token's own where an account has it.
    pub(crate) fn user_of(&self, presented: &Presented) -> String {
        match self.known.get(&presented.id) {
            Some(grant) if grant.of_account => presented.id.clone(),
            Some(grant) => grant.user().to_owned(),
            None => NOBODY.to_owned(),
        }
    }

    /// `verify` asks about the token itself and gets another answer than other requests.
    pub(crate) fn admit(&self, presented: Presented, path: &str, now: Timestamp) -> Result<Actor, Refusal> {
        let of_user = path.starts_with("/user/tokens/");
        let counts = |grant: &&Grant| {
            let verified = path.ends_with("/tokens/verify");
            !(of_user && grant.of_account) && (verified || grant.status(now) == "active")
        };
        let grant = match self.known.get(&presented.id).filter(counts) {
            Some(grant) => grant.clone(),
            None if !self.closed => Grant::all(),
            None if presented.key => return Err(Refusal::new(403, 9103, "Unknown X-Auth-Key or X-Auth-Email")),
            None if of_user => return Err(Refusal::new(401, 1000, "Invalid API Token")),
            None if path.starts_with("/accounts/") => return Err(Refusal::new(401, 10000, "Authentication error")),
            None => return Err(Refusal::new(403, 9109, "Invalid access token")),
        };
        let email = grant.user().to_owned();
        Ok(Actor { id: presented.id, email, grant })
    }
}

/// A credential that was sent, by its digest.
#[derive(Clone, Debug)]
pub(crate) struct Presented {
    pub(crate) id: String,
    key: bool,
}

fn bearer(value: &str) -> Result<&str, Refusal> {
    let token = value.strip_prefix("Bearer ").unwrap_or_default();
    if token.is_empty() || token.chars().any(|c| !c.is_ascii_graphic()) {
        let refusal = Refusal::bad(6003, "Invalid request headers");
        return Err(refusal.because(6111, "Invalid format for Authorization header"));
    }
    Ok(token)
}

/// What stands for a token in the log of requests: says nothing about it.
pub fn credential_id(token: &str) -> String {
    digest(token)
}

fn digest(credential: &str) -> String {
    let hash = Sha256::digest(credential.as_bytes());
    let number = hash[..16].iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    format!("{number:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn codes(credentials: &RegisteredCredentials, pairs: &[(&'static str, &str)], path: &str) -> Option<(u16, u64)> {
        let actor =
            RegisteredCredentials::identify(&headers(pairs)).and_then(|sent| credentials.admit(sent, path, now()));
        actor.err().map(|refusal| (refusal.status, refusal.failures[0].code))
    }

    fn now() -> Timestamp {
        "2026-11-16T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_token_that_ended_or_was_switched_off_is_only_good_for_asking_about_itself() {
        let mut credentials = RegisteredCredentials::default();
        credentials.add_token("old", Grant::all().expires_on("2026-11-16T11:59:59Z".parse().unwrap()));
        credentials.add_token("off", Grant::all().disabled());
        credentials.add_token("new", Grant::all().expires_on("2026-11-16T12:00:01Z".parse().unwrap()));

        for token in ["Bearer old", "Bearer off"] {
            assert_eq!(codes(&credentials, &[("authorization", token)], "/zones"), Some((403, 9109)), "{token}");
            assert_eq!(codes(&credentials, &[("authorization", token)], "/user/tokens/verify"), None, "{token}");
        }
        assert_eq!(codes(&credentials, &[("authorization", "Bearer new")], "/zones"), None);
    }

    #[test]
    fn an_accounts_token_is_verified_at_the_account_alone() {
        let mut credentials = RegisteredCredentials::default();
        credentials.add_token("t", Grant::all().of_account());
        let sent = [("authorization", "Bearer t")];

        assert_eq!(codes(&credentials, &sent, "/user/tokens/verify"), Some((401, 1000)));
        assert_eq!(codes(&credentials, &sent, "/accounts/a/tokens/verify"), None);
        assert_eq!(codes(&credentials, &sent, "/zones"), None);
    }

    #[test]
    fn any_token_is_accepted_until_one_is_registered() {
        let mut credentials = RegisteredCredentials::default();
        let sent = [("authorization", "Bearer anything")];
        assert_eq!(codes(&credentials, &sent, "/zones"), None);

        credentials.add_token("right", Grant::all());
        assert_eq!(codes(&credentials, &sent, "/zones"), Some((403, 9109)));
        assert_eq!(codes(&credentials, &sent, "/user/tokens/verify"), Some((401, 1000)));
        assert_eq!(codes(&credentials, &[("authorization", "Bearer right")], "/zones"), None);

        credentials.revoke("right");
        assert_eq!(codes(&credentials, &[("authorization", "Bearer right")], "/zones"), Some((403, 9109)));
    }

    #[test]
    fn headers_without_a_usable_credential_are_refused() {
        let credentials = RegisteredCredentials::default();

        assert_eq!(codes(&credentials, &[], "/zones"), Some((400, 9106)));
        assert_eq!(codes(&credentials, &[("authorization", "Basic x")], "/zones"), Some((400, 6003)));
        assert_eq!(codes(&credentials, &[("x-auth-key", "k")], "/zones"), Some((400, 9106)));
    }

    #[test]
    fn keys_go_with_the_email_they_were_registered_for() {
        let mut credentials = RegisteredCredentials::default();
        credentials.add_key("me@example.com", "k", Grant::all());

        let right = [("x-auth-key", "k"), ("x-auth-email", "me@example.com")];
        let wrong = [("x-auth-key", "k"), ("x-auth-email", "you@example.com")];
        assert_eq!(codes(&credentials, &right, "/zones"), None);
        assert_eq!(codes(&credentials, &wrong, "/zones"), Some((403, 9103)));
    }

    #[test]
    fn a_grant_names_what_may_be_seen_and_done() {
        let grant = Grant::all().account("a").only("dns", RightLevel::Edit).only("zone", RightLevel::Read);

        assert!(grant.sees_zone("z", "a") && !grant.sees_zone("z", "b"));
        assert!(grant.allows("dns", RightLevel::Edit) && grant.allows("zone", RightLevel::Read));
        assert!(!grant.allows("zone", RightLevel::Edit) && !grant.allows("tunnel", RightLevel::Read));
    }
}
