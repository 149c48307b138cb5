//! `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration`: stored, and not called.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::meta::invalid;
use crate::names;
use crate::value::{default, existing, is_empty, list, list_mut, text, texts};

/// Policies, selectors and ports. Only mutating webhooks are called again after others.
pub(crate) fn defaults(configuration: &mut Value, mutating: bool) {
    for webhook in list_mut(configuration, "webhooks") {
        default(webhook, "failurePolicy", "Fail");
        default(webhook, "matchPolicy", "Equivalent");
        default(webhook, "namespaceSelector", json!({}));
        default(webhook, "objectSelector", json!({}));
        default(webhook, "timeoutSeconds", 10);
        if mutating {
            default(webhook, "reinvocationPolicy", "Never");
        }
        for rule in list_mut(webhook, "rules") {
            default(rule, "scope", "*");
        }
        if let Some(service) = existing(webhook, "clientConfig").and_then(|config| existing(config, "service")) {
            default(service, "port", 443);
        }
    }
}

/// Names, review versions, side effects and addresses.
pub(crate) fn validate(configuration: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("webhooks");
    for (index, webhook) in list(configuration, "webhooks").iter().enumerate() {
        validate_webhook(webhook, &path.index(index), errors);
    }
}

fn validate_webhook(webhook: &Value, path: &Path<'_>, errors: &mut Errors) {
    name(text(webhook, "name"), &path.field("name"), errors);
    match text(webhook, "sideEffects") {
        "None" | "NoneOnDryRun" => {}
        "" => errors.push(FieldError::required(&path.field("sideEffects"), "must specify one of None, NoneOnDryRun")),
        other => {
            let supported = &["None", "NoneOnDryRun"];
            errors.push(FieldError::not_supported(&path.field("sideEffects"), &json!(other), supported));
        }
    }
    let client = &webhook["clientConfig"];
    if is_empty(&client["url"]) == is_empty(&client["service"]) {
        let detail = "exactly one of url or service is required";
        errors.push(FieldError::required(&path.field("clientConfig"), detail));
    }
    let versions = texts(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        let detail = "must specify one of v1, v1beta1";
        errors.push(FieldError::required(&path.field("admissionReviewVersions"), detail));
    } else if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        let detail = "must include at least one of v1, v1beta1";
        let value = &webhook["admissionReviewVersions"];
        errors.push(FieldError::invalid(&path.field("admissionReviewVersions"), value, detail));
    }
}

fn name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let problems = names::dns_subdomain(name);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !problems.is_empty() {
        invalid(errors, path, name, problems);
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}
