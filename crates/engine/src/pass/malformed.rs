//! Objects that do not parse as their kind: each says so itself, and may go only when its user insists.

use portolan_core::{Problem, reasons};

use crate::context::{Context, WriteMode};
use crate::dispatch::fingerprint::key_of;
use crate::pass::finalizer::FinalizerStage;
use crate::pass::report::Report;
use crate::pass::status::{self, Keep};
use crate::pass::{Requeue, finalizers, generation_of, kubernetes_problem, patch_object};
use crate::reconcile::Reconcile;
use crate::watch::guarded::{Guarded, Malformed};

/// A pass over a malformed object; answers the object too where its status was written.
pub(crate) async fn refuse<R: Reconcile>(
    context: &Context,
    reconciler: &R,
    malformed: &Malformed,
) -> (Requeue, Option<Guarded<R::Object>>) {
    let meta = &malformed.meta;
    if context.mode == WriteMode::DryRun {
        return (Requeue::Rest, None);
    }
    let leaving = finalizers(reconciler).stage(meta) == FinalizerStage::Leaving;
    if leaving && context.steering.is_forced(meta) {
        return (let_go(context, reconciler, malformed).await, None);
    }
    let problem = Problem::invalid(reasons::INVALID_CONFIG, message(reconciler.profile().kind, malformed, leaving));
    if !reconciler.profile().owns_status {
        return (Requeue::Failed(problem), None);
    }
    let (report, time) = (Report::failed(&problem), (context.clock)());
    let wanted = status::wanted(&malformed.status, &report, Keep::Rest, generation_of(meta), time);
    let Some(wanted) = wanted.filter(|wanted| status::differs(&malformed.status, wanted)) else {
        return (Requeue::Failed(problem), None);
    };
    tracing::warn!(kind = reconciler.profile().kind, object = %key_of(meta), error = %problem, "An object does not fit its kind");
    match status::write::<R::Object>(&context.client, meta, &wanted).await {
        Ok(Some(written)) => (Requeue::Failed(problem), Some(written)),
        Ok(None) => (Requeue::Gone, None),
        Err(error) => (Requeue::Failed(kubernetes_problem(format_args!("writing the status"), &error)), None),
    }
}

async fn let_go<R: Reconcile>(context: &Context, reconciler: &R, malformed: &Malformed) -> Requeue {
    let patch = finalizers(reconciler).removing(&malformed.meta);
    match patch_object::<R>(context, &malformed.meta, patch).await {
        Ok(_) => Requeue::Gone,
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Requeue::Gone,
        Err(error) => Requeue::Failed(kubernetes_problem(format_args!("removing the finalizers"), &error)),
    }
}

fn message(kind: &str, malformed: &Malformed, leaving: bool) -> String {
    let mut message = format!("The object is not a valid {kind}: {}. Correct it.", malformed.error);
    if leaving {
        message += " To delete it without cleaning up, set the annotation portolan.dev/force-delete: \"true\".";
    }
    message
}
