//! Whom an Access group or policy lets in: rules as users write them → rules as the API takes them.
//!
//! A rule of several values becomes a rule for each: the API takes one address, one country and one team a rule.

use std::collections::BTreeSet;

use portolan_core::{Problem, reasons, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::reference::{IDENTITY_PROVIDER, NamedBy, RemoteReference, RemoteTargets, SpecReference};

/// Whom something lets in: who fits a rule of `include`, every rule of `require`, and none of `exclude`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRules {
    /// Who fits one of these is let in.
    #[schemars(length(min = 1, max = 500))]
    pub include: Vec<AccessRule>,
    /// Who fits one of these is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub exclude: Vec<AccessRule>,
    /// Who does not fit all of these is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub require: Vec<AccessRule>,
}

/// A rule: exactly one of the fields, and what each becomes. Where an identity provider tells, its id is a member of that.
macro_rules! rules {
    ($(
        $(#[doc = $about:literal])+
        $field:ident: $type:ty $(, told by $reference:ident as $member:literal)? => $wire:expr;
    )+) => {
        /// A rule: exactly one of its fields is set.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(transform = schema::rules(ONE_FIELD))]
        pub struct AccessRule {
            $($(#[doc = $about])+ #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)+
        }

        impl AccessRule {
            /// The identity providers that it refers to.
            fn providers(&self) -> impl Iterator<Item = &IdentityProviderReference> {
                let said = [$($(self.$field.as_ref().and_then(|said| said.$reference.as_ref()),)?)+];
                said.into_iter().flatten()
            }

            /// The rule as the API takes it, or several.
            fn wire(&self, targets: &RemoteTargets) -> Result<Vec<Value>, Problem> {
                let mut found: Vec<Value> = Vec::new();
                $(if let Some(said) = &self.$field {
                    let wire: fn(&$type) -> Vec<Value> = $wire;
                    let rules = wire(said);
                    $(let rules = told_by(rules, $member, provider(said.$reference.as_ref(), targets)?);)?
                    found.extend(rules);
                })+
                Ok(found)
            }
        }
    };
}

const ONE_FIELD: &[schema::CelRule] = &[(
    "[has(self.email), has(self.emailDomain), has(self.emailList), has(self.everyone) && self.everyone, \
     has(self.ipRanges), has(self.ipList), has(self.country), has(self.group), has(self.serviceToken), \
     has(self.anyValidServiceToken) && self.anyValidServiceToken, has(self.certificate) && self.certificate, \
     has(self.commonName), has(self.devicePosture), has(self.gsuite), has(self.github), has(self.azure), \
     has(self.okta), has(self.oidc), has(self.saml), has(self.authMethod), has(self.authContext), \
     has(self.loginMethod), has(self.externalEvaluation)]\
     .filter(set, set).size() == 1",
    "a rule has exactly one field: write a rule for each of them, as - email: {...} and - emailDomain: {...}",
)];

rules! {
    /// One address.
    email: EmailRule => |of| one("email", json!({ "email": of.email }));
    /// All addresses of a domain.
    email_domain: DomainRule => |of| one("email_domain", json!({ "domain": of.domain }));
    /// The addresses of a list at Cloudflare.
    email_list: IdRule => |of| one("email_list", json!({ "id": of.id }));
    /// Everybody.
    everyone: bool => |of| flag("everyone", *of);
    /// Requests from these networks.
    ip_ranges: NetworksRule => |of| each("ip", "ip", &of.ip);
    /// Requests from the networks of a list at Cloudflare.
    ip_list: IdRule => |of| one("ip_list", json!({ "id": of.id }));
    /// Requests from these countries.
    country: CountriesRule => |of| each("geo", "country_code", &of.country);
    /// Who is in another Access group.
    group: IdRule => |of| one("group", json!({ "id": of.id }));
    /// Requests with this service token.
    service_token: TokenRule => |of| one("service_token", json!({ "token_id": of.token_id }));
    /// Requests with any service token of the account.
    any_valid_service_token: bool => |of| flag("any_valid_service_token", *of);
    /// Requests with any valid client certificate.
    certificate: bool => |of| flag("certificate", *of);
    /// Requests with a client certificate of this name.
    common_name: CommonNameRule => |of| one("common_name", json!({ "common_name": of.common_name }));
    /// Devices that pass a posture check.
    device_posture: PostureRule => |of| one("device_posture", json!({ "integration_uid": of.integration_uid }));
    /// A group of Google Workspace.
    gsuite: GsuiteRule, told by idp_ref as "identity_provider_id" => |of| one("gsuite", json!({ "email": of.email }));
    /// An organisation at GitHub, or teams of it.
    github: GithubRule, told by idp_ref as "identity_provider_id" => github;
    /// A group of Azure AD.
    azure: AzureRule, told by idp_ref as "identity_provider_id" => |of| one("azureAD", json!({ "id": of.id }));
    /// A group of Okta.
    okta: OktaRule, told by idp_ref as "identity_provider_id" => |of| one("okta", json!({ "name": of.name }));
    /// Whose OIDC claim has a value.
    oidc: OidcRule, told by idp_ref as "identity_provider_id" => |of| {
        one("oidc", json!({ "claim_name": of.claim_name, "claim_value": of.claim_value }))
    };
    /// Whose SAML attribute has a value.
    saml: SamlRule, told by idp_ref as "identity_provider_id" => |of| {
        one("saml", json!({ "attribute_name": of.attribute_name, "attribute_value": of.attribute_value }))
    };
    /// Who logged in by this method, as RFC 8176 names it.
    auth_method: AuthMethodRule => |of| one("auth_method", json!({ "auth_method": of.auth_method }));
    /// Who fulfilled an authentication context of Azure AD.
    auth_context: AuthContextRule, told by idp_ref as "identity_provider_id" => |of| {
        one("auth_context", json!({ "id": of.id, "ac_id": of.ac_id }))
    };
    /// Who logged in with this identity provider.
    login_method: LoginMethodRule, told by idp_ref as "id" => |_| one("login_method", json!({}));
    /// Whom a service of yours lets in.
    external_evaluation: EvaluationRule => |of| {
        one("external_evaluation", json!({ "evaluate_url": of.evaluate_url, "keys_url": of.keys_url }))
    };
}

blocks! {
    /// One address.
    EmailRule {
        /// The address.
        email: String,
    }
    /// A domain.
    DomainRule {
        /// The domain, as `example.com`.
        domain: String,
    }
    /// Something at Cloudflare.
    IdRule {
        /// Its id.
        id: String,
    }
    /// Networks.
    NetworksRule {
        /// Networks or addresses, as `203.0.113.0/24`.
        #[schemars(length(min = 1, max = 500))]
        ip: Vec<String>,
    }
    /// Countries.
    CountriesRule {
        /// Codes of two letters, as `CH`.
        #[schemars(length(min = 1, max = 300))]
        country: Vec<String>,
    }
    /// A service token.
    TokenRule {
        /// Its id.
        token_id: String,
    }
    /// A client certificate.
    CommonNameRule {
        /// Its common name.
        common_name: String,
    }
    /// A posture check.
    PostureRule {
        /// Its id.
        integration_uid: String,
    }
    /// A group of Google Workspace.
    GsuiteRule {
        /// Address of the group.
        email: String,
        ;
        /// The identity provider that knows it.
        idp_ref: IdentityProviderReference,
    }
    /// An organisation at GitHub.
    GithubRule {
        /// Its name.
        name: String,
        /// Teams of it; everybody of the organisation where there is none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(length(max = 500))]
        teams: Vec<String>,
        ;
        /// The identity provider that knows it.
        idp_ref: IdentityProviderReference,
    }
    /// A group of Azure AD.
    AzureRule {
        /// Its id.
        id: String,
        ;
        /// The identity provider that knows it.
        idp_ref: IdentityProviderReference,
    }
    /// A group of Okta.
    OktaRule {
        /// Its name.
        name: String,
        ;
        /// The identity provider that knows it.
        idp_ref: IdentityProviderReference,
    }
    /// A claim of OIDC.
    OidcRule {
        /// Its name.
        claim_name: String,
        /// Its value.
        claim_value: String,
        ;
        /// The identity provider that makes it.
        idp_ref: IdentityProviderReference,
    }
    /// An attribute of SAML.
    SamlRule {
        /// Its name.
        attribute_name: String,
        /// Its value.
        attribute_value: String,
        ;
        /// The identity provider that makes it.
        idp_ref: IdentityProviderReference,
    }
    /// A method of authentication.
    AuthMethodRule {
        /// Its name, as `mfa`.
        auth_method: String,
    }
    /// An authentication context of Azure AD.
    AuthContextRule {
        /// Its id.
        id: String,
        /// Its name in Azure AD, as `c1`.
        ac_id: String,
        ;
        /// The identity provider that knows it.
        idp_ref: IdentityProviderReference,
    }
    /// A method of logging in.
    LoginMethodRule {
        ;
        /// The identity provider.
        idp_ref: IdentityProviderReference,
    }
    /// A service that decides.
    EvaluationRule {
        /// Where it is asked.
        evaluate_url: String,
        /// Where the keys are that it signs with.
        keys_url: String,
    }
    /// An identity provider of the account: exactly one of the three.
    #[schemars(transform = schema::rules(ONE_PROVIDER))]
    IdentityProviderReference {
        ;
        /// Name of an `AccessIdentityProvider`.
        #[schemars(length(max = 253))]
        name: String,
        /// The provider's id at Cloudflare.
        #[schemars(length(max = 255))]
        cloudflare_id: String,
        /// The provider's name at Cloudflare.
        #[schemars(length(max = 255))]
        cloudflare_name: String,
    }
}

const ONE_PROVIDER: &[schema::CelRule] = &[(
    "[has(self.name), has(self.cloudflareId), has(self.cloudflareName)].filter(set, set).size() == 1",
    "set exactly one of name, cloudflareId and cloudflareName",
)];

impl AccessRules {
    /// What the rules refer to.
    pub(crate) fn refers(&self) -> Vec<SpecReference> {
        let rules = [&self.include, &self.exclude, &self.require].into_iter().flatten();
        let all: BTreeSet<RemoteReference> =
            rules.flat_map(AccessRule::providers).filter_map(IdentityProviderReference::reference).collect();
        all.into_iter().map(SpecReference::Remote).collect()
    }

    /// The rules as the API takes them, by the names of its lists: all three, since an update replaces what it does not name.
    pub(crate) fn wire(&self, targets: &RemoteTargets) -> Result<[Vec<Value>; 3], Problem> {
        let wire = |list: &str, rules: &[AccessRule]| wire(list, rules, targets);
        Ok([wire("include", &self.include)?, wire("exclude", &self.exclude)?, wire("require", &self.require)?])
    }
}

impl IdentityProviderReference {
    /// The provider that is meant, where one is named.
    fn reference(&self) -> Option<RemoteReference> {
        let by = NamedBy::one_of(self.name.as_ref(), self.cloudflare_id.as_ref(), self.cloudflare_name.as_ref())?;
        Some(RemoteReference { kind: IDENTITY_PROVIDER, by, field: "idpRef" })
    }
}

fn wire(list: &str, rules: &[AccessRule], targets: &RemoteTargets) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let of_one = rule
            .wire(targets)
            .map_err(|problem| Problem { message: format!("spec.{list}[{index}]: {}", problem.message), ..problem })?;
        if of_one.is_empty() {
            let message = format!("spec.{list}[{index}] says nothing: set one of its fields, or take it away");
            return Err(Problem::invalid(reasons::INVALID_CONFIG, message));
        }
        found.extend(of_one);
    }
    Ok(found)
}

fn one(name: &str, said: Value) -> Vec<Value> {
    vec![Value::Object(Map::from_iter([(name.to_owned(), said)]))]
}

/// A rule without members, which `false` does not ask for.
fn flag(name: &str, set: bool) -> Vec<Value> {
    set.then(|| json!({ name: {} })).into_iter().collect()
}

fn each(name: &str, member: &str, values: &[String]) -> Vec<Value> {
    values.iter().map(|value| json!({ name: { member: value } })).collect()
}

/// A rule for each team, or one for the whole organisation.
fn github(of: &GithubRule) -> Vec<Value> {
    let rule = |said: Value| json!({ "github-organization": said });
    if of.teams.is_empty() {
        return vec![rule(json!({ "name": of.name }))];
    }
    of.teams.iter().map(|team| rule(json!({ "name": of.name, "team": team }))).collect()
}

/// Rules together with the identity provider that can tell.
fn told_by(mut rules: Vec<Value>, member: &str, provider: &str) -> Vec<Value> {
    let said = rules.iter_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    said.for_each(|said| said[member] = json!(provider));
    rules
}

fn provider<'a>(said: Option<&IdentityProviderReference>, targets: &'a RemoteTargets) -> Result<&'a str, Problem> {
    let reference = said.and_then(IdentityProviderReference::reference).ok_or_else(|| {
        let message =
            "names no identity provider; set idpRef.cloudflareName to the name of one, or cloudflareId to its id";
        Problem::invalid(reasons::INVALID_CONFIG, message)
    })?;
    targets.of(&reference).map(|target| target.id.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;
    use crate::reference::RemoteTarget;

    fn rules(rule: Value) -> AccessRules {
        from_value(json!({ "include": [rule] })).unwrap()
    }

    /// With everything that is referred to looked up, as the provider `p1`.
    fn include(rule: Value) -> Result<Vec<Value>, Problem> {
        let rules = rules(rule);
        let provider = RemoteTarget { id: "p1".parse().unwrap(), name: None };
        Ok(rules.wire(&RemoteTargets::for_each(&rules.refers(), std::iter::repeat(provider)))?[0].clone())
    }

    #[test]
    fn every_kind_of_rule_is_written_as_the_api_calls_it() {
        let idp = json!({ "cloudflareId": "p1" });
        for (rule, wire) in [
            (json!({ "email": { "email": "a@example.com" } }), json!({ "email": { "email": "a@example.com" } })),
            (
                json!({ "emailDomain": { "domain": "example.com" } }),
                json!({ "email_domain": { "domain": "example.com" } }),
            ),
            (json!({ "emailList": { "id": "l" } }), json!({ "email_list": { "id": "l" } })),
            (json!({ "everyone": true }), json!({ "everyone": {} })),
            (json!({ "ipList": { "id": "l" } }), json!({ "ip_list": { "id": "l" } })),
            (json!({ "group": { "id": "g" } }), json!({ "group": { "id": "g" } })),
            (json!({ "serviceToken": { "tokenId": "t" } }), json!({ "service_token": { "token_id": "t" } })),
            (json!({ "anyValidServiceToken": true }), json!({ "any_valid_service_token": {} })),
            (json!({ "certificate": true }), json!({ "certificate": {} })),
            (json!({ "commonName": { "commonName": "c" } }), json!({ "common_name": { "common_name": "c" } })),
            (
                json!({ "devicePosture": { "integrationUid": "d" } }),
                json!({ "device_posture": { "integration_uid": "d" } }),
            ),
            (
                json!({ "gsuite": { "email": "g@example.com", "idpRef": idp } }),
                json!({ "gsuite": { "email": "g@example.com", "identity_provider_id": "p1" } }),
            ),
            (
                json!({ "github": { "name": "org", "idpRef": idp } }),
                json!({ "github-organization": { "name": "org", "identity_provider_id": "p1" } }),
            ),
            (
                json!({ "azure": { "id": "a", "idpRef": idp } }),
                json!({ "azureAD": { "id": "a", "identity_provider_id": "p1" } }),
            ),
            (
                json!({ "okta": { "name": "o", "idpRef": idp } }),
                json!({ "okta": { "name": "o", "identity_provider_id": "p1" } }),
            ),
            (
                json!({ "oidc": { "claimName": "n", "claimValue": "v", "idpRef": idp } }),
                json!({ "oidc": { "claim_name": "n", "claim_value": "v", "identity_provider_id": "p1" } }),
            ),
            (
                json!({ "saml": { "attributeName": "n", "attributeValue": "v", "idpRef": idp } }),
                json!({ "saml": { "attribute_name": "n", "attribute_value": "v", "identity_provider_id": "p1" } }),
            ),
            (json!({ "authMethod": { "authMethod": "mfa" } }), json!({ "auth_method": { "auth_method": "mfa" } })),
            (
                json!({ "authContext": { "id": "i", "acId": "c1", "idpRef": idp } }),
                json!({ "auth_context": { "id": "i", "ac_id": "c1", "identity_provider_id": "p1" } }),
            ),
            (json!({ "loginMethod": { "idpRef": idp } }), json!({ "login_method": { "id": "p1" } })),
            (
                json!({ "externalEvaluation": { "evaluateUrl": "https://a.example", "keysUrl": "https://b.example" } }),
                json!({ "external_evaluation": { "evaluate_url": "https://a.example", "keys_url": "https://b.example" } }),
            ),
        ] {
            assert_eq!(include(rule.clone()).unwrap(), [wire], "{rule}");
        }
    }

    #[test]
    fn a_rule_of_several_values_becomes_a_rule_for_each() {
        let networks =
            include(json!({ "ipRanges": { "ip": ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.7"] } })).unwrap();
        let countries = include(json!({ "country": { "country": ["CH", "NZ"] } })).unwrap();
        let teams = json!({ "github": { "name": "org", "teams": ["a", "b"], "idpRef": { "cloudflareId": "p1" } } });

        assert_eq!((networks.len(), networks[2].clone()), (3, json!({ "ip": { "ip": "203.0.113.7" } })));
        assert_eq!(countries, [json!({ "geo": { "country_code": "CH" } }), json!({ "geo": { "country_code": "NZ" } })]);
        assert_eq!(include(teams).unwrap()[1]["github-organization"]["team"], json!("b"));
    }

    #[test]
    fn a_provider_may_be_named_in_three_ways_and_is_referred_to_once() {
        let of = |reference: Value| {
            let rule = json!({ "okta": { "name": "o", "idpRef": reference } });
            let twice: AccessRules = from_value(json!({ "include": [rule], "require": [rule] })).unwrap();
            twice.refers()
        };
        let provider = |by: NamedBy| {
            vec![SpecReference::Remote(RemoteReference { kind: "AccessIdentityProvider", by, field: "idpRef" })]
        };

        assert_eq!(of(json!({ "cloudflareId": "p1" })), provider(NamedBy::Id("p1".to_owned())));
        assert_eq!(of(json!({ "cloudflareName": "Corp" })), provider(NamedBy::RemoteName("Corp".to_owned())));
        let object = portolan_core::ObjectKey::cluster("corp");
        assert_eq!(of(json!({ "name": "corp" })), provider(NamedBy::Object(object)));
    }

    #[test]
    fn a_rule_whose_provider_is_not_known_is_not_sent() {
        let named = rules(json!({ "okta": { "name": "o", "idpRef": { "cloudflareName": "Corp" } } }));
        assert_eq!(named.wire(&RemoteTargets::default()).unwrap_err().reason, reasons::DEPENDENCY_ERROR);

        let none = include(json!({ "loginMethod": {} })).unwrap_err();
        assert_eq!(none.reason, reasons::INVALID_CONFIG);
        assert!(none.message.starts_with("spec.include[0]: names no identity provider"), "{none}");
    }

    #[test]
    fn a_rule_that_says_nothing_is_refused() {
        for rule in [json!({}), json!({ "everyone": false })] {
            assert_eq!(include(rule).unwrap_err().reason, reasons::INVALID_CONFIG);
        }
    }
}
