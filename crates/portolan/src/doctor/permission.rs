//! The table of permissions that a token needs, named as the rows of the collections have them, and the requests that probe
//! them. Pure.
//!
//! Reading is probed by a read. Whether something may be changed is probed by a deletion of an object that cannot exist: its
//! id is all zeros, which no id is. The API looks at the token before it looks for the object, so it answers 403 where the
//! permission is missing, and 404 where it is not: nothing changes either way.

use http::Method;
use portolan_cloudflare_api::{ApiError, Collection, ErrorClass, Page, Request, collections};
use serde_json::Value;

use super::check::Check;

const NIL_UUID: &str = "00000000-0000-0000-0000-000000000000";
const NIL_ID: &str = "00000000000000000000000000000000";
/// The phase in which redirects are made.
const REDIRECTS: &str = "http_request_dynamic_redirect";
const ENTRY_POINT: &str = "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint";
const RULE: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}";
/// Pages are as small as the API allows.
const PAGE: Page = Page { number: 1, per_page: 5, cursor: None };
/// The path names something that cannot exist, which is found out before the token is looked at.
const NO_ROUTE: u64 = 7003;

/// What a permission is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermissionScope {
    /// An account.
    Account,
    /// Each zone.
    Zone,
}

/// Who needs a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermissionNeed {
    /// Everybody.
    Always,
    /// Routes that let groups pass, by the groups' names.
    Groups,
    /// Routes that ask for a redirect to HTTPS.
    Redirects,
}

/// How a permission is tried.
#[derive(Clone, Copy, Debug)]
enum Probe {
    /// The collection may be listed; changing is not needed.
    Read(&'static Collection),
    /// The collection may be listed and changed; the id of an object that cannot exist.
    Edit(&'static Collection, &'static str),
    /// The zone's redirects may be read and changed.
    Redirects,
}

/// A permission of a token.
#[derive(Debug)]
pub(crate) struct Permission {
    pub(crate) check: Check,
    /// As the dashboard names it.
    pub(crate) name: &'static str,
    pub(crate) scope: PermissionScope,
    pub(crate) need: PermissionNeed,
    probe: Probe,
}

macro_rules! permission {
    ($id:literal, $name:expr, $meaning:literal, $scope:ident, $need:ident, $probe:expr) => {
        Permission {
            check: Check {
                id: concat!("permission-", $id),
                title: $name,
                meaning: $meaning,
                remedy: "edit the token in the dashboard (My Profile, API Tokens) and add this permission",
            },
            name: $name,
            scope: PermissionScope::$scope,
            need: PermissionNeed::$need,
            probe: $probe,
        }
    };
}

/// Everything that the job asks of a token.
pub(crate) static PERMISSIONS: [Permission; 7] = [
    permission!(
        "tunnel",
        collections::TUNNELS.untyped().permission.edit,
        "The token may read tunnels and write their configuration: the rules that lead names to origins.",
        Account,
        Always,
        Probe::Edit(collections::TUNNELS.untyped(), NIL_UUID)
    ),
    permission!(
        "access-apps",
        collections::ACCESS_APPS.permission.edit,
        "The token may write Access applications and policies: the protection of names. Nothing that asks for protection is \
         published without it.",
        Account,
        Always,
        Probe::Edit(&collections::ACCESS_APPS, NIL_UUID)
    ),
    permission!(
        "service-tokens",
        collections::SERVICE_TOKENS.permission.edit,
        "The token may make service tokens, for routes that ask for one.",
        Account,
        Always,
        Probe::Edit(&collections::SERVICE_TOKENS, NIL_UUID)
    ),
    permission!(
        "access-groups",
        collections::ACCESS_GROUPS.untyped().permission.read,
        "The token may look up Access groups by name, for routes that let groups pass, and the team's name, so that the tunnel \
         itself asks for the token of Access at protected names.",
        Account,
        Groups,
        Probe::Read(collections::ACCESS_GROUPS.untyped())
    ),
    permission!(
        "zone",
        collections::ZONES.untyped().permission.read,
        "The token may list zones, to find the one that holds a name. A tenant with zoneId can do without.",
        Account,
        Always,
        Probe::Read(collections::ZONES.untyped())
    ),
    permission!(
        "dns",
        collections::DNS_RECORDS.untyped().permission.edit,
        "The token may write the records of the zone.",
        Zone,
        Always,
        Probe::Edit(collections::DNS_RECORDS.untyped(), NIL_ID)
    ),
    permission!(
        "redirects",
        "Zone · Single Redirect · Edit",
        "The token may write the zone's redirect rules, for routes whose httpRedirect is set.",
        Zone,
        Redirects,
        Probe::Redirects
    ),
];

impl Permission {
    /// Whether it is for a part of Access, which an account has only with Zero Trust.
    pub(crate) fn is_of_access(&self) -> bool {
        match self.probe {
            Probe::Read(collection) | Probe::Edit(collection, _) => collection.template.contains("/access/"),
            Probe::Redirects => false,
        }
    }

    /// The read that tells whether one may look.
    pub(crate) fn read(&self, scope_id: &str) -> Request {
        match self.probe {
            Probe::Read(collection) | Probe::Edit(collection, _) => collection.list(scope_id, &PAGE),
            Probe::Redirects => Request::get(ENTRY_POINT, &[scope_id, REDIRECTS]),
        }
    }

    /// The deletion of nothing that tells whether one may change; none where looking is enough. `seen` is what the read found.
    pub(crate) fn write(&self, scope_id: &str, seen: Option<&Value>) -> Option<Request> {
        match self.probe {
            Probe::Read(_) => None,
            Probe::Edit(collection, nil) => Some(collection.delete(scope_id, nil, &[])),
            Probe::Redirects => {
                let ruleset = seen.and_then(|ruleset| ruleset["id"].as_str()).unwrap_or(NIL_ID);
                Some(Request::new(Method::DELETE, RULE, &[scope_id, ruleset, NIL_ID]))
            }
        }
    }
}

/// What an answer to a probe says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeAnswer {
    /// The permission is there, whatever became of the request.
    Granted,
    /// It is not.
    Refused(String),
    /// The account has no Zero Trust organisation, so that nothing is known of permissions for Access.
    NotEnabled,
    /// Nothing.
    Unknown(String),
}

impl ProbeAnswer {
    /// Reads an answer. Whatever was refused after the token was looked at shows that the token was good enough.
    pub(crate) fn of(answer: &Result<Value, ApiError>) -> Self {
        let Err(error) = answer else { return Self::Granted };
        match error.class {
            _ if error.is_access_not_enabled() => Self::NotEnabled,
            _ if error.has_code(NO_ROUTE) => Self::Unknown(error.to_string()),
            ErrorClass::Auth => Self::Refused(error.to_string()),
            ErrorClass::NotFound | ErrorClass::Conflict | ErrorClass::Validation | ErrorClass::Quota => Self::Granted,
            ErrorClass::RateLimit | ErrorClass::Transient | ErrorClass::Unknown => Self::Unknown(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use portolan_cloudflare_api::Effect;
    use serde_json::json;

    use super::*;

    fn failed(class: ErrorClass, codes: &[u64]) -> Result<Value, ApiError> {
        Err(ApiError {
            class,
            status: Some(400),
            codes: codes.to_vec(),
            message: "no".to_owned(),
            pointers: Vec::new(),
            retry_after: None,
            effect: Effect::None,
        })
    }

    #[test]
    fn a_probe_of_a_change_can_change_nothing() {
        for permission in &PERMISSIONS {
            let Some(request) = permission.write("s", Some(&json!({"id": "r"}))) else { continue };

            let last = request.path.rsplit('/').next().unwrap_or_default();
            assert_eq!(request.method, Method::DELETE, "{}", permission.name);
            assert!(last.chars().all(|letter| letter == '0' || letter == '-'), "{}", request.path);
            assert!(request.body.is_none(), "{}", permission.name);
        }
    }

    #[test]
    fn redirects_are_tried_in_the_zones_own_ruleset_where_it_has_one() {
        let redirects = &PERMISSIONS[6];

        let own = redirects.write("z", Some(&json!({"id": "r1"}))).unwrap();
        let none = redirects.write("z", None).unwrap();

        assert_eq!(own.path, format!("/zones/z/rulesets/r1/rules/{NIL_ID}"));
        assert_eq!(none.path, format!("/zones/z/rulesets/{NIL_ID}/rules/{NIL_ID}"));
    }

    #[test]
    fn not_found_shows_the_permission_and_a_refusal_its_lack() {
        assert_eq!(ProbeAnswer::of(&Ok(json!([]))), ProbeAnswer::Granted);
        assert_eq!(ProbeAnswer::of(&failed(ErrorClass::NotFound, &[81044])), ProbeAnswer::Granted);
        assert_eq!(ProbeAnswer::of(&failed(ErrorClass::Auth, &[10000])), ProbeAnswer::Refused("no".to_owned()));
    }

    #[test]
    fn an_answer_from_before_the_token_was_looked_at_says_nothing() {
        for answer in [
            failed(ErrorClass::Transient, &[]),
            failed(ErrorClass::RateLimit, &[971]),
            failed(ErrorClass::NotFound, &[7003, 7000]),
        ] {
            assert_eq!(ProbeAnswer::of(&answer), ProbeAnswer::Unknown("no".to_owned()), "{answer:?}");
        }
    }
}
