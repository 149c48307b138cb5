//! The sheet of a kind: what is the same for all its objects, as data; and what follows from it for their status.

use std::time::Duration;

use portolan_core::ownership::{CreatingNote, Ownership};
use portolan_core::{Condition, Problem, reasons, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::kind::{Management, Recorded, StatusView};
use crate::shown::Shown;
use crate::used::UsedCredentials;

/// The finalizer of most kinds, which they share with the older operator: by the kind's name in lower case.
macro_rules! finalizer {
    ($kind:literal) => {
        concat!($kind, ".networking.cloudflare-operator.io/finalizer")
    };
}
pub(crate) use finalizer;

/// The status of a kind that owns something in an account: what every such status says, and behind it what only this kind's says.
macro_rules! status {
    (
        $(#[doc = $of:literal])+
        $name:ident: $common:ident {
            $($(#[doc = $about:literal])+ $field:ident: $type:ty,)*
        }
    ) => {
        $(#[doc = $of])+
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        #[schemars(transform = schema::plain)]
        pub struct $name {
            /// What every such status says.
            #[serde(flatten)]
            pub common: $common,
            $($(#[doc = $about])+ #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }
    };
}
pub(crate) use status;

/// What is the same for all objects of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    /// The kind's name, as in manifests.
    pub kind: &'static str,
    /// How users call the remote object in a plan: `DNS record`.
    pub noun: &'static str,
    /// What may be done to the remote object.
    pub management: Management,
    /// How it is known whose a remote object is.
    pub ownership: Ownership,
    /// Field of the status that holds the remote object's id.
    pub id: &'static str,
    /// What the status says in `state`.
    pub states: StateWords,
    /// The finalizer that it shares with the older operator.
    pub finalizer: &'static str,
    /// Finalizers of older releases, removed with ours.
    pub older_finalizers: &'static [&'static str],
    /// Reason of `Ready=True`.
    pub ready_reason: &'static str,
    /// Reason of `Ready=False` where the problem brings none of its own.
    pub error_reason: &'static str,
    /// After how long an object that is well is looked at again, besides drift passes.
    pub resync: Option<Duration>,
    /// What people are told of an object besides its health.
    pub shown: Shown,
}

/// The words of `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateWords {
    /// All is as asked for.
    pub well: &'static str,
    /// Something is not.
    pub error: &'static str,
}

impl StateWords {
    /// As objects of private networks write it.
    pub const LOWER: Self = Self { well: "active", error: "error" };
    /// As objects of Access and Gateway write it.
    pub const UPPER: Self = Self { well: "Ready", error: "Error" };

    /// What a definition says of them.
    pub(crate) fn sentence(self) -> String {
        format!("`{}` or `{}`.", self.well, self.error)
    }

    pub(crate) fn of(self, problem: Option<&Problem>) -> &'static str {
        if problem.is_some() { self.error } else { self.well }
    }
}

impl Sheet {
    /// A kind whose remote objects are made, changed and deleted.
    pub const fn owned(kind: &'static str, noun: &'static str, finalizer: &'static str) -> Self {
        Self {
            kind,
            noun,
            management: Management::Owned,
            ownership: Ownership::Mark,
            id: "",
            states: StateWords::LOWER,
            finalizer,
            older_finalizers: &[],
            ready_reason: reasons::SYNCED,
            error_reason: reasons::ERROR,
            resync: None,
            shown: Shown::named(noun, "others"),
        }
    }

    /// A kind whose remote object there is one of in every account: it is changed, and neither made nor deleted.
    pub const fn singleton(kind: &'static str, noun: &'static str, finalizer: &'static str) -> Self {
        // It is known by its account's id.
        Self { management: Management::Singleton, id: "accountId", ..Self::owned(kind, noun, finalizer) }
    }

    /// A kind whose remote objects are only looked at, once an hour besides drift passes.
    pub const fn observed(kind: &'static str, noun: &'static str, finalizer: &'static str) -> Self {
        Self {
            management: Management::Observed,
            resync: Some(Duration::from_hours(1)),
            ..Self::owned(kind, noun, finalizer)
        }
    }

    /// What a status remembers.
    pub(crate) fn recorded(&self, status: &Map<String, Value>) -> Recorded {
        let said = |field: &str| status.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let ids = said(self.id).into_iter().collect();
        let intent = match self.ownership {
            Ownership::Mark => IntentStatus::default(),
            Ownership::Intent => serde_json::from_value(Value::Object(status.clone())).unwrap_or_default(),
        };
        // What is never deleted needs the credential that wrote it no longer.
        let credentials = used(status).filter(|_| self.management != Management::Singleton);
        Recorded { scope: said("accountId"), ids, name: None, credentials, intent }
    }

    /// What takes back what a status remembers.
    pub(crate) fn without_ids(&self) -> Value {
        json!({ self.id: null })
    }

    /// The status after a pass: what was `before`, and what is `shown` of the remote object beyond its id.
    pub(crate) fn status<B>(&self, mut before: Map<String, Value>, view: &StatusView<'_, B>, shown: Value) -> Value {
        let used = view.used_credentials(used(&before).as_ref());
        let account_now = view.resolved.and_then(|resolved| resolved.account.as_ref()).map(|id| json!(id.as_str()));
        let account_before = before.get("accountId").cloned();
        let unknown = view.problem.is_some() && view.present.is_empty();
        let (mut now, account) = if unknown {
            before.retain(|field, _| !matches!(field.as_str(), "conditions" | "observedGeneration"));
            (before, account_before.or(account_now))
        } else {
            let mut now = shown.as_object().cloned().unwrap_or_default();
            now.insert(self.id.to_owned(), json!(view.present.first().map(|entry| &entry.id)));
            (now, account_now.or(account_before))
        };
        now.insert("accountId".to_owned(), json!(account));
        now.insert("usedCredentials".to_owned(), json!(used));
        now.insert("state".to_owned(), json!(self.states.of(view.problem)));
        now.retain(|_, value| !value.is_null());
        Value::Object(now)
    }
}

/// What the status of kinds without a mark remembers, since nothing at Cloudflare says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IntentStatus {
    /// What was about to be made when the status was written: what fits it is the object's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creating: Option<CreatingNote>,
    /// Id of what existed before: it is released in the end, not deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted_id: Option<String>,
    /// Digest of what was written and is never shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
}

fn used(status: &Map<String, Value>) -> Option<UsedCredentials> {
    serde_json::from_value(status.get("usedCredentials")?.clone()).ok()
}

/// What the status of every kind says that owns something in an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AccountStatus {
    /// What is known of the object's health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// `active` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The credential that wrote it, and that will delete it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_credentials: Option<UsedCredentials>,
}

/// What the status of every kind without a mark says that owns something in an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UnmarkedStatus {
    /// What every such status says.
    #[serde(flatten)]
    pub account: AccountStatus,
    /// What no mark says.
    #[serde(flatten)]
    pub intent: IntentStatus,
}
