//! Access: the application that covers a request, and what its policies say.
//!
//! Bypass and service authentication are looked at first, in order; then, for visitors who have logged in, allow and
//! deny in order. Whom no policy lets in stays out.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{
    decision::{EdgeAccess, EdgeApp, EdgeOutcome, EdgePolicy},
    domain::{self, Closeness},
    request::EdgeRequest,
    selector::{Judge, Visitor},
    view::StateView,
};
use crate::store::{flag, id_of, text};

/// What Access says, and the answer where it ends the request.
pub(super) struct AccessDecision {
    pub(super) app: Option<EdgeApp>,
    pub(super) access: EdgeAccess,
    /// Tag of the application whose token the request carries on; empty where it carries none.
    pub(super) audience: String,
    pub(super) outcome: Option<EdgeOutcome>,
}

pub(super) fn ask(view: StateView<'_>, zone: &Value, request: &EdgeRequest) -> AccessDecision {
    let account = text(&zone["account"], "id");
    let Some((app, domain)) = covering(view, account, request) else {
        return AccessDecision { app: None, access: EdgeAccess::Unprotected, audience: String::new(), outcome: None };
    };
    let policies = view.policies(account, app);
    let token = request.service_token().and_then(|(id, secret)| view.token(account, id, secret));
    let judge = Judge { view, account, visitor: Visitor::of(request, token.as_deref()) };
    let Judged { access, with_token } =
        if request.method == http::Method::OPTIONS && flag(app, "options_preflight_bypass") {
            Judged::unasked("options_preflight_bypass")
        } else {
            judge_all(&judge, &policies)
        };
    let audience = if with_token { text(app, "aud").to_owned() } else { String::new() };
    let outcome = answer(&access, app, &view.team(account), request);
    let shown = EdgeApp {
        id: id_of(app).to_owned(),
        name: text(app, "name").to_owned(),
        domain: domain.to_owned(),
        policies: policies.iter().map(|policy| EdgePolicy::of(policy)).collect(),
    };
    AccessDecision { app: Some(shown), access, audience, outcome }
}

/// The application whose domain fits the request best.
fn covering<'a>(view: StateView<'a>, account: &str, request: &EdgeRequest) -> Option<(&'a Value, &'a str)> {
    let stands_before_hosts = |app: &&Value| matches!(text(app, "type"), "self_hosted" | "ssh" | "vnc" | "rdp");
    let fitting = view.apps(account).filter(stands_before_hosts).filter_map(|app| {
        let (closeness, domain) = domain::best(app, &request.host, &request.path)?;
        Some((closeness, app, domain))
    });
    let best: Option<(Closeness, _, _)> = fitting.max_by_key(|(closeness, _, _)| *closeness);
    best.map(|(_, app, domain)| (app, domain))
}

/// What the policies say, and whether the request goes on with the application's token. Bypass switches Access off for a
/// request, so that one goes on without: <https://developers.cloudflare.com/cloudflare-one/policies/access/#bypass>
struct Judged {
    access: EdgeAccess,
    with_token: bool,
}

impl Judged {
    fn unasked(policy: &str) -> Self {
        Self { access: EdgeAccess::Granted { policy: policy.to_owned(), identity: None }, with_token: false }
    }

    fn granted(policy: &Value, identity: Option<String>) -> Self {
        Self { access: EdgeAccess::Granted { policy: text(policy, "name").to_owned(), identity }, with_token: true }
    }

    fn refused(access: EdgeAccess) -> Self {
        Self { access, with_token: false }
    }
}

fn judge_all(judge: &Judge<'_>, policies: &[Cow<'_, Value>]) -> Judged {
    let first = |decisions: [&str; 2]| {
        policies.iter().find(|policy| decisions.contains(&text(policy, "decision")) && judge.fits(policy))
    };
    match first(["bypass", "non_identity"]) {
        Some(policy) if text(policy, "decision") == "bypass" => return Judged::unasked(text(policy, "name")),
        Some(policy) => return Judged::granted(policy, judge.visitor.token.map(str::to_owned)),
        None => {}
    }
    let Some(email) = judge.visitor.email else { return Judged::refused(stranger(policies)) };
    let denied = |reason| Judged::refused(EdgeAccess::Denied { reason });
    match first(["allow", "deny"]) {
        Some(policy) if text(policy, "decision") == "allow" => Judged::granted(policy, judge.visitor.identity()),
        Some(policy) => denied(format!("policy {} denies {email}", text(policy, "name"))),
        None => denied(format!("no policy allows {email}")),
    }
}

/// Logging in helps only where some policy asks who somebody is; an application without policies asks, too.
fn stranger(policies: &[Cow<'_, Value>]) -> EdgeAccess {
    if !policies.is_empty() && policies.iter().all(|policy| text(policy, "decision") == "non_identity") {
        EdgeAccess::Denied { reason: "only service tokens are let in".to_owned() }
    } else {
        EdgeAccess::LoginNeeded
    }
}

fn answer(access: &EdgeAccess, app: &Value, team: &str, request: &EdgeRequest) -> Option<EdgeOutcome> {
    let reason = match access {
        EdgeAccess::Granted { .. } | EdgeAccess::Unprotected | EdgeAccess::Unasked => return None,
        EdgeAccess::LoginNeeded => "the visitor is not logged in".to_owned(),
        EdgeAccess::Denied { reason } => reason.clone(),
    };
    let known = request.email().is_some();
    if !known && flag(app, "service_auth_401_redirect") {
        return Some(EdgeOutcome::Refused { status: 401, reason });
    }
    if *access == EdgeAccess::LoginNeeded {
        return Some(EdgeOutcome::Login { location: login(app, team, request) });
    }
    let elsewhere = text(app, if known { "custom_deny_url" } else { "custom_non_identity_deny_url" });
    Some(match elsewhere {
        "" => EdgeOutcome::Refused { status: 403, reason: denial(app, reason) },
        location => EdgeOutcome::Redirect { status: 302, location: location.to_owned() },
    })
}

/// What a refused visitor reads.
fn denial(app: &Value, reason: String) -> String {
    match text(app, "custom_deny_message") {
        "" => reason,
        message => format!("{message} ({reason})"),
    }
}

fn login(app: &Value, team: &str, request: &EdgeRequest) -> String {
    let target = request.target();
    let back = utf8_percent_encode(&target, NON_ALPHANUMERIC);
    let (host, aud) = (&request.host, text(app, "aud"));
    format!("https://{team}.cloudflareaccess.com/cdn-cgi/access/login/{host}?kid={aud}&redirect_url={back}")
}
