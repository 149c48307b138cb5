//! A live object → how whoever applied it would apply a file for it again. Pure.
//!
//! What a file no longer says goes only where its applier says so. Who that is stands in the object: in `managedFields`, and in
//! the annotation of those who apply on the client's side.

use serde_json::Value;

use super::owners::{FieldOwner, Operation, owners};

/// The name under which `portolan apply` and `portolan up` own fields.
pub const MANAGER: &str = "portolan";
/// The name that `portolan up` had of its own.
pub(crate) const FORMER_MANAGER: &str = "portolan-up";
/// Where `kubectl apply` and Argo CD keep what they applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Who keeps it there, where nobody owns the annotation.
const KUBECTL_CLIENT_SIDE: &str = "kubectl-client-side-apply";
/// Where helm notes what an object belongs to.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";
/// Those who set fields otherwise than by server-side apply and take away what their files no longer have: helm 3 and Flux's
/// controller for it, which know the release; Argo CD where it replaces objects.
const KEEPERS: [&str; 3] = ["helm", "helm-controller", "argocd-controller"];

/// How a file is applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApplyMethod {
    /// By server-side apply: what this manager applied and the file lacks goes. kubectl, Flux, Argo CD, helm 4, Portolan.
    ServerSide { manager: String },
    /// By a patch that takes away what was applied last and the file lacks, whoever owns it now. kubectl, Argo CD.
    ClientSide { manager: String, last: Value },
    /// By a patch that takes away what this manager wrote and the file lacks. helm 3.
    Release { manager: String },
}

impl ApplyMethod {
    /// Under which name.
    pub(crate) fn manager(&self) -> &str {
        match self {
            Self::ServerSide { manager } | Self::ClientSide { manager, .. } | Self::Release { manager } => manager,
        }
    }

    /// As users call it.
    fn shown(&self) -> String {
        match self {
            Self::ServerSide { manager } => format!("{manager} (server-side)"),
            Self::ClientSide { manager, .. } => format!("{manager} (by its annotation of what it applied last)"),
            Self::Release { manager } => format!("{manager} (by what it wrote)"),
        }
    }

    /// Whether it takes fields of others without being told to.
    pub(crate) fn forces(&self) -> bool {
        match self {
            Self::ServerSide { manager } => !matches!(manager.as_str(), MANAGER | "kubectl" | "helm"),
            Self::ClientSide { .. } | Self::Release { .. } => true,
        }
    }
}

/// A way, and what there is to say about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) way: ApplyMethod,
    /// Why another one may be meant.
    pub(crate) note: Option<String>,
}

/// One who may have applied the object.
struct Candidate<'a> {
    way: ApplyMethod,
    weight: usize,
    time: &'a str,
}

/// How a file for this object would be applied, where nobody says how: by the one who owns most of it, of late.
pub(crate) fn of(live: &Value) -> Choice {
    let mut candidates = candidates(live);
    candidates.sort_by(|left, right| (right.weight, right.time).cmp(&(left.weight, left.time)));
    let mut candidates = candidates.into_iter();
    let Some(first) = candidates.next() else {
        // Of an object that nobody wrote anything into, nothing could go.
        if owners(live).all(|owner| owner.weight() == 0) {
            return Choice { way: server_side(MANAGER), note: None };
        }
        let note = "nobody applied it from files so far, so what the file lacks stays; \
            --field-manager names whose fields would go";
        return Choice { way: server_side(MANAGER), note: Some(note.to_owned()) };
    };
    let others: Vec<String> = candidates.map(|other| other.way.shown()).collect();
    let note = (!others.is_empty()).then(|| {
        let taken = first.way.shown();
        format!(
            "taken to be applied by {taken}, though {} applied it too; --field-manager names another",
            others.join(" and ")
        )
    });
    Choice { way: first.way, note }
}

/// How a manager would apply a file for this object.
pub(crate) fn by(manager: &str, live: &Value) -> ApplyMethod {
    let known = candidates(live).into_iter().map(|candidate| candidate.way).find(|way| way.manager() == manager);
    let kubectl = || client_side(live).map(|candidate| candidate.way).filter(|_| manager == "kubectl");
    let writes = || owners(live).any(|owner| owner.manager == manager && owner.operation == Operation::Update);
    known.or_else(kubectl).unwrap_or_else(|| {
        if writes() { ApplyMethod::Release { manager: manager.to_owned() } } else { server_side(manager) }
    })
}

fn candidates(live: &Value) -> Vec<Candidate<'_>> {
    let mut found: Vec<Candidate<'_>> = Vec::new();
    for owner in owners(live).filter(|owner| owner.operation == Operation::Apply) {
        let manager = if owner.manager == FORMER_MANAGER { MANAGER } else { owner.manager };
        match found.iter_mut().find(|one| one.way.manager() == manager) {
            Some(same) => (same.weight, same.time) = (same.weight + owner.weight(), same.time.max(owner.time)),
            None => found.push(Candidate { way: server_side(manager), weight: owner.weight(), time: owner.time }),
        }
    }
    found.extend(client_side(live).map_or_else(|| release(live), Some));
    found
}

/// Who keeps what it applied last on the object, and what that is.
fn client_side(live: &Value) -> Option<Candidate<'_>> {
    let last = serde_json::from_str(live["metadata"]["annotations"][LAST_APPLIED].as_str()?).ok()?;
    let owner = owners(live).find(|owner| owner.operation == Operation::Update && owner.owns_annotation(LAST_APPLIED));
    let manager = owner.map_or(KUBECTL_CLIENT_SIDE, |owner| owner.manager).to_owned();
    let way = ApplyMethod::ClientSide { manager, last };
    Some(Candidate { way, weight: owner.map_or(0, |owner| owner.weight()), time: owner.map_or("", |owner| owner.time) })
}

/// Who else takes away what its files no longer have.
fn release(live: &Value) -> Option<Candidate<'_>> {
    let keeps = |owner: &FieldOwner<'_>| KEEPERS.contains(&owner.manager) || owner.owns_annotation(HELM_RELEASE);
    let owner = owners(live).filter(|owner| owner.operation == Operation::Update).find(keeps)?;
    let way = ApplyMethod::Release { manager: owner.manager.to_owned() };
    Some(Candidate { way, weight: owner.weight(), time: owner.time })
}

fn server_side(manager: &str) -> ApplyMethod {
    ApplyMethod::ServerSide { manager: manager.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(manager: &str, operation: &str, names: &[&str]) -> Value {
        let annotations: serde_json::Map<String, Value> =
            names.iter().map(|name| (format!("f:{name}"), json!({}))).collect();
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": annotations}}})
    }

    fn object(owners: &[Value]) -> Value {
        json!({"metadata": {"managedFields": owners}})
    }

    fn remembering(owners: &[Value], last: &str) -> Value {
        json!({"metadata": {"managedFields": owners, "annotations": {LAST_APPLIED: last}}})
    }

    #[test]
    fn the_manager_of_an_apply_applies_again() {
        for manager in ["portolan", "kubectl", "kustomize-controller", "helm", "argocd-controller"] {
            let choice = of(&object(&[owned(manager, "Apply", &["a"]), owned("kubectl-edit", "Update", &["b", "c"])]));

            assert_eq!(choice, Choice { way: server_side(manager), note: None });
        }
    }

    #[test]
    fn what_portolan_up_applied_under_its_own_name_is_portolan_s() {
        let choice = of(&object(&[owned("portolan-up", "Apply", &["a"]), owned("portolan", "Apply", &["b"])]));

        assert_eq!(choice, Choice { way: server_side("portolan"), note: None });
    }

    #[test]
    fn the_annotation_says_what_was_applied_last_and_its_owner_by_whom() {
        let argo = owned("argocd-controller", "Update", &["a", LAST_APPLIED]);

        let choice = of(&remembering(&[argo], r#"{"spec":{}}"#));
        let unowned = of(&remembering(&[], r#"{"spec":{}}"#));

        let way = |manager: &str| ApplyMethod::ClientSide { manager: manager.to_owned(), last: json!({"spec": {}}) };
        assert_eq!((choice.way, unowned.way), (way("argocd-controller"), way("kubectl-client-side-apply")));
    }

    #[test]
    fn an_annotation_that_cannot_be_read_says_nothing() {
        let choice = of(&remembering(&[owned("kubectl-client-side-apply", "Update", &[LAST_APPLIED])], "{"));
        let empty = of(&object(&[owned("kubectl-create", "Update", &[])]));

        assert!(choice.note.is_some_and(|note| note.contains("nobody applied it")));
        assert_eq!(empty, Choice { way: server_side("portolan"), note: None });
    }

    #[test]
    fn helm_3_is_known_by_its_name_or_by_the_release_that_it_notes() {
        for (manager, annotation) in [("helm", "a"), ("terraform-provider-helm_v2", HELM_RELEASE)] {
            let choice = of(&object(&[owned(manager, "Update", &[annotation])]));

            assert_eq!(choice.way, ApplyMethod::Release { manager: manager.to_owned() });
        }
    }

    #[test]
    fn of_several_the_one_that_owns_more_is_taken_and_told() {
        let owners = [owned("kubectl", "Apply", &["a"]), owned("kustomize-controller", "Apply", &["a", "b"])];

        let choice = of(&object(&owners));

        assert_eq!(choice.way, server_side("kustomize-controller"));
        assert!(choice.note.is_some_and(|note| note.contains("though kubectl (server-side) applied it too")));
    }

    #[test]
    fn a_manager_that_is_named_applies_as_it_did() {
        let kubectl = owned("kubectl-client-side-apply", "Update", &[LAST_APPLIED]);
        let live = remembering(&[kubectl, owned("mine", "Update", &["x"])], "{}");

        assert!(matches!(by("kubectl", &live), ApplyMethod::ClientSide { .. }));
        assert!(matches!(by("kubectl-client-side-apply", &live), ApplyMethod::ClientSide { .. }));
        assert_eq!(by("mine", &live), ApplyMethod::Release { manager: "mine".to_owned() });
        assert_eq!(by("new", &live), server_side("new"));
    }
}
