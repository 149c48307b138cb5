//! The way of a request through the edge, as a value.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    access, ingress, redirect,
    request::EdgeRequest,
    resolve::{self, ResolvedName},
    view::StateView,
};
use crate::{
    state::State,
    store::{flag, id_of, text},
};

/// What the edge found for a request, step by step, and what it answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeDecision {
    /// Name that was asked for.
    pub host: String,
    /// Path that was asked for.
    pub path: String,
    /// Name of the zone it is in.
    pub zone: Option<String>,
    /// The record that answers for it.
    pub record: Option<EdgeRecord>,
    /// The tunnel that the record leads to.
    pub tunnel: Option<String>,
    /// The application that protects it.
    pub app: Option<EdgeApp>,
    /// What Access says.
    pub access: EdgeAccess,
    /// The rule of the tunnel's configuration that takes it.
    pub rule: Option<EdgeRule>,
    /// What is answered.
    pub outcome: EdgeOutcome,
}

/// A record that answers for a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeRecord {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name; a wildcard for names that have none of their own.
    pub name: String,
    /// What it points to.
    pub content: String,
    /// Whether visitors go through Cloudflare.
    pub proxied: bool,
    /// Its comment.
    pub comment: String,
}

/// An Access application that protects a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeApp {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The domain of it that fits best.
    pub domain: String,
    /// Its policies in the order they are looked at.
    pub policies: Vec<EdgePolicy>,
}

/// A policy of an application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgePolicy {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `allow`, `deny`, `bypass` or `non_identity`.
    pub decision: String,
}

/// What Access says about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "verdict")]
pub enum EdgeAccess {
    /// Access was not asked: the request ended before it.
    Unasked,
    /// No application protects the name.
    Unprotected,
    /// A policy lets the request through.
    Granted {
        /// Name of the policy.
        policy: String,
        /// E-mail address or service token; nothing where nobody needs to be known.
        identity: Option<String>,
    },
    /// The visitor must log in first.
    LoginNeeded,
    /// The visitor is known, or cannot become known, and may not enter.
    Denied {
        /// Why.
        reason: String,
    },
}

/// A rule of a tunnel's configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeRule {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Name it is for; empty for all.
    pub hostname: String,
    /// Regular expression for paths; empty for all.
    pub path: String,
    /// Where it leads.
    pub service: String,
    /// Settings of the connection, the tunnel's defaults included.
    pub settings: Map<String, Value>,
}

/// What the edge answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum EdgeOutcome {
    /// A redirect rule sends the visitor elsewhere.
    Redirect {
        /// HTTP status.
        status: u16,
        /// Where to.
        location: String,
    },
    /// Access sends the visitor to the login.
    Login {
        /// Where to.
        location: String,
    },
    /// Access refuses.
    Refused {
        /// HTTP status.
        status: u16,
        /// Why.
        reason: String,
    },
    /// There is no way to a service.
    Unreachable {
        /// HTTP status.
        status: u16,
        /// Cloudflare's number for the error; 0 where it has none.
        code: u16,
        /// Why.
        reason: String,
    },
    /// The rule answers with a status.
    Status {
        /// HTTP status.
        status: u16,
    },
    /// The rule answers with its test page.
    Hello,
    /// The request goes to the origin.
    Origin {
        /// The rule's service.
        service: String,
    },
}

impl EdgeOutcome {
    /// Whether the request got past everything that protects the name: a service answers it.
    pub fn is_served(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::Hello | Self::Origin { .. })
    }
}

impl EdgeDecision {
    /// Whether a service answers the request: it got past everything that protects the name.
    pub fn is_served(&self) -> bool {
        self.outcome.is_served()
    }

    /// Status of the answer; `None` where the origin decides.
    pub fn status(&self) -> Option<u16> {
        match &self.outcome {
            EdgeOutcome::Redirect { status, .. }
            | EdgeOutcome::Refused { status, .. }
            | EdgeOutcome::Unreachable { status, .. }
            | EdgeOutcome::Status { status } => Some(*status),
            EdgeOutcome::Login { .. } => Some(StatusCode::FOUND.as_u16()),
            EdgeOutcome::Hello => Some(StatusCode::OK.as_u16()),
            EdgeOutcome::Origin { .. } => None,
        }
    }

    fn begin(request: &EdgeRequest) -> Self {
        Self {
            host: request.host.clone(),
            path: request.path.clone(),
            zone: None,
            record: None,
            tunnel: None,
            app: None,
            access: EdgeAccess::Unasked,
            rule: None,
            outcome: EdgeOutcome::Hello,
        }
    }

    fn ends(mut self, outcome: EdgeOutcome) -> Self {
        self.outcome = outcome;
        self
    }
}

impl EdgeRecord {
    pub(super) fn of(record: &Value) -> Self {
        Self {
            id: id_of(record).to_owned(),
            kind: text(record, "type").to_owned(),
            name: text(record, "name").to_owned(),
            content: text(record, "content").to_owned(),
            proxied: flag(record, "proxied"),
            comment: text(record, "comment").to_owned(),
        }
    }
}

impl EdgePolicy {
    pub(super) fn of(policy: &Value) -> Self {
        Self {
            id: id_of(policy).to_owned(),
            name: text(policy, "name").to_owned(),
            decision: text(policy, "decision").to_owned(),
        }
    }
}

/// What happens to a request.
pub(crate) fn decide(state: &State, request: &EdgeRequest) -> EdgeDecision {
    let view = StateView::of(state);
    let mut decision = EdgeDecision::begin(request);
    let ResolvedName { zone, record, target } = resolve::resolve(view, &request.host);
    decision.zone = zone.map(|zone| text(zone, "name").to_owned());
    decision.record = record;
    let (Some(zone), target) = (zone, target) else {
        return decision.ends(resolve::unknown(&request.host));
    };
    let target = match target {
        Ok(target) => target,
        Err(outcome) => return decision.ends(outcome),
    };
    if let Some(outcome) = redirect::find(view, id_of(zone), request) {
        return decision.ends(outcome);
    }
    let asked = access::ask(view, zone, request);
    (decision.app, decision.access) = (asked.app, asked.access);
    if let Some(outcome) = asked.outcome {
        return decision.ends(outcome);
    }
    decision.tunnel = target.tunnel().map(str::to_owned);
    let found = ingress::find(view, zone, &target, request, &asked.audience);
    decision.rule = found.rule;
    decision.ends(found.outcome)
}
