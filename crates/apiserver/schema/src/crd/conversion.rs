//! The conversion between versions. Webhooks are described, not called, here.

use serde_json::{Value, json};

use super::{flag, list, one_of, text};
use crate::field::{FieldError, Path};
use crate::names;
use crate::url::Url;

pub(super) fn validate(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").filter(|c| !c.is_null()) else {
        return;
    };
    let strategy = text(conversion.get("strategy"));
    if strategy != "None" && flag(spec.get("preserveUnknownFields")) {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.field("strategy"), &json!(strategy), detail));
    }
    one_of(strategy, &["None", "Webhook"], &path.field("strategy"), errors);
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    let client = webhook.get("clientConfig").filter(|c| !c.is_null());
    let versions = list(webhook.get("conversionReviewVersions"));
    let client_path = path.field("webhookClientConfig");
    let versions_path = path.field("conversionReviewVersions");
    if strategy == "Webhook" {
        match client {
            Some(client) => client_config(client, &client_path, errors),
            None => errors.push(FieldError::required(&client_path, "required when strategy is set to Webhook")),
        }
        review_versions(versions, &versions_path, errors);
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&client_path, detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path, detail));
        }
    }
}

fn client_config(client: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|s| !s.is_null());
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => {
            errors.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => webhook_url(url, &path.field("url"), errors),
        (None, Some(service)) => {
            for name in ["name", "namespace"] {
                if text(service.get(name)).is_empty() {
                    errors.push(FieldError::required(&path.field("service").field(name), ""));
                }
            }
        }
    }
}

fn webhook_url(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let Some(url) = Url::parse_request(text) else {
        let shown = crate::go::quote(text);
        errors.push(FieldError::required(
            path,
            format!("url must be a valid URL: parse {shown}: invalid URI for request{FORM}"),
        ));
        return;
    };
    if url.scheme != "https" {
        errors.push(FieldError::invalid(
            path,
            &json!(url.scheme),
            format!("'https' is the only allowed URL scheme{FORM}"),
        ));
    }
    if url.host.is_empty() {
        errors.push(FieldError::invalid(path, &json!(""), format!("host must be specified{FORM}")));
    }
    if !url.query.is_empty() {
        errors.push(FieldError::invalid(path, &json!(url.query), "query parameters are not permitted in the URL"));
    }
}

fn review_versions(versions: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let path = path.index(index);
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(&path, version, "duplicate version"));
            continue;
        }
        let wrong = names::dns1035_label(text(Some(version)));
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&path, version, why)));
    }
    if !versions.iter().any(|version| matches!(text(Some(version)), "v1" | "v1beta1")) {
        let value = Value::from(versions.to_vec());
        errors.push(FieldError::invalid(path, &value, "must include at least one of v1, v1beta1"));
    }
}
