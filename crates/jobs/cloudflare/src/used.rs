//! The credential that wrote what stands for an object, as its status remembers it: names, never values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocks::{API_KEY_KEY, TOKEN_KEY};
use crate::kind::{CredentialsFrom, InlineSecret};

/// The credential that wrote what stands at Cloudflare, and that will delete it, whatever the spec says by then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsedCredentials {
    /// Name of the `CloudflareCredentials`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the Secret, where the object named one itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Key of the API token in that Secret, where it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_token_key: Option<String>,
    /// Key of the global API key in that Secret, where it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_key: Option<String>,
    /// E-mail address of the global API key, where the object named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Id of the account that was written to, as far as it was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
}

impl UsedCredentials {
    /// A `CloudflareCredentials` was used.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    /// A Secret that the object itself names was used.
    pub fn inline(inline: &InlineSecret) -> Self {
        let unusual = |key: &str, usual: &str| (key != usual).then(|| key.to_owned());
        Self {
            secret: Some(inline.name.clone()),
            api_token_key: unusual(&inline.token_key, TOKEN_KEY),
            api_key_key: unusual(&inline.api_key_key, API_KEY_KEY),
            email: inline.email.clone(),
            ..Self::default()
        }
    }

    /// Where the credential comes from; `None` where nothing was recorded.
    pub fn from(&self) -> Option<CredentialsFrom> {
        let key = |said: &Option<String>, usual: &str| said.clone().unwrap_or_else(|| usual.to_owned());
        match (&self.name, &self.secret) {
            (Some(name), _) => Some(CredentialsFrom::Named(name.clone())),
            (None, Some(secret)) => Some(CredentialsFrom::Inline(InlineSecret {
                name: secret.clone(),
                token_key: key(&self.api_token_key, TOKEN_KEY),
                api_key_key: key(&self.api_key_key, API_KEY_KEY),
                email: self.email.clone(),
            })),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_can_be_used_again() {
        let inline = InlineSecret {
            name: "cf".to_owned(),
            token_key: "TOKEN".to_owned(),
            api_key_key: API_KEY_KEY.to_owned(),
            email: Some("a@example.com".to_owned()),
        };

        assert_eq!(UsedCredentials::named("prod").from(), Some(CredentialsFrom::Named("prod".to_owned())));
        assert_eq!(UsedCredentials::inline(&inline).from(), Some(CredentialsFrom::Inline(inline)));
        assert_eq!(UsedCredentials::default().from(), None);
    }
}
