//! A zone as the API lists it → what names and records depend on.

use portolan_core::{Item, ZoneName};
use serde::{Deserialize, Serialize};

use super::or_default;
use crate::budget::limits;

/// A zone; only looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ZoneWire")]
pub struct Zone {
    /// Its name, in lower-case punycode.
    pub name: Box<str>,
    /// `active`, `pending` and so on.
    pub status: Option<Box<str>>,
    /// What is paid for it.
    pub plan: ZonePlan,
    /// How many records it may have, as far as its plan and its age tell.
    pub most_records: Option<usize>,
    /// Id of its account.
    pub account: Option<Box<str>>,
    /// Name servers that it has to be delegated to.
    pub name_servers: Box<[Box<str>]>,
}

/// What is paid for a zone, and so what it may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ZonePlan {
    /// Nothing.
    Free,
    /// Pro.
    Pro,
    /// Business.
    Business,
    /// Enterprise.
    Enterprise,
    /// The answer did not say.
    #[default]
    Unknown,
}

impl ZonePlan {
    /// Reads `legacy_id` or a name such as `Free Website`.
    pub fn parse(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        let known =
            [("free", Self::Free), ("pro", Self::Pro), ("business", Self::Business), ("enterprise", Self::Enterprise)];
        known.into_iter().find(|(name, _)| text.starts_with(name)).map_or(Self::Unknown, |(_, plan)| plan)
    }

    /// As the status shows it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Free => Some("free"),
            Self::Pro => Some("pro"),
            Self::Business => Some("business"),
            Self::Enterprise => Some("enterprise"),
            Self::Unknown => None,
        }
    }

    /// Characters that a record's comment may have.
    pub fn comment_limit(self) -> usize {
        match self {
            Self::Free | Self::Unknown => 100,
            Self::Pro | Self::Business | Self::Enterprise => 500,
        }
    }
}

#[derive(Deserialize)]
struct ZoneWire {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    status: Option<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    plan: PlanWire,
    #[serde(default, deserialize_with = "or_default")]
    created_on: String,
    #[serde(default, deserialize_with = "or_default")]
    account: AccountWire,
    #[serde(default, deserialize_with = "or_default")]
    name_servers: Vec<Box<str>>,
}

#[derive(Default, Deserialize)]
struct PlanWire {
    legacy_id: Option<String>,
    name: Option<String>,
    id: Option<String>,
}

#[derive(Default, Deserialize)]
struct AccountWire {
    id: Option<Box<str>>,
}

impl From<ZoneWire> for Zone {
    fn from(wire: ZoneWire) -> Self {
        let name = ZoneName::parse(&wire.name).map_or(wire.name, String::from);
        let plan = wire.plan.legacy_id.or(wire.plan.name).or(wire.plan.id);
        let plan = plan.as_deref().map_or(ZonePlan::Unknown, ZonePlan::parse);
        Self {
            name: name.into(),
            status: wire.status,
            plan,
            most_records: limits::records_of(plan, &wire.created_on),
            account: wire.account.id,
            name_servers: wire.name_servers.into(),
        }
    }
}

impl Zone {
    /// A zone to look for.
    pub fn named(name: &ZoneName) -> Self {
        Self {
            name: name.as_str().into(),
            status: None,
            plan: ZonePlan::Unknown,
            most_records: None,
            account: None,
            name_servers: Box::default(),
        }
    }
}

impl Item for Zone {
    fn natural_key(&self) -> String {
        self.name.to_string()
    }
}
