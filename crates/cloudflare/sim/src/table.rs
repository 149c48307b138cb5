//! The table: one row for every collection that is served.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    access::{app, group, identity_provider, list, policy, service_token, tag},
    account,
    auth::{Grant, Level},
    call::Call,
    certificate_pack, dns,
    field::{Field, Verb},
    filter::Filter,
    ids::IdForm,
    network_route,
    page::Paging,
    reply::Refusal,
    rulesets,
    state::State,
    tunnel, virtual_network, zone,
};

/// Below what a collection's path is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `/…`
    Root,
    /// `/accounts/{account_id}/…`
    Account,
    /// `/zones/{zone_id}/…`
    Zone,
}

/// What can be done with a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    List,
    Get,
    Create,
    Replace,
    Patch,
    Delete,
}

/// A status, a code and a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fail(pub(crate) u16, pub(crate) u64, pub(crate) &'static str);

impl Fail {
    pub(crate) fn refusal(self) -> Refusal {
        Refusal::new(self.0, self.1, self.2)
    }
}

/// What a row cannot say as data.
pub(crate) struct Rules {
    /// Checks and normalises an object before it is stored; `old` is what it replaces.
    pub(crate) prepare: fn(&mut State, &Change<'_>, &mut Value) -> Result<(), Refusal>,
    /// Whether the object may be deleted.
    pub(crate) may_delete: fn(&State, &Call, &str, &Value) -> Result<(), Refusal>,
    /// What else changes with it.
    pub(crate) changed: fn(&mut State, &str, Action, &Value),
    /// How the object is shown.
    pub(crate) show: for<'a> fn(&State, &str, &'a Value, Action) -> Cow<'a, Value>,
    /// Whether a credential sees the object in lists.
    pub(crate) visible: fn(&Grant, &Value) -> bool,
}

/// No rules beyond the row.
pub(crate) const PLAIN: Rules = Rules {
    prepare: |_, _, _| Ok(()),
    may_delete: |_, _, _, _| Ok(()),
    changed: |_, _, _, _| (),
    show: |_, _, value, _| Cow::Borrowed(value),
    visible: |_, _| true,
};

/// A create or an update on its way.
pub(crate) struct Change<'a> {
    pub(crate) scope: &'a str,
    pub(crate) verb: Verb,
    /// What the sender wrote.
    pub(crate) sent: &'a serde_json::Map<String, Value>,
    pub(crate) old: Option<&'a Value>,
}

/// A row.
pub(crate) struct Collection {
    pub(crate) name: &'static str,
    /// What one object is called, in audit entries.
    pub(crate) what: &'static str,
    pub(crate) scope: Scope,
    pub(crate) path: &'static str,
    pub(crate) id: IdForm,
    pub(crate) actions: &'static [Action],
    pub(crate) fields: &'static [Field],
    pub(crate) filters: &'static [Filter],
    pub(crate) paging: Paging,
    /// Deleted objects stay, with `deleted_at`.
    pub(crate) soft_delete: bool,
    /// Names of the members that say when an object was made and last changed.
    pub(crate) times: (&'static str, Option<&'static str>),
    /// The natural key, by which objects are indexed.
    pub(crate) key: fn(&Value) -> String,
    /// The answer to a second live object with the same key, where that is forbidden.
    pub(crate) duplicate: Option<Fail>,
    pub(crate) not_found: Fail,
    /// Code for bodies that are not as the row says.
    pub(crate) invalid: u64,
    /// Permission group.
    pub(crate) group: &'static str,
    /// Statuses of the answers to a creation and a deletion.
    pub(crate) statuses: (u16, u16),
    pub(crate) rules: Rules,
}

/// Everything that is served.
pub(crate) static COLLECTIONS: [&Collection; 15] = [
    &account::ACCOUNTS,
    &zone::ZONES,
    &dns::RECORDS,
    &tunnel::TUNNELS,
    &virtual_network::VIRTUAL_NETWORKS,
    &network_route::ROUTES,
    &app::APPS,
    &policy::POLICIES,
    &group::GROUPS,
    &service_token::SERVICE_TOKENS,
    &identity_provider::IDENTITY_PROVIDERS,
    &tag::TAGS,
    &list::LISTS,
    &rulesets::RULESETS,
    &certificate_pack::CERTIFICATE_PACKS,
];

impl Collection {
    /// The row with this name or path.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        COLLECTIONS.iter().copied().find(|row| row.name == name || row.path == name)
    }

    /// Path of the list, with the scope's parameter.
    pub(crate) fn template(&self) -> String {
        match self.scope {
            Scope::Root => format!("/{}", self.path),
            Scope::Account => format!("/accounts/{{account_id}}/{}", self.path),
            Scope::Zone => format!("/zones/{{zone_id}}/{}", self.path),
        }
    }

    /// The scope that a call names.
    pub(crate) fn scope_of<'a>(&self, call: &'a Call) -> &'a str {
        match self.scope {
            Scope::Root => "",
            Scope::Account => call.param("account_id"),
            Scope::Zone => call.param("zone_id"),
        }
    }
}

impl Action {
    pub(crate) fn level(self) -> Level {
        match self {
            Self::List | Self::Get => Level::Read,
            Self::Create | Self::Replace | Self::Patch | Self::Delete => Level::Edit,
        }
    }

    /// The action's word in audit entries.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::List | Self::Get => "view",
            Self::Create => "add",
            Self::Replace | Self::Patch => "change",
            Self::Delete => "delete",
        }
    }
}
