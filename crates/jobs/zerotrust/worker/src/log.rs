//! What is said about a task that ended: one line in the log, and one sentence in its status.

use portolan_core::{ObjectId, Plan, Problem};
use portolan_engine::{Levels, outcome};
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, Phase};

use crate::reason;
use crate::task_status;

/// All that is said in this pass says whose task it is about.
pub(crate) fn mark(task: &CloudflareTask) {
    if let Some(tenant) = &task.spec.tenant_ref {
        Levels::mark(&tenant.key());
    }
}

/// A task was carried out.
pub(crate) fn completed(task: &CloudflareTask, changes: &Plan) {
    outcome::changed(&subject(task), changes);
}

/// A task failed. That it fails as before is no news.
pub(crate) fn failed(task: &CloudflareTask, problem: &Problem) {
    let said = task.status.as_ref().filter(|status| status.phase == Some(Phase::Failed));
    let said = said.and_then(|status| status.message.as_deref());
    if said.is_some_and(|said| said.starts_with(&task_status::failure(problem))) {
        tracing::debug!(error = %problem, "{}: failed again", subject(task));
    } else {
        outcome::failed(&subject(task), &Problem { reason: reason::of(problem), ..problem.clone() });
    }
}

/// What was done, in a sentence.
pub(crate) fn sentence(task: &CloudflareTask, changes: &Plan) -> String {
    let done = match task.spec.action() {
        TaskAction::Reconcile => "Reconciled",
        TaskAction::Delete => "Withdrew",
    };
    format!("{done} {}: {}", hostname(task), outcome::summary(changes))
}

/// `HTTPRoute shop/web (web.example.com)`.
fn subject(task: &CloudflareTask) -> String {
    let object = match task.route() {
        Some(route) => format!("HTTPRoute {route}"),
        None => ObjectId::new("CloudflareTask", task.key()).to_string(),
    };
    format!("{object} ({})", hostname(task))
}

fn hostname(task: &CloudflareTask) -> &str {
    let named = task.spec.hostname.as_deref().filter(|name| !name.is_empty());
    let deleted = || task.spec.delete_ids.as_ref().and_then(|delete| delete.ids.hostname.as_deref());
    named.or_else(deleted).unwrap_or("no name")
}
