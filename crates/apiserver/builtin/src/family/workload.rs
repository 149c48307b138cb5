//! `Deployment`, `ReplicaSet`, `StatefulSet`, `DaemonSet`, `ControllerRevision`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{
    Errors, at_most_all, count_or_percent, label_selector, not_negative, one_of, same, selector_is_empty,
    selector_is_valid, selects, showing, showing_selector,
};
use crate::meta::invalid;
use crate::names;
use crate::pod::{template_defaults, validate_template, validate_template_metadata};
use crate::value::{copy, default, existing, is_empty, list, list_mut, number, object, text, text_at};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Replicas, strategy and limits of a Deployment.
pub(crate) fn deployment_defaults(deployment: &mut Value) {
    let Some(spec) = existing(deployment, "spec") else {
        return;
    };
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = object(spec, "strategy") {
        rolling(strategy, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
    }
    template(spec);
}

/// Replicas of a `ReplicaSet`.
pub(crate) fn replica_set_defaults(set: &mut Value) {
    let Some(spec) = existing(set, "spec") else { return };
    default(spec, "replicas", 1);
    template(spec);
}

/// Strategy and history of a `DaemonSet`, and the count of its templates, which is a field of it inside the server.
pub(crate) fn daemon_set_defaults(set: &mut Value) {
    if let Some(annotations) = object(set, "metadata").and_then(|metadata| object(metadata, "annotations")) {
        default(annotations, TEMPLATE_GENERATION, "0");
    }
    let Some(spec) = existing(set, "spec") else { return };
    default(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object(spec, "updateStrategy") {
        rolling(strategy, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    }
    template(spec);
}

/// Policies, strategy and claims of a `StatefulSet`.
pub(crate) fn stateful_set_defaults(set: &mut Value) {
    let Some(spec) = existing(set, "spec") else { return };
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = object(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            strategy["type"] = json!("RollingUpdate");
            object(strategy, "rollingUpdate");
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(update) = existing(strategy, "rollingUpdate")
        {
            default(update, "partition", 0);
        }
    }
    if let Some(policy) = object(spec, "persistentVolumeClaimRetentionPolicy") {
        default(policy, "whenDeleted", "Retain");
        default(policy, "whenScaled", "Retain");
    }
    for claim in list_mut(spec, "volumeClaimTemplates") {
        default(claim, "apiVersion", "v1");
        default(claim, "kind", "PersistentVolumeClaim");
        super::storage::claim_defaults(claim);
    }
    template(spec);
}

/// How many pods of a `StatefulSet` may be missing is a feature that is off.
pub(crate) fn drop_disabled(set: &mut Value) {
    if let Some(update) = set.pointer_mut("/spec/updateStrategy/rollingUpdate") {
        crate::value::remove(update, "maxUnavailable");
    }
}

/// The kind of update, and how it rolls.
fn rolling(strategy: &mut Value, limits: &[(&str, Value)]) {
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") != "RollingUpdate" {
        return;
    }
    if let Some(update) = object(strategy, "rollingUpdate") {
        for (field, value) in limits {
            default(update, field, value.clone());
        }
    }
}

fn template(spec: &mut Value) {
    if let Some(template) = existing(spec, "template") {
        template_defaults(template);
    }
}

/// A `DaemonSet` counts its templates in an annotation.
pub(crate) fn prepare_daemon_set(set: &mut Value) {
    let given = text_at(set, "/metadata/annotations/deprecated.daemonset.template.generation").parse().unwrap_or(0);
    set_template_generation(set, i64::max(given, 1));
}

/// A changed template counts one up; clients cannot set the count.
pub(crate) fn update_daemon_set(set: &mut Value, old: &Value) {
    let there = text_at(old, "/metadata/annotations/deprecated.daemonset.template.generation").parse().unwrap_or(0);
    let changed = set.pointer("/spec/template") != old.pointer("/spec/template");
    set_template_generation(set, there + i64::from(changed));
}

fn set_template_generation(set: &mut Value, generation: i64) {
    if let Some(annotations) = object(set, "metadata").and_then(|metadata| object(metadata, "annotations")) {
        annotations[TEMPLATE_GENERATION] = json!(generation.to_string());
    }
}

/// Replicas, selector, template and strategy of a Deployment; its selector never changes.
pub(crate) fn validate_deployment(deployment: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &deployment["spec"];
    not_negative(errors, spec, "replicas", &path);
    not_negative(errors, spec, "minReadySeconds", &path);
    validate_selector(spec, Some("deployment"), &path, errors);
    selected_template(spec, &path, errors);
    validate_strategy(&spec["strategy"], &path.field("strategy"), errors);
    not_negative(errors, spec, "revisionHistoryLimit", &path);
    validate_deadline(spec, &path, errors);
    if let Some(old) = old {
        same(errors, spec, &old["spec"], "selector", &path);
    }
}

fn validate_deadline(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(errors, spec, "progressDeadlineSeconds", path);
    let least = number(spec, "minReadySeconds").unwrap_or(0);
    if number(spec, "progressDeadlineSeconds").is_some_and(|deadline| deadline <= least) {
        let value = &spec["progressDeadlineSeconds"];
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(&path.field("progressDeadlineSeconds"), value, detail));
    }
}

/// A selector must be there; where `kind` is named it must say something.
fn validate_selector(spec: &Value, kind: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    let selector = &spec["selector"];
    let path = path.field("selector");
    if selector.is_null() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    label_selector(errors, selector, &path);
    if let Some(kind) = kind
        && selector_is_empty(selector)
    {
        errors.push(FieldError::invalid(&path, selector, format!("empty selector is invalid for {kind}")));
    }
}

/// The template's labels must be those that the selector looks for, and its pods must run for ever.
fn selected_template(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = &spec["selector"];
    if !selector_is_valid(selector) {
        let error = FieldError::invalid(&path.field("selector"), selector, "invalid label selector");
        errors.push(showing_selector(error, selector));
        return;
    }
    let path = path.field("template");
    let labels = &spec["template"]["metadata"]["labels"];
    let empty = !selector.is_null() && selector_is_empty(selector);
    if !empty && !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path.field("metadata").field("labels"), labels, detail));
    }
    validate_template(&spec["template"], &path, errors);
    always_restarts(&spec["template"], "ReplicaSet", &path, errors);
}

/// Pods of these kinds run for ever.
fn always_restarts(template: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("spec");
    let policy = text_at(template, "/spec/restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.field("restartPolicy"), &json!(policy), &["Always"]));
    }
    if !template["spec"]["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.field("activeDeadlineSeconds"), detail));
    }
}

/// The error about a strategy that the server does not know.
fn strategy_error(error: FieldError, strategy: &Value) -> FieldError {
    showing(error, &[("Type", &strategy["type"]), ("RollingUpdate", &strategy["rollingUpdate"])])
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    match text(strategy, "type") {
        "Recreate" => {
            if !strategy["rollingUpdate"].is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(&path.field("rollingUpdate"), detail));
            }
        }
        "RollingUpdate" => {
            let update = &strategy["rollingUpdate"];
            let path = path.field("rollingUpdate");
            count_or_percent(errors, &update["maxUnavailable"], &path.field("maxUnavailable"));
            count_or_percent(errors, &update["maxSurge"], &path.field("maxSurge"));
            if is_nothing(&update["maxUnavailable"]) && is_nothing(&update["maxSurge"]) {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(&path.field("maxUnavailable"), &update["maxUnavailable"], detail));
            }
            at_most_all(errors, &update["maxUnavailable"], &path.field("maxUnavailable"));
        }
        _ => {
            let error = FieldError::not_supported(path, strategy, &["Recreate", "RollingUpdate"]);
            errors.push(strategy_error(error, strategy));
        }
    }
}

/// Whether a count or percentage, or a text that is neither, comes to nothing.
fn is_nothing(count: &Value) -> bool {
    match count.as_str() {
        Some(text) => text.strip_suffix('%').unwrap_or(text).parse::<i64>().unwrap_or(0) == 0,
        None => count.as_i64().unwrap_or(0) == 0,
    }
}

/// Replicas, selector and template of a `ReplicaSet`; its selector never changes.
pub(crate) fn validate_replica_set(set: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &set["spec"];
    not_negative(errors, spec, "replicas", &path);
    not_negative(errors, spec, "minReadySeconds", &path);
    // The real server names the wrong kind here.
    validate_selector(spec, Some("deployment"), &path, errors);
    selected_template(spec, &path, errors);
    if let Some(old) = old {
        same(errors, spec, &old["spec"], "selector", &path);
    }
}

/// Selector, template and strategy of a `DaemonSet`; its selector never changes.
pub(crate) fn validate_daemon_set(set: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &set["spec"];
    let selector = &spec["selector"];
    label_selector(errors, selector, &path.field("selector"));
    let labels = &spec["template"]["metadata"]["labels"];
    if selector_is_valid(selector) && !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        let path = path.field("template");
        errors.push(FieldError::invalid(&path.field("metadata").field("labels"), labels, detail));
    }
    if !selector.is_null() && selector_is_empty(selector) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(&path.field("selector"), selector, detail));
    }
    validate_template(&spec["template"], &path.field("template"), errors);
    always_restarts(&spec["template"], "DaemonSet", &path.field("template"), errors);
    not_negative(errors, spec, "minReadySeconds", &path);
    validate_daemon_strategy(&spec["updateStrategy"], &path.field("updateStrategy"), errors);
    not_negative(errors, spec, "revisionHistoryLimit", &path);
    if let Some(old) = old {
        same(errors, spec, &old["spec"], "selector", &path);
    }
}

/// Either some pods are missing while others are replaced, or there are some more; not both.
fn validate_daemon_strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let update = &strategy["rollingUpdate"];
            let path = path.field("rollingUpdate");
            for check in [count_or_percent, at_most_all] {
                check(errors, &update["maxUnavailable"], &path.field("maxUnavailable"));
                check(errors, &update["maxSurge"], &path.field("maxSurge"));
            }
            match (is_nothing(&update["maxUnavailable"]), is_nothing(&update["maxSurge"])) {
                (false, false) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::invalid(&path.field("maxSurge"), &update["maxSurge"], detail));
                }
                (true, true) => {
                    let detail = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(&path.field("maxUnavailable"), detail));
                }
                _ => {}
            }
        }
        _ => {
            let error = FieldError::not_supported(path, strategy, &["RollingUpdate", "OnDelete"]);
            errors.push(strategy_error(error, strategy));
        }
    }
}

/// Fields of a `StatefulSet` that may change.
const CHANGING: &[&str] = &[
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

/// Policies, selector and template of a `StatefulSet`; most of its spec never changes.
pub(crate) fn validate_stateful_set(set: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &set["spec"];
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.field("podManagementPolicy"), &json!(policy), detail));
    }
    validate_stateful_strategy(&spec["updateStrategy"], &path.field("updateStrategy"), errors);
    let retention = path.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        one_of(errors, &spec["persistentVolumeClaimRetentionPolicy"], field, &["Retain", "Delete"], &retention);
    }
    if old.is_none() {
        for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            let path = path.field("volumeClaimTemplates");
            let path = path.index(index);
            super::storage::validate_claim_spec(&claim["spec"], &path.field("spec"), errors);
        }
    }
    not_negative(errors, spec, "replicas", &path);
    not_negative(errors, spec, "minReadySeconds", &path);
    not_negative(errors, &spec["ordinals"], "start", &path.field("ordinals"));
    let service = text(spec, "serviceName");
    if old.is_none() && !service.is_empty() {
        invalid(errors, &path.field("serviceName"), service, names::dns_label(service));
    }
    validate_selector(spec, Some("statefulset"), &path, errors);
    validate_stateful_template(spec, &path, errors);
    if let Some(old) = old {
        only_some_fields_change(spec, &old["spec"], &path, errors);
    }
}

fn validate_stateful_strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let update = &strategy["rollingUpdate"];
    let path_of_update = path.field("rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {
            if !update.is_null() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                let partition = json!(number(update, "partition").unwrap_or(0));
                let fields = [("Partition", &partition), ("MaxUnavailable", &Value::Null)];
                errors.push(showing(FieldError::invalid(&path_of_update, update, detail), &fields));
            }
        }
        "RollingUpdate" => not_negative(errors, update, "partition", &path_of_update),
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(strategy_error(FieldError::invalid(path, strategy, detail), strategy));
        }
    }
}

/// The template with a volume for each claim; its names on the network are the set's own.
fn validate_stateful_template(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = &spec["selector"];
    if !selector_is_valid(selector) {
        errors.push(showing_selector(FieldError::invalid(&path.field("selector"), selector, ""), selector));
        return;
    }
    let path = path.field("template");
    let mut template = spec["template"].clone();
    let labels = &spec["template"]["metadata"]["labels"];
    let open = !selector.is_null() && selector_is_empty(selector);
    if !open && !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path.field("metadata").field("labels"), labels, detail));
    }
    if let Some(pod) = existing(&mut template, "spec") {
        for field in ["hostname", "subdomain"] {
            crate::value::remove(pod, field);
        }
        add_claimed_volumes(pod, list(spec, "volumeClaimTemplates"));
    }
    validate_template(&template, &path, errors);
    validate_template_metadata(&template, &path, errors);
    always_restarts(&spec["template"], "StatefulSet", &path, errors);
}

fn add_claimed_volumes(pod: &mut Value, claims: &[Value]) {
    if claims.is_empty() {
        return;
    }
    let name = |claim: &Value| text_at(claim, "/metadata/name").to_owned();
    let claimed = |volume: &Value| claims.iter().any(|claim| name(claim) == text(volume, "name"));
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|claim| json!({"name": name(claim), "persistentVolumeClaim": {"claimName": name(claim)}}))
        .collect();
    volumes.extend(list(pod, "volumes").iter().filter(|volume| !claimed(volume)).cloned());
    pod["volumes"] = json!(volumes);
}

fn only_some_fields_change(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut kept = spec.clone();
    for field in CHANGING {
        copy(&mut kept, old, field);
    }
    if kept != *old {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Number and content of a revision; the content never changes.
pub(crate) fn validate_revision(revision: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    not_negative(errors, revision, "revision", &root);
    if is_empty(&revision["data"]) {
        errors.push(FieldError::required(&root.field("data"), "data is mandatory"));
    }
    if let Some(old) = old {
        same(errors, revision, old, "data", &root);
    }
}
