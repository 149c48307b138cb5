//! Groups of the Kubernetes community (`*.k8s.io`) need an annotation that says who approved them.

use serde_json::{Value, json};

use super::text;
use crate::field::{FieldError, Path};
use crate::url::Url;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(PartialEq)]
enum Approval {
    Missing,
    Invalid,
    Bypassed,
    Approved,
}

pub(super) fn validate(new: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = text(new.pointer("/spec/group"));
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|d| group == *d || group.ends_with(&format!(".{d}")));
    let state = approval(annotation(new));
    if !protected || old.is_some_and(|old| approval(annotation(old)) == state) {
        return None;
    }
    let root = Path::root();
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    let path = annotations.key(ANNOTATION);
    let need = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    match state {
        Approval::Bypassed | Approval::Approved => None,
        Approval::Missing => Some(FieldError::required(&path, format!("{need}, {SEE}"))),
        Approval::Invalid => {
            let detail = format!("{need} with either a URL or a reason starting with \"unapproved\", {SEE}");
            Some(FieldError::invalid(&path, &json!(annotation(new)), detail))
        }
    }
}

fn annotation(definition: &Value) -> &str {
    text(definition.pointer("/metadata/annotations").and_then(|annotations| annotations.get(ANNOTATION)))
}

fn approval(annotation: &str) -> Approval {
    if annotation.is_empty() {
        Approval::Missing
    } else if annotation.starts_with("unapproved") {
        Approval::Bypassed
    } else if Url::parse_request(annotation).is_some_and(|url| !url.host.is_empty() && !url.scheme.is_empty()) {
        Approval::Approved
    } else {
        Approval::Invalid
    }
}
