//! The second wall: a rule that makes `cloudflared` itself ask for the application's token. Pure.
//!
//! A rule of a protected name carries `originRequest.access {required, teamName, audTag}`. `cloudflared` then answers 403 to
//! whatever comes without a `Cf-Access-Jwt-Assertion` for one of the tags, signed by the keys of
//! `https://{teamName}.cloudflareaccess.com`: at any depth below a wildcard, and whatever happened to the application. It
//! looks at rules alone: what the document says for all rules counts for nothing.
//! (`cloudflared`: `ingress/middleware/jwtvalidator.go`, `config.AccessConfig` in `config/configuration.go`,
//! `validateIngress` in `ingress/ingress.go`; <https://github.com/cloudflare/cloudflare-docs/issues/32006>.)

use portolan_publication::Rule;
use serde_json::{Value, json};

/// What follows a team's name in the address of its login.
const LOGIN_DOMAIN: &str = ".cloudflareaccess.com";
/// The member of a rule's `originRequest`.
pub(crate) const MEMBER: &str = "access";
/// Stands for the audience of an application that is still to be made.
const NEW_AUDIENCE: &str = "(new application)";

/// What a rule asks of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wall {
    /// Nothing.
    Open,
    /// The token of an application; none names the one that is made in this run.
    Team { team: String, audience: Option<String> },
    /// The team is not known: a rule that asks already goes on asking.
    Kept { audience: Option<String> },
    /// Nothing is known: what the rule asks for stays.
    Untouched,
}

impl Wall {
    /// The rule as it is to stand where `found` does.
    pub(crate) fn on(&self, rule: &Rule, found: Option<&Value>) -> Rule {
        let standing =
            found.and_then(|found| found.pointer("/originRequest/access")).filter(|access| !access.is_null());
        let access = match self {
            Self::Open => None,
            Self::Team { team, audience } => Some(asks(team, audience.as_deref())),
            Self::Kept { audience } => {
                standing.map(|standing| match standing.get("teamName").and_then(Value::as_str) {
                    Some(team) => asks(team, audience.as_deref()),
                    None => standing.clone(),
                })
            }
            Self::Untouched => standing.cloned(),
        };
        let mut rule = rule.clone();
        rule.origin_request.extend(access.map(|access| (MEMBER.to_owned(), access)));
        rule
    }

    /// The same for an application that is known by now.
    pub(crate) fn of(&self, known: Option<&str>) -> Self {
        let of = |audience: &Option<String>| known.map(str::to_owned).or_else(|| audience.clone());
        match self {
            Self::Open | Self::Untouched => self.clone(),
            Self::Team { team, audience } => Self::Team { team: team.clone(), audience: of(audience) },
            Self::Kept { audience } => Self::Kept { audience: of(audience) },
        }
    }
}

fn asks(team: &str, audience: Option<&str>) -> Value {
    json!({"required": true, "teamName": team, "audTag": [audience.unwrap_or(NEW_AUDIENCE)]})
}

/// The team's name in an organisation: what `cloudflared` makes the address of its keys from.
pub(crate) fn team_of(organization: &Value) -> Option<String> {
    let domain = organization.get("auth_domain")?.as_str()?.trim().to_ascii_lowercase();
    domain.strip_suffix(LOGIN_DOMAIN).filter(|team| !team.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        let origin_request = json!({"noTLSVerify": true}).as_object().cloned().unwrap();
        Rule { tunnel_id: "t".to_owned(), service: "http://web".to_owned(), origin_request }
    }

    fn access(wall: &Wall, found: Option<&Value>) -> Option<Value> {
        wall.on(&rule(), found).origin_request.get(MEMBER).cloned()
    }

    fn team(audience: Option<&str>) -> Wall {
        Wall::Team { team: "acme".to_owned(), audience: audience.map(str::to_owned) }
    }

    #[test]
    fn the_rule_asks_for_the_token_of_its_application_alone() {
        let asked = json!({"required": true, "teamName": "acme", "audTag": ["f00"]});

        assert_eq!(access(&team(Some("f00")), None), Some(asked.clone()));
        assert_eq!(access(&team(None).of(Some("f00")), None), Some(asked));
        assert_eq!(access(&Wall::Open, Some(&json!({"originRequest": {"access": {"required": true}}}))), None);
    }

    #[test]
    fn without_the_team_a_rule_that_asks_goes_on_asking_for_the_application_there_is() {
        let found = json!({"originRequest": {"access": {"required": true, "teamName": "acme", "audTag": ["old"]}}});
        let kept = Wall::Kept { audience: Some("new".to_owned()) };

        assert_eq!(access(&kept, Some(&found)).unwrap()["audTag"], json!(["new"]));
        assert_eq!(access(&Wall::Untouched, Some(&found)).unwrap()["audTag"], json!(["old"]));
        assert_eq!(access(&kept, Some(&json!({"service": "http://web"}))), None);
    }

    #[test]
    fn the_team_is_what_stands_before_the_domain_of_logins() {
        let team = |domain: Value| team_of(&json!({ "auth_domain": domain }));

        assert_eq!(team(json!("Acme.cloudflareaccess.com")).as_deref(), Some("acme"));
        assert_eq!(team(json!("a.b.cloudflareaccess.com")).as_deref(), Some("a.b"));
        assert_eq!((team(json!("login.acme.com")), team(json!(".cloudflareaccess.com"))), (None, None));
        assert_eq!((team(Value::Null), team_of(&Value::Null)), (None, None));
    }
}
