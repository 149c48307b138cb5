//! Files → the copy, under the same rules as in the cluster, and in the way in which each object was applied there.

use super::PlanQuestion;
use crate::applying::{Applier, ApplyOptions, As, Conflicts, Storing};
use crate::definitions::GATEWAY_GROUP;
use crate::failure::{Failure, Outcome};
use crate::health_view::GROUP;
use crate::manifest::Manifest;
use crate::server::Server;
use crate::zerotrust;

/// Applies those objects of the files that can change anything at Cloudflare; says what was assumed about how.
pub(super) async fn apply(local: &Server, question: &PlanQuestion<'_>) -> Outcome<Vec<String>> {
    let manifests: Vec<Manifest> = question.manifests.iter().filter(|manifest| matters(manifest)).cloned().collect();
    if question.cluster.is_none() {
        make_namespaces(local, &manifests).await?;
    }
    let options = ApplyOptions {
        namespace: None,
        applier: As::Before(question.field_manager.clone()),
        conflicts: Conflicts::Tell,
        storing: Storing::Stored,
    };
    let (mut refused, mut notes) = (Vec::new(), Vec::new());
    let mut applier = Applier::new(local, options).await?;
    applier
        .apply_all(&manifests, |manifest, outcome| match outcome {
            Ok(applied) => {
                notes.extend(applied.notes.iter().map(|note| format!("{}: {note}", applied.object)));
            }
            Err(failure) => refused.push(failure.while_doing(&manifest.origin)),
        })
        .await?;
    match refused.len() {
        0 => Ok(notes),
        1 => Err(refused.remove(0)),
        count => {
            for failure in &refused {
                eprintln!("{failure}");
            }
            Err(Failure::new(format!("{count} objects of the files would be refused"))
                .next("correct them as the messages above say"))
        }
    }
}

/// Our own kinds, and what they refer to.
fn matters(manifest: &Manifest) -> bool {
    let group = manifest.api_version().split_once('/').map_or("", |(group, _)| group);
    match (group, manifest.kind()) {
        (GROUP | zerotrust::GROUP | GATEWAY_GROUP, _) => true,
        ("", kind) => matches!(kind, "Namespace" | "Secret" | "Service" | "Node"),
        ("networking.k8s.io", kind) => kind == "Ingress",
        _ => false,
    }
}

/// Without a cluster, the namespaces of the files are taken to exist.
async fn make_namespaces(local: &Server, manifests: &[Manifest]) -> Outcome {
    let mut names: Vec<&str> = manifests.iter().filter_map(Manifest::namespace).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        local.make_namespace(name).await?;
    }
    Ok(())
}
