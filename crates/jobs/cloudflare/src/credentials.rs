//! Which credential an object uses, and the client that goes with it.

use std::sync::Arc;

use portolan_cloudflare_api::{Client, Clients, Credential};
use portolan_core::{AccountId, ObjectKey, Problem, reasons, text};
use portolan_engine::{SecretValues, Secrets};

use crate::blocks::AuthType;
use crate::kind::{CredentialsFrom, InlineSecret};
use crate::kinds::CloudflareCredentials;
use crate::used::UsedCredentials;

/// A client, and the account that its credential is for.
#[derive(Clone)]
pub(crate) struct CredentialAccess {
    /// Sends requests with the credential.
    pub(crate) client: Client,
    /// The credential's account, where the credential names one.
    pub(crate) account: Option<AccountId>,
    /// Which credential it is.
    pub(crate) used: UsedCredentials,
    /// The Secret that it was read from.
    pub(crate) secret: ObjectKey,
}

/// The credentials that `from` means, among all there are. `None` for Secrets named in the object itself.
pub(crate) fn choose(
    from: &CredentialsFrom,
    all: &[Arc<CloudflareCredentials>],
) -> Result<Option<Arc<CloudflareCredentials>>, Problem> {
    match from {
        CredentialsFrom::Named(name) => match all.iter().find(|one| one.metadata.name.as_deref() == Some(name)) {
            Some(found) => Ok(Some(Arc::clone(found))),
            None => Err(Problem::waiting(
                reasons::DEPENDENCY_ERROR,
                format!("CloudflareCredentials {name} does not exist; create it, or correct credentialsRef.name"),
            )),
        },
        CredentialsFrom::Default => the_default(all).map(Some),
        CredentialsFrom::Inline(_) | CredentialsFrom::Itself => Ok(None),
    }
}

fn the_default(all: &[Arc<CloudflareCredentials>]) -> Result<Arc<CloudflareCredentials>, Problem> {
    let defaults: Vec<_> = all.iter().filter(|one| is_default(one)).collect();
    match defaults.as_slice() {
        [one] => Ok(Arc::clone(one)),
        [] => Err(Problem::waiting(
            reasons::DEPENDENCY_ERROR,
            "there is no default: no CloudflareCredentials says isDefault: true. \
             Name one under credentialsRef, or make one the default",
        )),
        several => {
            let names: Vec<&str> = several.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
            Err(duplicate_default(&names))
        }
    }
}

/// Two defaults are none: which account is meant is not ours to guess.
pub(crate) fn duplicate_default(names: &[&str]) -> Problem {
    Problem::waiting(
        reasons::DUPLICATE_DEFAULT,
        format!(
            "CloudflareCredentials {} all say isDefault: true; keep one of them the default",
            text::join_and(names)
        ),
    )
}

/// Whether the object is the default, or wants to be.
pub(crate) fn is_default(credentials: &CloudflareCredentials) -> bool {
    credentials.spec.is_default && credentials.metadata.deletion_timestamp.is_none()
}

/// The client of a `CloudflareCredentials`.
pub(crate) async fn open(
    credentials: &CloudflareCredentials,
    secrets: &Secrets,
    clients: &Clients,
    operator_namespace: &str,
) -> Result<CredentialAccess, Problem> {
    portolan_core::waypoint!();
    let reference = &credentials.spec.secret_ref;
    let namespace = reference.namespace_or(operator_namespace);
    let values = secrets.read(namespace, &reference.name).await?;
    let place = format!("Secret {namespace}/{}", reference.name);
    let credential = match credentials.spec.auth_type {
        AuthType::ApiToken => {
            token(&values, reference.api_token_key()).ok_or_else(|| missing(&place, &[reference.api_token_key()]))?
        }
        AuthType::GlobalApiKey => global_key(&values, reference.api_key_key(), None, reference.email_key())
            .ok_or_else(|| missing(&place, &[reference.api_key_key(), reference.email_key()]))?,
    };
    let account = AccountId::parse(&credentials.spec.account_id)
        .map_err(|error| Problem::invalid(reasons::INVALID_CONFIG, format!("spec.accountId: {error}")))?;
    let used = UsedCredentials {
        account_id: Some(account.to_string()),
        ..UsedCredentials::named(credentials.metadata.name.as_deref().unwrap_or_default())
    };
    let secret = ObjectKey::namespaced(namespace, &reference.name);
    let key = match credentials.spec.auth_type {
        AuthType::ApiToken => reference.api_token_key(),
        AuthType::GlobalApiKey => reference.api_key_key(),
    };
    let client = clients.client_of(&format!("{secret}/{key}"), &credential);
    Ok(CredentialAccess { client, account: Some(account), used, secret })
}

/// The client of a Secret that the object itself names.
pub(crate) async fn open_inline(
    inline: &InlineSecret,
    namespace: &str,
    secrets: &Secrets,
    clients: &Clients,
) -> Result<CredentialAccess, Problem> {
    let values = secrets.read(namespace, &inline.name).await?;
    let place = format!("Secret {namespace}/{}", inline.name);
    let credential = token(&values, &inline.token_key)
        .or_else(|| global_key(&values, &inline.api_key_key, inline.email.as_deref(), "CLOUDFLARE_EMAIL"))
        .or_else(|| global_key(&values, &inline.api_key_key, inline.email.as_deref(), "CLOUDFLARE_API_EMAIL"))
        .ok_or_else(|| missing_inline(&place, inline))?;
    let secret = ObjectKey::namespaced(namespace, &inline.name);
    let source = format!("{secret}/{}", inline.token_key);
    Ok(CredentialAccess {
        client: clients.client_of(&source, &credential),
        account: None,
        used: UsedCredentials::inline(inline),
        secret,
    })
}

fn token(values: &SecretValues, key: &str) -> Option<Credential> {
    values.get(key).cloned().map(Credential::Token)
}

fn global_key(values: &SecretValues, key: &str, email: Option<&str>, email_key: &str) -> Option<Credential> {
    let email = match email {
        Some(email) => email.to_owned(),
        None => secrecy::ExposeSecret::expose_secret(values.get(email_key)?).to_owned(),
    };
    Some(Credential::GlobalKey { key: values.get(key)?.clone(), email })
}

fn missing(place: &str, keys: &[&str]) -> Problem {
    Problem::waiting(reasons::DEPENDENCY_ERROR, format!("{place} has no text under {}", text::join_and(keys)))
}

fn missing_inline(place: &str, inline: &InlineSecret) -> Problem {
    Problem::waiting(
        reasons::DEPENDENCY_ERROR,
        format!(
            "{place} has neither a token under {} nor an API key under {} with an e-mail \
             (spec.cloudflare.email, or the keys CLOUDFLARE_EMAIL or CLOUDFLARE_API_EMAIL)",
            inline.token_key, inline.api_key_key
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn credentials(name: &str, is_default: bool) -> Arc<CloudflareCredentials> {
        let object = json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareCredentials",
            "metadata": { "name": name },
            "spec": { "accountId": "a1", "secretRef": { "name": "cf" }, "isDefault": is_default },
        });
        Arc::new(from_value(object).expect("it is complete"))
    }

    fn name(chosen: Option<Arc<CloudflareCredentials>>) -> Option<String> {
        chosen.and_then(|one| one.metadata.name.clone())
    }

    #[test]
    fn the_default_is_the_one_that_says_so_whatever_its_name() {
        let all = [credentials("default", false), credentials("main", true)];

        let chosen = choose(&CredentialsFrom::Default, &all).expect("there is a default");

        assert_eq!(name(chosen).as_deref(), Some("main"));
    }

    #[test]
    fn without_a_default_nothing_is_guessed() {
        let problem = choose(&CredentialsFrom::Default, &[credentials("default", false)]).expect_err("none says so");

        assert!(problem.message.contains("there is no default"), "{}", problem.message);
    }

    #[test]
    fn two_defaults_are_none() {
        let all = [credentials("a", true), credentials("b", true)];

        let problem = choose(&CredentialsFrom::Default, &all).expect_err("it is not clear which");

        assert_eq!(problem.reason, reasons::DUPLICATE_DEFAULT);
        assert!(problem.message.contains("a and b"), "{}", problem.message);
    }

    #[test]
    fn a_default_that_is_being_deleted_is_none() {
        let mut leaving = (*credentials("a", true)).clone();
        leaving.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));

        let chosen = choose(&CredentialsFrom::Default, &[Arc::new(leaving), credentials("b", true)]);

        assert_eq!(name(chosen.expect("one is left")).as_deref(), Some("b"));
    }

    #[test]
    fn credentials_that_do_not_exist_are_waited_for_by_name() {
        let problem = choose(&CredentialsFrom::Named("prod".to_owned()), &[]).expect_err("it does not exist");

        assert!(problem.message.starts_with("CloudflareCredentials prod does not exist"), "{}", problem.message);
    }
}
