//! What a plan has to know beside the wish, the record and the world.

use std::collections::BTreeSet;

use jiff::Timestamp;
use portolan_publication::{Desired, Intent};

use crate::rules;

/// What has to be persisted before the first call of an attempt: the earlier intent, and what this attempt may add.
pub fn intend(desired: &Desired, earlier: Option<&Intent>, now: Timestamp) -> Intent {
    let mut intent = earlier.cloned().unwrap_or_else(|| Intent::since(now));
    intent.account_id = Some(desired.account_id.clone());
    if let Some(rule) = &desired.rule {
        intent.rules.insert(rules::digest(&desired.hostname, rule));
        intent.tunnels.insert(rule.tunnel_id.clone());
    }
    let zone = desired.record.as_ref().map(|record| record.zone_id().to_owned());
    intent.redirects.extend(zone.clone().filter(|_| desired.redirect));
    intent.zones.extend(zone);
    intent.apps.extend(desired.access.as_ref().map(|access| access.name.clone()));
    intent.hostnames.insert(desired.hostname.as_str().to_owned());
    intent.token = desired.token.as_ref().map(|token| token.name.clone()).or(intent.token);
    intent
}

/// What is recorded by other names: never taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Service tokens.
    pub token_ids: BTreeSet<String>,
    /// Access applications.
    pub app_ids: BTreeSet<String>,
}

/// What a plan has to know beside the wish, the record and the world.
#[derive(Clone, Debug)]
pub struct PlanContext {
    /// What an earlier attempt was about to do; none on a first attempt.
    pub intent: Option<Intent>,
    /// What belongs to other names.
    pub elsewhere: Elsewhere,
    /// The time.
    pub now: Timestamp,
    /// Whether the Secret with the token's credentials is there.
    pub secret_present: bool,
}

impl PlanContext {
    /// What is known on a first attempt: nothing intended before, nothing known of others.
    pub fn at(now: Timestamp) -> Self {
        Self { intent: None, elsewhere: Elsewhere::default(), now, secret_present: true }
    }
}
