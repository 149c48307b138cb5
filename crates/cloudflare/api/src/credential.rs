//! Who asks: an API token, or the older global key with its owner's address.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::call::error::{ApiError, Effect, ErrorClass};

/// A credential. Surrounding white space, as Secrets often have it, does not count.
#[derive(Clone)]
pub enum Credential {
    /// An API token.
    Token(SecretString),
    /// The global API key of a user.
    GlobalKey {
        /// The key.
        key: SecretString,
        /// The user's address.
        email: String,
    },
}

/// A credential's fingerprint: equal for equal credentials, and says nothing about them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(String);

impl Identity {
    /// 16 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Credential {
    /// A token.
    pub fn token(token: &str) -> Self {
        Self::Token(SecretString::from(token.trim()))
    }

    /// A global key.
    pub fn global_key(key: &str, email: &str) -> Self {
        Self::GlobalKey { key: SecretString::from(key.trim()), email: email.trim().to_owned() }
    }

    /// The credential's fingerprint.
    pub fn identity(&self) -> Identity {
        let text = match self {
            Self::Token(token) => format!("token\n{}", token.expose_secret().trim()),
            Self::GlobalKey { key, email } => format!("key\n{}\n{}", email.trim(), key.expose_secret().trim()),
        };
        let digest = Sha256::digest(text.as_bytes());
        let first: [u8; 8] = digest[..8].try_into().expect("a digest has 32 bytes");
        Identity(format!("{:016x}", u64::from_be_bytes(first)))
    }

    /// The part that must never be shown.
    pub(crate) fn secret(&self) -> &str {
        match self {
            Self::Token(secret) | Self::GlobalKey { key: secret, .. } => secret.expose_secret().trim(),
        }
    }

    /// Adds the headers that prove it.
    pub(crate) fn sign(&self, headers: &mut HeaderMap) -> Result<(), ApiError> {
        match self {
            Self::Token(_) => {
                headers.insert(http::header::AUTHORIZATION, header(&format!("Bearer {}", self.secret()))?);
            }
            Self::GlobalKey { email, .. } => {
                headers.insert("x-auth-key", header(self.secret())?);
                headers.insert("x-auth-email", header(email.trim())?);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Token(_) => "Token",
            Self::GlobalKey { .. } => "GlobalKey",
        };
        write!(f, "{kind}({})", self.identity())
    }
}

fn header(text: &str) -> Result<HeaderValue, ApiError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| ApiError {
        class: ErrorClass::Auth,
        ..ApiError::transient("the credential has characters that no header can carry; check the Secret", Effect::None)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_never_shows_its_secret() {
        let shown =
            format!("{:?} {:?}", Credential::token("canary"), Credential::global_key("canary", "a@example.com"));

        assert!(!shown.contains("canary"));
    }

    #[test]
    fn equal_credentials_have_one_identity_and_others_another() {
        assert_eq!(Credential::token("a\n").identity(), Credential::token("a").identity());
        assert_ne!(Credential::token("a").identity(), Credential::token("b").identity());
        assert_ne!(Credential::token("a").identity(), Credential::global_key("a", "").identity());
    }

    #[test]
    fn tokens_and_keys_sign_with_their_own_headers() {
        let mut headers = HeaderMap::new();
        Credential::token("t1").sign(&mut headers).unwrap();
        Credential::global_key("k1", "a@example.com").sign(&mut headers).unwrap();

        assert_eq!(headers["authorization"], "Bearer t1");
        assert_eq!(
            (headers["x-auth-key"].as_bytes(), headers["x-auth-email"].as_bytes()),
            (&b"k1"[..], &b"a@example.com"[..])
        );
    }

    #[test]
    fn a_token_with_a_line_break_inside_is_refused_before_sending() {
        let error = Credential::token("a\nb").sign(&mut HeaderMap::new()).unwrap_err();

        assert_eq!(error.class, ErrorClass::Auth);
    }
}
