//! What a plan has to know beside the wish, the record and the world.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::desired::Desired;
use crate::rules;

/// What was noted before the first call of an earlier attempt, so that things without a mark are recognised as ours after
/// a crash: an application, named as ours, that was made since then and that nobody recorded, and a rule with just the
/// content that we were about to write. A token carries our mark in its name until it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// When the first attempt began, by the API's clock.
    pub since: Timestamp,
    /// Account that everything was to be made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Digests of the rules that were about to be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rules: BTreeSet<String>,
    /// The token's name, where one was about to be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The name of a token that an older operator may have made without recording it: it marked nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_token: Option<String>,
    /// Names of the applications that were about to be made.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub apps: BTreeSet<String>,
    /// Names that were about to be published.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hostnames: BTreeSet<String>,
    /// Tunnels whose configuration was about to be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tunnels: BTreeSet<String>,
    /// Zones whose records were about to be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub zones: BTreeSet<String>,
    /// Zones whose redirects were about to be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub redirects: BTreeSet<String>,
}

impl Intent {
    /// Nothing was intended before `now`.
    pub fn since(now: Timestamp) -> Self {
        Self {
            since: now,
            account_id: None,
            rules: BTreeSet::new(),
            token: None,
            older_token: None,
            apps: BTreeSet::new(),
            hostnames: BTreeSet::new(),
            tunnels: BTreeSet::new(),
            zones: BTreeSet::new(),
            redirects: BTreeSet::new(),
        }
    }

    /// What has to be persisted before the first call of an attempt: the earlier intent, and what this attempt may add.
    pub fn before(desired: &Desired, earlier: Option<&Self>, now: Timestamp) -> Self {
        let mut intent = earlier.cloned().unwrap_or_else(|| Self::since(now));
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
pub struct Notes {
    /// What an earlier attempt was about to do; none on a first attempt.
    pub intent: Option<Intent>,
    /// What belongs to other names.
    pub elsewhere: Elsewhere,
    /// The time.
    pub now: Timestamp,
    /// Whether the Secret with the token's credentials is there.
    pub secret_present: bool,
}

impl Notes {
    /// The notes of a first attempt: nothing intended before, nothing known of others.
    pub fn at(now: Timestamp) -> Self {
        Self { intent: None, elsewhere: Elsewhere::default(), now, secret_present: true }
    }
}
