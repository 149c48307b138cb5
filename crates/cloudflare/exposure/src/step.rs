//! The ordered plan of a name: what is written, and what is ours before the first write.

use jiff::Timestamp;
use portolan_core::{Action, Change, Hostname, Mark, Notice, Plan};
use portolan_publication::Rule;
use serde_json::Value;

use crate::app::{App, AppWish};
use crate::changes::ACCESS_APPLICATION;
use crate::inventory::{Inventory, RecordKind, ZoneAndTunnel};
use crate::policy::OwnPolicy;
use crate::wall::Wall;

/// An ordered plan: carried out from its first step to its last.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// What is written, in order.
    pub steps: Vec<ExposureStep>,
    /// What the user should be told.
    pub notices: Vec<Notice>,
    pub(crate) account_id: String,
    pub(crate) mark: Mark,
    /// What is ours before the first step: what is recorded, less what is gone, and what was found to be ours.
    pub(crate) held: Inventory,
    pub(crate) place: ZoneAndTunnel,
    pub(crate) course: Course,
}

/// What a failed step means for those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// Nothing behind it is done.
    Publish,
    /// Everything behind it is done that does not need it.
    Withdraw,
}

impl Exposure {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The plan for people: what would be changed, in order.
    pub fn changes(&self) -> Plan {
        self.steps.iter().flat_map(|step| step.changes.clone()).collect()
    }

    /// Whether an Access application is made.
    pub fn makes_application(&self) -> bool {
        let mut changes = self.steps.iter().flat_map(|step| &step.changes);
        changes.any(|change| change.action == Action::Create && change.target.kind == ACCESS_APPLICATION)
    }
}

/// One step: usually one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ExposureStep {
    /// What it changes, for people.
    pub changes: Vec<Change>,
    pub(crate) work: Work,
}

impl ExposureStep {
    pub(crate) fn new(change: Change, work: Work) -> Self {
        portolan_core::waypoint!();
        Self { changes: vec![change], work }
    }
}

impl ExposureStep {
    /// Whether records are written by which requests arrive.
    pub(crate) fn publishes(&self) -> bool {
        matches!(&self.work, Work::Records { work, .. } if work.iter().any(RecordWork::publishes))
    }
}

/// Which part of a publication a step is about; the order is the one of withdrawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Record,
    Rule,
    Redirect,
    App,
    Policy,
    Token,
}

impl Stage {
    /// The stages whose removal must have succeeded before this one may be removed: as long as a name can be reached it
    /// keeps what protects it.
    pub(crate) fn is_removed_after(self, other: Self) -> bool {
        match self {
            Self::Record | Self::Rule | Self::Redirect => false,
            Self::App => matches!(other, Self::Record | Self::Rule),
            Self::Policy => matches!(other, Self::Record | Self::Rule | Self::App),
            Self::Token => matches!(other, Self::Record | Self::Rule | Self::App | Self::Policy),
        }
    }
}

/// What makes a rule at our hostname ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleClaim {
    /// It is recorded, or the name's record carries our mark.
    pub(crate) ours: bool,
    /// Digests of rules that we were about to write.
    pub(crate) intended: Vec<String>,
    /// The user allows taking over what is there.
    pub(crate) adopt: bool,
}

/// One write of a zone's batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecordWork {
    Create {
        kind: RecordKind,
        ip: Option<String>,
        body: Value,
    },
    Update {
        id: String,
        kind: RecordKind,
        ip: Option<String>,
        body: Value,
        adopted: bool,
    },
    Delete {
        id: String,
    },
    /// An adopted record is left as it is, without our mark.
    Release {
        id: String,
        body: Option<Value>,
    },
}

impl RecordWork {
    /// Whether requests arrive by what it writes.
    pub(crate) fn publishes(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Update { .. })
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    /// Under a name that carries our mark, so that it is found again if nobody records it.
    CreateToken {
        name: String,
        duration: String,
        rotation: Option<String>,
    },
    /// A new secret; the old one opens until `keep_until`.
    RotateToken {
        id: String,
        keep_until: Option<Timestamp>,
        rotation: Option<String>,
    },
    /// Without an id it is the one that is made in this run.
    UpdateToken {
        id: String,
        name: String,
        duration: String,
    },
    RefreshToken {
        id: String,
    },
    DeleteToken {
        id: String,
    },
    CreatePolicy {
        own: OwnPolicy,
    },
    UpdatePolicy {
        id: String,
        own: OwnPolicy,
    },
    DeletePolicy {
        id: String,
    },
    CreateApp {
        wish: AppWish,
    },
    /// Read first: one policy of it is written, or all of it, or nothing.
    UpdateApp {
        id: String,
        found: Option<App>,
        wish: AppWish,
    },
    /// Read before the name is published, where nothing of it is written: what is known of it may be old.
    ConfirmApp {
        id: String,
        wish: AppWish,
        /// It was found, and is ours only if it still is as it was.
        taken: bool,
    },
    /// The token's policy is taken out of an application that stays.
    DetachToken {
        app_id: String,
        token_id: String,
    },
    DeleteApp {
        id: String,
    },
    EnsureRule {
        hostname: Hostname,
        rule: Rule,
        wall: Wall,
        claim: RuleClaim,
    },
    RemoveRule {
        hostname: Hostname,
        tunnel_id: String,
        claim: RuleClaim,
    },
    Records {
        zone_id: String,
        hostname: String,
        work: Vec<RecordWork>,
    },
    CreateRedirect {
        zone_id: String,
        hostname: String,
        ruleset_id: Option<String>,
        body: Value,
    },
    UpdateRedirect {
        zone_id: String,
        ruleset_id: String,
        rule_id: String,
        body: Value,
    },
    DeleteRedirect {
        zone_id: String,
        ruleset_id: String,
        rule_id: String,
    },
}

impl Work {
    /// How a checkpoint calls it.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::CreateToken { .. } => "createServiceToken",
            Self::RotateToken { .. } => "rotateServiceToken",
            Self::UpdateToken { .. } => "updateServiceToken",
            Self::RefreshToken { .. } => "refreshServiceToken",
            Self::DeleteToken { .. } => "deleteServiceToken",
            Self::CreatePolicy { .. } => "createAccessPolicy",
            Self::UpdatePolicy { .. } => "updateAccessPolicy",
            Self::DeletePolicy { .. } => "deleteAccessPolicy",
            Self::CreateApp { .. } => "createAccessApp",
            Self::UpdateApp { .. } | Self::DetachToken { .. } => "updateAccessApp",
            Self::ConfirmApp { .. } => "confirmAccessApp",
            Self::DeleteApp { .. } => "deleteAccessApp",
            Self::EnsureRule { .. } => "tunnelRoute",
            Self::RemoveRule { .. } => "removeTunnelRoute",
            Self::Records { .. } => "dnsRecord",
            Self::CreateRedirect { .. } | Self::UpdateRedirect { .. } => "httpRedirect",
            Self::DeleteRedirect { .. } => "removeHttpRedirect",
        }
    }

    /// The part that it is about.
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::CreateToken { .. }
            | Self::RotateToken { .. }
            | Self::UpdateToken { .. }
            | Self::RefreshToken { .. }
            | Self::DeleteToken { .. } => Stage::Token,
            Self::CreatePolicy { .. } | Self::UpdatePolicy { .. } | Self::DeletePolicy { .. } => Stage::Policy,
            Self::CreateApp { .. }
            | Self::UpdateApp { .. }
            | Self::ConfirmApp { .. }
            | Self::DetachToken { .. }
            | Self::DeleteApp { .. } => Stage::App,
            Self::EnsureRule { .. } | Self::RemoveRule { .. } => Stage::Rule,
            Self::Records { .. } => Stage::Record,
            Self::CreateRedirect { .. } | Self::UpdateRedirect { .. } | Self::DeleteRedirect { .. } => Stage::Redirect,
        }
    }
}
