//! What was noted before an attempt's first call: how things without a mark are known again after a crash.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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
}
