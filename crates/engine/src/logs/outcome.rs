//! What became of a reconciliation, in one line of the log each, in the same words and colours for every kind.
//!
//! A problem that a [`Reconcile`](crate::Reconcile) gives back is told by the engine; [`failed`] is for those that a job
//! keeps to itself.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use portolan_core::{Action, Change, Class, Plan, Problem, field_diff};
use serde_json::{Value, json};

/// Nothing had to be done. `what` is the object, as `HTTPRoute shop/app`.
pub fn unchanged(what: &dyn Display) {
    tracing::info!(outcome = "unchanged", "{what}: unchanged");
}

/// The plan was carried out; its fields before and after follow. An empty plan is [`unchanged`].
pub fn changed(what: &dyn Display, plan: &Plan) {
    if plan.is_empty() {
        return unchanged(what);
    }
    tracing::info!(outcome = "changed", diff = diff(plan), "{what}: {}", summary(plan));
}

/// It ended early. What may pass by itself is a warning, what somebody has to look at an error.
pub fn failed(what: &dyn Display, problem: &Problem) {
    let (outcome, reason, class) = ("failed", problem.reason, problem.class.as_str());
    match problem.class {
        Class::Waiting | Class::Transient => tracing::warn!(outcome, reason, class, "{what}: {problem}"),
        Class::Invalid | Class::Denied => tracing::error!(outcome, reason, class, "{what}: {problem}"),
    }
}

/// What a process that starts says of itself.
#[derive(Clone, Debug)]
pub struct Startup<'a> {
    /// The program's version.
    pub version: &'a str,
    /// What it does.
    pub role: &'a str,
    /// Where its own objects are.
    pub operator_namespace: &'a str,
    /// The namespaces it watches; all of them where none is named.
    pub watch_namespaces: &'a [String],
    /// How often it does things, as `resync`.
    pub intervals: &'a [(&'a str, Duration)],
}

impl Startup<'_> {
    /// Says it.
    pub fn log(&self) {
        let watching = match self.watch_namespaces {
            [] => "all".to_owned(),
            some => some.join(","),
        };
        let intervals: Vec<String> =
            self.intervals.iter().map(|(name, every)| format!("{name}={}s", every.as_secs_f64())).collect();
        tracing::info!(
            heading = true,
            version = self.version,
            role = self.role,
            operator_namespace = self.operator_namespace,
            namespaces = watching,
            intervals = intervals.join(","),
            "Portolan {} starts",
            self.version
        );
    }
}

/// What carrying out a plan did: `1 created, 2 updated`, or `unchanged`.
pub fn summary(plan: &Plan) -> String {
    if plan.is_empty() {
        return "unchanged".to_owned();
    }
    let counts = plan.counts();
    let parts = Action::ALL.into_iter().filter(|action| counts.of(*action) > 0);
    let parts: Vec<String> = parts.map(|action| format!("{} {}", counts.of(action), done(action))).collect();
    parts.join(", ")
}

fn done(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Adopt => "adopted",
        Action::Update => "updated",
        Action::Replace => "replaced",
        Action::Delete => "deleted",
        Action::Release => "released",
    }
}

/// A line for each change, and below it what each field was (`-`) and is now (`+`).
pub fn diff(plan: &Plan) -> String {
    let lines: Vec<String> =
        plan.changes.iter().flat_map(|change| [headline(change)].into_iter().chain(fields(change))).collect();
    lines.join("\n")
}

fn headline(change: &Change) -> String {
    let (target, action) = (&change.target, change.action.as_str());
    let sign = match change.action {
        Action::Create => '+',
        Action::Delete => '-',
        Action::Adopt | Action::Update | Action::Replace | Action::Release => '~',
    };
    let mut text = format!("{sign} {action} {} {}", target.kind, target.name);
    for (open, part, close) in [(" (", &target.scope, ")"), (": ", &change.why, "")] {
        if !part.is_empty() {
            write!(text, "{open}{part}{close}").expect("a string takes all");
        }
    }
    text
}

fn fields(change: &Change) -> Vec<String> {
    let nothing = json!({});
    let (before, after) = (change.before.as_ref().unwrap_or(&nothing), change.after.as_ref().unwrap_or(&nothing));
    let line = |sign: char, path: &str, value: &Value| format!("  {sign} {path}: {value}");
    let mut lines = Vec::new();
    for field in field_diff(before, after) {
        lines.extend(field.before.iter().map(|value| line('-', &field.path, value)));
        lines.extend(field.after.iter().map(|value| line('+', &field.path, value)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use tracing::level_filters::LevelFilter;

    use super::*;
    use crate::logs::testing::Captured;

    #[test]
    fn an_empty_plan_is_told_as_unchanged() {
        let text = Captured::text(LevelFilter::INFO).of(|| changed(&"HTTPRoute a/b", &Plan::default()));

        assert!(text.contains("HTTPRoute a/b: unchanged outcome=unchanged"), "{text}");
    }

    #[test]
    fn what_may_pass_by_itself_is_a_warning() {
        let level = |problem: &Problem| {
            let text = Captured::text(LevelFilter::INFO).of(|| failed(&"x", problem));
            text.split_whitespace().nth(1).map(str::to_owned)
        };

        assert_eq!(level(&Problem::transient("ApiError", "500")).as_deref(), Some("WARN"));
        assert_eq!(level(&Problem::denied("CredentialsDenied", "403")).as_deref(), Some("ERROR"));
    }

    #[test]
    fn a_process_says_what_it_is_when_it_starts() {
        let (namespaces, intervals) = (["shop".to_owned(), "web".to_owned()], [("resync", Duration::from_secs(60))]);
        let startup = Startup {
            version: "1.2.3",
            role: "all",
            operator_namespace: "harbour-system",
            watch_namespaces: &namespaces,
            intervals: &intervals,
        };

        let text = Captured::text(LevelFilter::INFO).of(|| startup.log());

        let wanted = "Portolan 1.2.3 starts version=1.2.3 role=all operator_namespace=harbour-system \
                      namespaces=shop,web intervals=resync=60s\n";
        assert!(text.ends_with(wanted), "{text}");
    }
}
