//! The table: one row for every collection that is served.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    access::{app, group, identity_provider, list, policy, service_token, tag},
    account,
    auth::{Grant, RightLevel},
    call::RoutedCall,
    certificate_pack, dns,
    field::{BodyVerb, Member},
    filter::Filter,
    gateway_configuration,
    ids::IdForm,
    network_route,
    page::Paging,
    reply::Refusal,
    rulesets,
    state::State,
    store::text,
    tunnel, virtual_network, zone,
};

/// Below what a collection's path is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// `/…`
    Root,
    /// `/accounts/{account_id}/…`
    Account,
    /// `/zones/{zone_id}/…`
    Zone,
}

/// What can be done with a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectionAction {
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
    pub(crate) prepare: fn(&mut State, &PendingChange<'_>, &mut Value) -> Result<(), Refusal>,
    /// Whether the object may be deleted.
    pub(crate) may_delete: fn(&State, &RoutedCall, &str, &Value) -> Result<(), Refusal>,
    /// What else changes with it.
    pub(crate) changed: fn(&mut State, &str, CollectionAction, &Value),
    /// How the object is shown.
    pub(crate) show: for<'a> fn(&State, &str, &'a Value, CollectionAction) -> Cow<'a, Value>,
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
pub(crate) struct PendingChange<'a> {
    pub(crate) scope: &'a str,
    pub(crate) verb: BodyVerb,
    /// What the sender wrote.
    pub(crate) sent: &'a serde_json::Map<String, Value>,
    pub(crate) old: Option<&'a Value>,
}

/// A row.
pub(crate) struct Collection {
    pub(crate) name: &'static str,
    /// What one object is called, in audit entries.
    pub(crate) what: &'static str,
    pub(crate) scope: Below,
    pub(crate) path: &'static str,
    pub(crate) id: IdForm,
    pub(crate) actions: &'static [CollectionAction],
    pub(crate) fields: &'static [Member],
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

/// What rows have unless they say otherwise.
pub(crate) const ROW: Collection = Collection {
    name: "",
    what: "",
    scope: Below::Account,
    path: "",
    id: IdForm::Uuid,
    actions: PATCHED,
    fields: &[],
    filters: &[],
    paging: Paging::Pages { default: 20, min: 5, max: 50 },
    soft_delete: false,
    times: ("created_at", None),
    key: |value| text(value, "name").to_owned(),
    duplicate: None,
    not_found: Fail(404, 1001, "not found"),
    invalid: 1004,
    group: "",
    statuses: (200, 200),
    rules: PLAIN,
};

/// For what is made elsewhere.
pub(crate) const LOOKED_AT: &[CollectionAction] = &[CollectionAction::List, CollectionAction::Get];
/// For what is changed member by member.
pub(crate) const PATCHED: &[CollectionAction] = &[
    CollectionAction::List,
    CollectionAction::Get,
    CollectionAction::Create,
    CollectionAction::Patch,
    CollectionAction::Delete,
];
/// For what is changed as a whole.
pub(crate) const REPLACED: &[CollectionAction] = &[
    CollectionAction::List,
    CollectionAction::Get,
    CollectionAction::Create,
    CollectionAction::Replace,
    CollectionAction::Delete,
];
/// For what is changed in either way.
pub(crate) const ALL_ACTIONS: &[CollectionAction] = &[
    CollectionAction::List,
    CollectionAction::Get,
    CollectionAction::Create,
    CollectionAction::Replace,
    CollectionAction::Patch,
    CollectionAction::Delete,
];

/// Everything that is served.
pub(crate) static COLLECTIONS: &[&Collection] = &[
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
    &gateway_configuration::CONFIGURATIONS,
];

impl Collection {
    /// The row with this name or path.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        COLLECTIONS.iter().copied().find(|row| row.name == name || row.path == name)
    }

    /// Path of the list, with the scope's parameter.
    pub(crate) fn template(&self) -> String {
        match self.scope {
            Below::Root => format!("/{}", self.path),
            Below::Account => format!("/accounts/{{account_id}}/{}", self.path),
            Below::Zone => format!("/zones/{{zone_id}}/{}", self.path),
        }
    }

    /// The scope that a call names.
    pub(crate) fn scope_of<'a>(&self, call: &'a RoutedCall) -> &'a str {
        match self.scope {
            Below::Root => "",
            Below::Account => call.param("account_id"),
            Below::Zone => call.param("zone_id"),
        }
    }
}

impl CollectionAction {
    pub(crate) fn level(self) -> RightLevel {
        match self {
            Self::List | Self::Get => RightLevel::Read,
            Self::Create | Self::Replace | Self::Patch | Self::Delete => RightLevel::Edit,
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
