//! `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration`: stored, and not called.

use serde_json::{Value, json};

use crate::value::{default, existing, list_mut};

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
