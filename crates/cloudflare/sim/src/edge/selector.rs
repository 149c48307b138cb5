//! The rules of policies and groups: who fits them.

use std::net::IpAddr;

use serde_json::Value;

use super::{request::EdgeRequest, view::StateView};
use crate::store::text;

/// How deep groups may be nested; beyond that nobody fits.
const DEPTH: usize = 10;

/// What is known of who asks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visitor<'a> {
    pub(super) email: Option<&'a str>,
    /// Id of the service token whose secret was shown.
    pub(super) token: Option<&'a str>,
    pub(super) ip: Option<IpAddr>,
    pub(super) country: Option<&'a str>,
}

impl<'a> Visitor<'a> {
    pub(super) fn of(request: &'a EdgeRequest, token: Option<&'a str>) -> Self {
        Self { email: request.email(), token, ip: request.ip(), country: request.country() }
    }

    /// A name for the visitor, where one is known.
    pub(super) fn identity(&self) -> Option<String> {
        self.email.or(self.token).map(str::to_owned)
    }
}

/// Groups of one account, and who asks.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) view: StateView<'a>,
    pub(super) account: &'a str,
    pub(super) visitor: Visitor<'a>,
}

impl Judge<'_> {
    /// Whether the visitor fits a policy or a group: some rule of `include`, all of `require`, none of `exclude`.
    pub(super) fn fits(&self, rules: &Value) -> bool {
        self.fits_at(rules, DEPTH)
    }

    /// A rule that the simulator cannot judge lets nobody in: it counts as missed, and as hit where it excludes.
    fn fits_at(&self, rules: &Value, depth: usize) -> bool {
        let list = |name: &str| rules[name].as_array().into_iter().flatten();
        let hit = |rule: &Value| self.hits(rule, depth);
        list("include").any(|rule| hit(rule) == Some(true))
            && list("require").all(|rule| hit(rule) == Some(true))
            && !list("exclude").any(|rule| hit(rule) != Some(false))
    }

    /// Whether one rule is about the visitor; `None` when nobody can tell.
    fn hits(&self, rule: &Value, depth: usize) -> Option<bool> {
        let (kind, of) = rule.as_object()?.iter().next()?;
        let visitor = &self.visitor;
        match kind.as_str() {
            "everyone" => Some(true),
            "email" => Some(visitor.email.is_some_and(|email| email.eq_ignore_ascii_case(text(of, "email")))),
            "email_domain" => Some(visitor.email.is_some_and(|email| in_domain(email, text(of, "domain")))),
            "group" => self.in_group(text(of, "id"), depth),
            "service_token" => Some(visitor.token.is_some_and(|token| token == text(of, "token_id"))),
            "any_valid_service_token" => Some(visitor.token.is_some()),
            "ip" => Some(visitor.ip.is_some_and(|ip| in_network(ip, text(of, "ip")))),
            "geo" => {
                let code = text(of, "country_code");
                Some(visitor.country.is_some_and(|country| country.eq_ignore_ascii_case(code)))
            }
            _ => None,
        }
    }

    fn in_group(&self, id: &str, depth: usize) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        let group = self.view.group(self.account, id)?;
        Some(self.fits_at(group, depth))
    }
}

fn in_domain(email: &str, domain: &str) -> bool {
    let wanted = domain.trim_start_matches('@');
    email.rsplit_once('@').is_some_and(|(_, domain)| domain.eq_ignore_ascii_case(wanted))
}

fn in_network(ip: IpAddr, network: &str) -> bool {
    let single = network.parse::<IpAddr>().is_ok_and(|only| only == ip);
    single || network.parse::<ipnet::IpNet>().is_ok_and(|network| network.contains(&ip))
}
