//! `CloudflareCredentials` ↔ `accounts/{id}`: proves that a credential works for the account that it names.
//!
//! Nothing is written at Cloudflare, ever.

use kube::CustomResource;
use portolan_cloudflare_api::objects::Account;
use portolan_cloudflare_api::{Entry, TypedCollection, collections};
use portolan_core::{AccountId, Class, Condition, Problem, allow, reasons, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blocks::{AuthType, SecretReference};
use crate::kind::{CredentialsFrom, Kind, Needs, Recorded, Resolved, StatusView};
use crate::reasons::VALIDATION_FAILED;
use crate::sheet::Sheet;
use crate::shown;

/// A credential for a Cloudflare account, which other objects refer to.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "CloudflareCredentials")]
#[kube(plural = "cloudflarecredentials", singular = "cloudflarecredentials", shortname = "cfcreds")]
#[kube(status = "CloudflareCredentialsStatus", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"Account ID","type":"string","jsonPath":".spec.accountId"}"#)]
#[kube(printcolumn = r#"{"name":"Auth Type","type":"string","jsonPath":".spec.authType"}"#)]
#[kube(printcolumn = r#"{"name":"Default","type":"boolean","jsonPath":".spec.isDefault"}"#)]
#[kube(printcolumn = r#"{"name":"Validated","type":"boolean","jsonPath":".status.validated"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct CloudflareCredentialsSpec {
    /// Id of the account.
    #[schemars(length(min = 1, max = 64))]
    pub account_id: String,
    /// Name of the account, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub account_name: Option<String>,
    /// Whether the Secret holds an API token or a global API key.
    #[serde(default)]
    pub auth_type: AuthType,
    /// The Secret that holds it.
    pub secret_ref: SecretReference,
    /// Domain of objects that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub default_domain: Option<String>,
    /// Whether objects that name no credentials use these; at most one may say so.
    #[serde(default)]
    pub is_default: bool,
    /// Namespaces whose objects may use these credentials; `*` is all, and absent limits nothing. Objects of the cluster always may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(regex(pattern = allow::NAMESPACE_PATTERN)))]
    pub allowed_namespaces: Option<Vec<String>>,
    /// Names that records may have: `example.com` is that name alone, `*.example.com` every name below it. Absent limits
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(max = 255), regex(pattern = allow::HOSTNAME_PATTERN)))]
    pub allowed_domains: Option<Vec<String>>,
}

/// What became of a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CloudflareCredentialsStatus {
    /// What is known of the credential.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` or `Error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether Cloudflare accepted the credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validated: Option<bool>,
    /// When it last did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_validated_time: Option<String>,
    /// The account's name at Cloudflare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
}

impl CloudflareCredentials {
    /// Whether Cloudflare accepted the credential; `None` while that is not known.
    pub fn validated(&self) -> Option<bool> {
        self.status.as_ref()?.validated
    }
}

impl Kind for CloudflareCredentials {
    type Body = Account;

    const SHEET: Sheet = Sheet {
        shown: shown::CREDENTIALS,
        ready_reason: reasons::VALIDATED,
        error_reason: VALIDATION_FAILED,
        ..Sheet::observed("CloudflareCredentials", "account", "cloudflare.com/credentials-finalizer")
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::ACCOUNTS;

    fn check(&self) -> Result<(), Problem> {
        let id = AccountId::parse(&self.spec.account_id);
        id.map(drop).map_err(|error| Problem::invalid(reasons::INVALID_CONFIG, format!("accountId: {error}")))
    }

    fn needs(&self) -> Needs {
        Needs { account_id: Some(self.spec.account_id.clone()), ..Needs::only(CredentialsFrom::Itself) }
    }

    fn desired(&self, _: &Resolved) -> Result<Vec<Account>, Problem> {
        Ok(vec![Account { name: self.spec.account_name.clone().unwrap_or_default().into() }])
    }

    fn is_default(&self) -> bool {
        self.spec.is_default
    }

    /// The account that it stands for.
    fn recorded(&self) -> Recorded {
        Recorded { ids: vec![self.spec.account_id.clone()], ..Recorded::default() }
    }

    fn status(&self, view: &StatusView<'_, Account>) -> Value {
        let before = self.status.clone().unwrap_or_default();
        let found = view.present.first();
        let validated = match view.problem.map(|problem| problem.class) {
            None => Some(true),
            // Whether the credential is good is not known while Cloudflare does not answer.
            Some(Class::Transient) => before.validated,
            Some(Class::Invalid | Class::Waiting | Class::Denied) => Some(false),
        };
        let now = CloudflareCredentialsStatus {
            state: Some(if view.problem.is_some() { "Error" } else { "Ready" }.to_owned()),
            validated,
            last_validated_time: view.checked_at.map(str::to_owned).or(before.last_validated_time),
            account_name: found.map(|entry| entry.item.name.to_string()).or(before.account_name),
            ..CloudflareCredentialsStatus::default()
        };
        serde_json::to_value(now).expect("statuses are plain JSON")
    }

    fn lookup_id(&self) -> Option<String> {
        Some(self.spec.account_id.clone())
    }

    fn missing(&self) -> Problem {
        let message = format!("the credential sees no account {}; correct accountId", self.spec.account_id);
        Problem::denied(VALIDATION_FAILED, message)
    }

    fn well(&self, _: &Resolved) -> (&'static str, String) {
        (Self::READY_REASON, format!("Cloudflare accepts the credential for account {}", self.spec.account_id))
    }

    fn observed(&self, found: &Entry<Account>, _: &Resolved) -> Result<(), Problem> {
        if found.id == self.spec.account_id {
            return Ok(());
        }
        let message =
            format!("the credential is for account {}, not {}; correct accountId", found.id, self.spec.account_id);
        Err(Problem::denied(VALIDATION_FAILED, message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn credentials() -> CloudflareCredentials {
        from_value(json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareCredentials",
            "metadata": { "name": "prod" }, "spec": { "accountId": "a1", "secretRef": { "name": "cf" } },
        }))
        .unwrap()
    }

    #[test]
    fn a_secret_without_keys_is_read_by_the_usual_ones() {
        let spec = credentials().spec;

        assert_eq!(spec.auth_type, AuthType::ApiToken);
        let keys = [spec.secret_ref.api_token_key(), spec.secret_ref.api_key_key(), spec.secret_ref.email_key()];
        assert_eq!(keys, ["CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY", "CLOUDFLARE_EMAIL"]);
    }

    #[test]
    fn an_accepted_credential_shows_the_accounts_name() {
        let present = [Entry { id: "a1".to_owned(), item: Account { name: "Acme".into() } }];
        let checked_at = Some("2026-01-01T00:00:00Z");
        let view = StatusView { resolved: None, present: &present, problem: None, checked_at };

        assert_eq!(
            credentials().status(&view),
            json!({ "state": "Ready", "validated": true, "lastValidatedTime": "2026-01-01T00:00:00Z", "accountName": "Acme" })
        );
    }

    #[test]
    fn an_answer_that_did_not_come_does_not_make_a_credential_bad() {
        let mut known = credentials();
        known.status = Some(CloudflareCredentialsStatus { validated: Some(true), ..Default::default() });
        let status = |problem: &Problem| {
            known.status(&StatusView { resolved: None, present: &[], problem: Some(problem), checked_at: None })
        };

        assert_eq!(status(&Problem::transient(reasons::API_ERROR, "down"))["validated"], json!(true));
        assert_eq!(status(&Problem::denied(reasons::CREDENTIALS_DENIED, "no"))["validated"], json!(false));
    }

    #[test]
    fn a_credential_of_another_account_is_refused() {
        let other = Entry { id: "a2".to_owned(), item: Account { name: "Other".into() } };

        let problem = credentials().observed(&other, &Resolved::default()).unwrap_err();

        assert_eq!(problem.message, "the credential is for account a2, not a1; correct accountId");
    }
}
