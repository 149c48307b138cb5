//! What the users of a history asked for, in words of their own: independent of how the operator reads annotations.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use crate::manifests::ZONE;
use crate::zerotrust::Route;
use crate::zerotrust::wishes::Wish;

/// Templates that histories edit.
pub(super) const TEMPLATES: [&str; 2] = ["team", "guests"];

/// How a route asks for protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    Emails(Vec<&'static str>),
    Group,
    Template(&'static str),
}

/// What one route asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) hostname: String,
    pub(super) protection: Protection,
    pub(super) token: bool,
    pub(super) tenant: &'static str,
    pub(super) direct: bool,
    pub(super) enabled: bool,
}

const EMAILS: [&str; 3] = ["ann@example.com", "bob@example.com", "cy@example.com"];

impl Asked {
    /// Out of a small world of names, so that histories meet.
    pub(super) fn any(number: usize, random: &mut StdRng) -> Self {
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

    /// The route's manifest.
    pub(super) fn route(&self, number: usize) -> Route {
        let mut route = Route::to(&format!("r{number}"), &self.hostname).with("tenant", self.tenant);
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
            Protection::None => route,
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
pub(super) struct Users {
    pub(super) routes: BTreeMap<usize, Asked>,
    templates: BTreeMap<&'static str, usize>,
    pub(super) origin: String,
}

impl Default for Users {
    fn default() -> Self {
        let templates = TEMPLATES.iter().map(|name| (*name, 0)).collect();
        Self { routes: BTreeMap::new(), templates, origin: crate::zerotrust::ORIGIN.to_owned() }
    }
}

impl Users {
    pub(super) fn ask(&mut self, number: usize, asked: Asked) {
        self.routes.insert(number, asked);
    }

    pub(super) fn drop_route(&mut self, number: usize) {
        self.routes.remove(&number);
    }

    pub(super) fn edit_template(&mut self, name: &'static str, choice: usize) {
        self.templates.insert(name, choice);
    }

    /// The spec of a template as it is now: two ways to protect, one that does not.
    pub(super) fn template(&self, name: &str) -> Value {
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
    pub(super) fn emails(&self, asked: &Asked) -> Option<Vec<&'static str>> {
        match &asked.protection {
            Protection::None => None,
            Protection::Emails(emails) => Some(emails.clone()),
            // Everybody of example.com is in the group.
            Protection::Group => Some(vec!["ann@example.com", "anybody@example.com"]),
            // Who asks for a token asks for Access, whatever the template says.
            Protection::Template(name) => self.emails_of(name).or_else(|| asked.token.then(Vec::new)),
        }
    }

    /// Enabled routes, by the name they want.
    pub(super) fn claims(&self) -> BTreeMap<String, Vec<(usize, &Asked)>> {
        let mut claims: BTreeMap<String, Vec<(usize, &Asked)>> = BTreeMap::new();
        for (number, asked) in self.routes.iter().filter(|(_, asked)| asked.enabled) {
            claims.entry(asked.hostname.clone()).or_default().push((*number, asked));
        }
        claims
    }

    /// What is wished for each name: protected where everybody who wants it wants it so.
    pub(super) fn wishes(&self) -> BTreeMap<String, Wish> {
        let wish = |claims: &[(usize, &Asked)]| {
            let all = claims.iter().all(|(_, asked)| self.emails(asked).is_some());
            if all { Wish::Protected } else { Wish::Public }
        };
        self.claims().into_iter().map(|(name, claims)| (name, wish(&claims))).collect()
    }

    /// What changed since.
    pub(super) fn wishes_since(&self, before: &BTreeMap<String, Wish>) -> Vec<(String, Wish)> {
        let now = self.wishes();
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let changed = names.into_iter().filter(|name| before.get(*name) != now.get(*name));
        changed.map(|name| (name.clone(), now.get(name).copied().unwrap_or(Wish::Gone))).collect()
    }
}
