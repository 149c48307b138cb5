//! What the users of a history asked for, in words of their own: independent of how the operator reads annotations.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use crate::manifests::ZONE;
use crate::zerotrust::RouteManifest;
use crate::zerotrust::wishes::NameWish;

/// Templates that histories edit.
pub(in crate::zerotrust) const TEMPLATES: [&str; 2] = ["team", "guests"];

/// How a route asks for protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::zerotrust) enum Protection {
    None,
    Emails(Vec<&'static str>),
    Group,
    Template(&'static str),
    /// By the base template of the tenant `walled`, which the route does not name.
    Base,
    /// By the template `default` of the namespace `shop`, which the route does not name.
    Default,
}

/// Templates that take part without being named: those of a tenant and of a namespace.
pub(in crate::zerotrust) const IMPLICIT: [&str; 2] = ["base-walled", "default"];

/// What one route asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::zerotrust) struct RouteWish {
    pub(in crate::zerotrust) hostname: String,
    pub(in crate::zerotrust) protection: Protection,
    pub(in crate::zerotrust) token: bool,
    pub(in crate::zerotrust) tenant: &'static str,
    pub(in crate::zerotrust) direct: bool,
    pub(in crate::zerotrust) enabled: bool,
}

/// Routes of lower numbers are in `default`, the others in `shop`.
pub(in crate::zerotrust) const FIRST_OF_SHOP: usize = 4;
const EMAILS: [&str; 3] = ["ann@example.com", "bob@example.com", "cy@example.com"];

impl RouteWish {
    /// Out of a small world of names, so that histories meet.
    pub(in crate::zerotrust) fn any(number: usize, random: &mut StdRng) -> Self {
        let hostname = match random.random_range(0..10) {
            0..7 => format!("r{number}.{ZONE}"),
            7..9 => format!("r{number}-renamed.{ZONE}"),
            _ => format!("shared.{ZONE}"),
        };
        let protection = match random.random_range(0..10) {
            0..2 => Protection::None,
            2..6 => Protection::Emails(EMAILS[..random.random_range(1..=3)].to_vec()),
            6..7 => Protection::Group,
            _ => Protection::Template(TEMPLATES.choose(random).copied().unwrap_or(TEMPLATES[0])),
        };
        // Who takes a name over that was protected says with an annotation of its own that it is to be open.
        let protection = match protection {
            Protection::Template(_) if hostname.starts_with("shared") => Protection::Emails(EMAILS[..1].to_vec()),
            protection => protection,
        };
        let direct = protection == Protection::None && random.random_bool(0.3);
        Self {
            hostname,
            token: protection != Protection::None && random.random_bool(0.4),
            protection,
            tenant: if random.random_bool(0.15) { "second" } else { "prod" },
            direct,
            enabled: random.random_bool(0.93),
        }
    }

    /// Out of the world of an attack: more ways to ask for protection, names of any depth, and names that another cluster
    /// publishes, too.
    pub(in crate::zerotrust) fn attacked(number: usize, random: &mut StdRng) -> Self {
        let own = format!("r{number}.{ZONE}");
        let emails = |random: &mut StdRng| Protection::Emails(EMAILS[..random.random_range(1..=3)].to_vec());
        let (hostname, protection, tenant) = if number >= FIRST_OF_SHOP {
            (own, Protection::Default, "shop")
        } else {
            match random.random_range(0..20) {
                0..2 => (own, Protection::None, "prod"),
                2..4 => (own, Protection::Base, "walled"),
                4..5 => (format!("*.w{number}.{ZONE}"), Protection::Base, "walled"),
                5..7 => (format!("*.w{number}.{ZONE}"), emails(random), "prod"),
                7..9 => (format!("r{number}-renamed.{ZONE}"), Protection::Base, "walled"),
                9..11 => (format!("g{number}.{ZONE}"), Protection::Emails(vec![EMAILS[0]]), "prod"),
                11..12 => (format!("shared.{ZONE}"), emails(random), "prod"),
                12..13 => (own, Protection::Group, "second"),
                13..17 => {
                    (own, Protection::Template(TEMPLATES.choose(random).copied().unwrap_or(TEMPLATES[0])), "prod")
                }
                _ => (own, emails(random), if random.random_bool(0.2) { "second" } else { "prod" }),
            }
        };
        let token = protection != Protection::None && !hostname.starts_with('*') && random.random_bool(0.3);
        Self { hostname, protection, token, tenant, direct: false, enabled: random.random_bool(0.95) }
    }

    /// The namespace of the route.
    pub(in crate::zerotrust) fn namespace(&self) -> &'static str {
        if self.tenant == "shop" { "shop" } else { "default" }
    }

    /// The template that the route cannot be published without and does not name.
    pub(in crate::zerotrust) fn implicit(&self) -> Option<&'static str> {
        match self.protection {
            Protection::Base => Some(IMPLICIT[0]),
            Protection::Default => Some(IMPLICIT[1]),
            _ => None,
        }
    }

    /// The route's manifest.
    pub(in crate::zerotrust) fn route(&self, number: usize) -> RouteManifest {
        let route = RouteManifest::to(&format!("r{number}"), &self.hostname).with("tenant", self.tenant);
        let mut route = route.within(self.namespace());
        if !self.enabled {
            route = route.with("enabled", "false");
        }
        if self.direct {
            route = route.with("dnsOnly.enabled", "true").with("dnsIp", "10.9.8.7");
        }
        if self.token {
            route = route.with("serviceToken.enabled", "true");
        }
        match &self.protection {
            Protection::None => route.with("access.enabled", "false"),
            Protection::Base | Protection::Default => route,
            Protection::Emails(emails) => {
                route.with("access.enabled", "true").with("access.allowEmails", &emails.join(","))
            }
            Protection::Group => route.with("accessApp", "true").with("allowGroups", "Engineering"),
            Protection::Template(name) => route.with("template", name),
        }
    }
}

/// All that users said last.
#[derive(Clone, Debug)]
pub(in crate::zerotrust) struct Users {
    pub(in crate::zerotrust) routes: BTreeMap<usize, RouteWish>,
    templates: BTreeMap<&'static str, usize>,
    pub(in crate::zerotrust) origin: String,
}

impl Default for Users {
    fn default() -> Self {
        let templates = TEMPLATES.iter().chain(&IMPLICIT).map(|name| (*name, 0)).collect();
        Self { routes: BTreeMap::new(), templates, origin: crate::zerotrust::ORIGIN.to_owned() }
    }
}

impl Users {
    pub(in crate::zerotrust) fn ask(&mut self, number: usize, asked: RouteWish) {
        self.routes.insert(number, asked);
    }

    pub(in crate::zerotrust) fn drop_route(&mut self, number: usize) {
        self.routes.remove(&number);
    }

    pub(in crate::zerotrust) fn edit_template(&mut self, name: &'static str, choice: usize) {
        self.templates.insert(name, choice);
    }

    /// The spec of a template as it is now: two ways to protect, one that does not.
    pub(in crate::zerotrust) fn template(&self, name: &str) -> Value {
        match self.emails_of(name) {
            None => json!({ "originService": { "httpRedirect": false } }),
            Some(emails) => {
                json!({ "accessApplication": { "enabled": true, "allowEmails": emails, "sessionDuration": "12h" } })
            }
        }
    }

    fn emails_of(&self, template: &str) -> Option<Vec<&'static str>> {
        match self.templates.get(template) {
            Some(0) => Some(vec!["ann@example.com"]),
            Some(1) => Some(vec!["ann@example.com", "guest@example.com"]),
            _ => None,
        }
    }

    /// The addresses that a route lets in; `None` where it is public.
    pub(in crate::zerotrust) fn emails(&self, asked: &RouteWish) -> Option<Vec<&'static str>> {
        match &asked.protection {
            Protection::None => None,
            Protection::Emails(emails) => Some(emails.clone()),
            // Everybody of example.com is in the group.
            Protection::Group => Some(vec!["ann@example.com", "anybody@example.com"]),
            Protection::Template(name) => self.asked_of(name, asked),
            Protection::Base => self.asked_of(IMPLICIT[0], asked),
            Protection::Default => self.asked_of(IMPLICIT[1], asked),
        }
    }

    /// Who asks for a token asks for Access, whatever the template says.
    fn asked_of(&self, template: &str, asked: &RouteWish) -> Option<Vec<&'static str>> {
        self.emails_of(template).or_else(|| asked.token.then(Vec::new))
    }

    /// Where routes of a tenant go.
    pub(in crate::zerotrust) fn origin_of(&self, asked: &RouteWish) -> &str {
        if asked.tenant == "prod" { &self.origin } else { crate::zerotrust::ORIGIN }
    }

    /// Enabled routes, by the name they want.
    pub(in crate::zerotrust) fn claims(&self) -> BTreeMap<String, Vec<(usize, &RouteWish)>> {
        let mut claims: BTreeMap<String, Vec<(usize, &RouteWish)>> = BTreeMap::new();
        for (number, asked) in self.routes.iter().filter(|(_, asked)| asked.enabled) {
            claims.entry(asked.hostname.clone()).or_default().push((*number, asked));
        }
        claims
    }

    /// What is wished for each name: protected where everybody who wants it wants it so.
    pub(in crate::zerotrust) fn wishes(&self) -> BTreeMap<String, NameWish> {
        let wish = |claims: &[(usize, &RouteWish)]| {
            let all = claims.iter().all(|(_, asked)| self.emails(asked).is_some());
            if all { NameWish::Protected } else { NameWish::Public }
        };
        self.claims().into_iter().map(|(name, claims)| (name, wish(&claims))).collect()
    }

    /// What changed since.
    pub(in crate::zerotrust) fn wishes_since(&self, before: &BTreeMap<String, NameWish>) -> Vec<(String, NameWish)> {
        let now = self.wishes();
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let changed = names.into_iter().filter(|name| before.get(*name) != now.get(*name));
        changed.map(|name| (name.clone(), now.get(name).copied().unwrap_or(NameWish::Gone))).collect()
    }
}
