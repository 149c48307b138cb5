//! What a policy or group lets in: each rule is an object with one member, the name of its kind.

use serde_json::Value;

use super::{
    group::GROUPS, identity_provider::IDENTITY_PROVIDERS, invalid, list::LISTS as NAMED_LISTS,
    service_token::SERVICE_TOKENS,
};
use crate::{reply::Refusal, state::State, store::text};

/// A kind of rule: its name, the members it must have, and those it may have.
type RuleKind = (&'static str, &'static [&'static str], &'static [&'static str]);

const KINDS: [RuleKind; 26] = [
    ("any_valid_service_token", &[], &[]),
    ("auth_context", &["id", "ac_id", "identity_provider_id"], &[]),
    ("auth_method", &["auth_method"], &[]),
    ("azureAD", &["id", "identity_provider_id"], &[]),
    ("certificate", &[], &[]),
    ("cloudflare_account_member", &[], &["account_id"]),
    ("common_name", &["common_name"], &[]),
    ("device_posture", &["integration_uid"], &["account_id"]),
    ("email", &["email"], &[]),
    ("email_domain", &["domain"], &[]),
    ("email_list", &["id"], &[]),
    ("everyone", &[], &[]),
    ("external_evaluation", &["evaluate_url", "keys_url"], &[]),
    ("geo", &["country_code"], &[]),
    ("github-organization", &["identity_provider_id", "name"], &["team"]),
    ("group", &["id"], &[]),
    ("gsuite", &["email", "identity_provider_id"], &[]),
    ("ip", &["ip"], &[]),
    ("ip_list", &["id"], &[]),
    ("linked_app_token", &["app_uid"], &[]),
    ("login_method", &["id"], &[]),
    ("oidc", &["claim_name", "claim_value", "identity_provider_id"], &[]),
    ("okta", &["identity_provider_id", "name"], &[]),
    ("saml", &["attribute_name", "attribute_value", "identity_provider_id"], &[]),
    ("service_token", &["token_id"], &[]),
    ("user_risk_score", &["user_risk_score"], &[]),
];

/// The lists of rules that policies and groups have.
const LISTS: [&str; 3] = ["include", "exclude", "require"];

/// Checks the three lists of an object and writes those that are missing as empty ones.
pub(super) fn check_lists(state: &State, account: &str, value: &mut Value) -> Result<(), Refusal> {
    for list in LISTS {
        match value.get(list) {
            None | Some(Value::Null) => value[list] = Value::Array(Vec::new()),
            Some(Value::Array(rules)) => {
                rules.iter().try_for_each(|rule| check(state, account, rule))?;
            }
            Some(_) => return Err(invalid(format!("{list} must be an array of rules"))),
        }
    }
    if rules(value, &LISTS[..1]).next().is_none() {
        return Err(invalid("include must have at least one rule"));
    }
    Ok(())
}

fn rules<'a>(value: &'a Value, lists: &'a [&str]) -> impl Iterator<Item = &'a Value> {
    lists.iter().flat_map(|list| value[*list].as_array().into_iter().flatten())
}

/// How many rules an object has.
pub(super) fn count(value: &Value) -> usize {
    rules(value, &LISTS).count()
}

/// Whether any rule of an object names this id: of a group (`group`) or of a token (`service_token`).
pub(super) fn names(value: &Value, kind: &str, member: &str, id: &str) -> bool {
    rules(value, &LISTS).any(|rule| rule.get(kind).is_some_and(|rule| text(rule, member) == id))
}

fn check(state: &State, account: &str, rule: &Value) -> Result<(), Refusal> {
    let members = rule.as_object().filter(|members| members.len() == 1);
    let Some((name, inner)) = members.and_then(|members| members.iter().next()) else {
        return Err(invalid("a rule is an object with exactly one member"));
    };
    let Some((_, required, optional)) = KINDS.iter().find(|(kind, _, _)| kind == name) else {
        return Err(invalid(format!("there is no rule {name}")));
    };
    let Some(inner) = inner.as_object() else { return Err(invalid(format!("{name} must be an object"))) };
    if let Some(missing) = required.iter().find(|member| !inner.contains_key(**member)) {
        return Err(invalid(format!("{name}.{missing} is required")));
    }
    let known = |member: &&String| required.contains(&member.as_str()) || optional.contains(&member.as_str());
    if let Some(stranger) = inner.keys().find(|member| !known(member)) {
        return Err(invalid(format!("{name} has no member {stranger}")));
    }
    if name != "user_risk_score"
        && let Some((member, _)) = inner.iter().find(|(_, value)| !value.is_string())
    {
        return Err(invalid(format!("{name}.{member} must be a string")));
    }
    check_value(state, account, name, &rule[name])
}

fn check_value(state: &State, account: &str, name: &str, inner: &Value) -> Result<(), Refusal> {
    let there = |row, id: &str| state.get(row, account, id).is_some();
    match name {
        "email" if !is_email(text(inner, "email")) => {
            Err(invalid(format!("{} is not an email address", text(inner, "email"))))
        }
        "email_domain" if !crate::dns::name::is_domain(text(inner, "domain").trim_start_matches('@')) => {
            Err(invalid(format!("{} is not a domain", text(inner, "domain"))))
        }
        "ip" if !is_network(text(inner, "ip")) => Err(invalid(format!("{} is not an IP range", text(inner, "ip")))),
        "group" if !there(&GROUPS, text(inner, "id")) => {
            Err(Refusal::bad(11020, "access.api.error.failed_to_load_group"))
        }
        "service_token" if !there(&SERVICE_TOKENS, text(inner, "token_id")) => {
            Err(invalid(format!("service token {} does not exist", text(inner, "token_id"))))
        }
        "login_method" => known_provider(there(&IDENTITY_PROVIDERS, text(inner, "id")), text(inner, "id")),
        "email_list" | "ip_list" if !there(&NAMED_LISTS, text(inner, "id")) => {
            Err(invalid(format!("list {} does not exist", text(inner, "id"))))
        }
        _ => match inner.get("identity_provider_id").and_then(Value::as_str) {
            Some(id) => known_provider(there(&IDENTITY_PROVIDERS, id), id),
            None => Ok(()),
        },
    }
}

fn known_provider(known: bool, id: &str) -> Result<(), Refusal> {
    if known { Ok(()) } else { Err(invalid(format!("identity provider {id} does not exist"))) }
}

fn is_email(text: &str) -> bool {
    let halves = text.split_once('@');
    halves.is_some_and(|(name, domain)| {
        !name.is_empty() && !name.contains(char::is_whitespace) && crate::dns::name::is_domain(domain)
    })
}

fn is_network(text: &str) -> bool {
    text.parse::<ipnet::IpNet>().is_ok() || text.parse::<std::net::IpAddr>().is_ok()
}
