//! The key that signs the tokens of service accounts: claims → a token, a token → its claims.

use std::path::Path;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::credentials::{self, CredentialsError};

/// What comes before the point in a P-256 public key.
const SPKI_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Signs and verifies. `Debug` is not implemented: it is a secret.
pub(crate) struct TokenKey {
    /// Made when it is first needed, unless it was kept in a file.
    pair: OnceLock<SigningKey>,
}

struct SigningKey {
    key: EcdsaKeyPair,
    /// Tells clients which key signed a token.
    id: String,
}

/// Why a text is no token of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// It has another form or another issuer.
    Unknown,
    /// It names another key.
    NoKey,
    /// The signature is not ours.
    Forged,
}

impl TokenKey {
    /// One that is forgotten with the server.
    pub(crate) fn in_memory() -> Self {
        Self { pair: OnceLock::new() }
    }

    /// The one in a folder, made where there is none.
    pub(crate) fn load_or_generate(folder: &Path) -> Result<Self, CredentialsError> {
        let path = folder.join("service-accounts.key");
        let pair = if path.exists() {
            let pem = std::fs::read(&path).map_err(|source| CredentialsError::File {
                step: "reading",
                path: path.clone(),
                source,
            })?;
            let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|e| CredentialsError::Unusable(e.to_string()))?;
            SigningKey::read(key.secret_der())?
        } else {
            let made = rcgen::KeyPair::generate()?;
            credentials::private_directory(folder)?;
            credentials::write_private(&path, &made.serialize_pem())?;
            SigningKey::read(&made.serialize_der())?
        };
        Ok(Self { pair: OnceLock::from(pair) })
    }

    fn pair(&self) -> &SigningKey {
        self.pair.get_or_init(|| {
            let made = rcgen::KeyPair::generate().expect("the system has random numbers");
            SigningKey::read(&made.serialize_der()).expect("a key that was just made can be read")
        })
    }

    /// A signed token.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let pair = self.pair();
        let header = json!({"alg": "ES256", "kid": pair.id});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(claims));
        let signature = pair.key.sign(&SystemRandom::new(), text.as_bytes()).expect("the system has random numbers");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The claims of a token of this issuer, if this key signed it.
    pub(super) fn verify(&self, token: &str, issuer: &str) -> Result<Value, Foreign> {
        let parts: Vec<&str> = token.split('.').collect();
        let [header, claims, signature] = parts.as_slice() else { return Err(Foreign::Unknown) };
        let read = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let json = |part: &str| read(part).and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let claims = json(claims).filter(|claims| claims["iss"] == issuer).ok_or(Foreign::Unknown)?;
        let header = json(header).ok_or(Foreign::Unknown)?;
        let signature = read(signature).ok_or(Foreign::Unknown)?;
        let pair = self.pair();
        if header["kid"].as_str().is_some_and(|id| id != pair.id) {
            return Err(Foreign::NoKey);
        }
        // The algorithm is the key's, whatever the token says.
        let algorithm: &'static dyn VerificationAlgorithm = &ECDSA_P256_SHA256_FIXED;
        let key = UnparsedPublicKey::new(algorithm, pair.key.public_key().as_ref());
        let signed = &token[..token.rfind('.').unwrap_or_default()];
        key.verify(signed.as_bytes(), &signature).map_err(|_| Foreign::Forged)?;
        Ok(claims)
    }
}

impl SigningKey {
    fn read(der: &[u8]) -> Result<Self, CredentialsError> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new())
            .map_err(|error| CredentialsError::Unusable(error.to_string()))?;
        let spki: Vec<u8> = SPKI_PREFIX.iter().chain(key.public_key().as_ref()).copied().collect();
        let id = URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, &spki));
        Ok(Self { key, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_token_gives_its_claims_back() {
        let key = TokenKey::in_memory();
        let claims = json!({"iss": "us", "sub": "someone"});

        let token = key.sign(&claims);

        assert_eq!(key.verify(&token, "us"), Ok(claims));
        assert_eq!(key.verify(&token, "them"), Err(Foreign::Unknown));
        assert_eq!(TokenKey::in_memory().verify(&token, "us"), Err(Foreign::NoKey));
    }

    #[test]
    fn changed_claims_are_found_out() {
        let key = TokenKey::in_memory();
        let token = key.sign(&json!({"iss": "us", "sub": "someone"}));
        let other = URL_SAFE_NO_PAD.encode(json!({"iss": "us", "sub": "root"}).to_string());
        let parts: Vec<&str> = token.split('.').collect();

        let forged = format!("{}.{other}.{}", parts[0], parts[2]);

        assert_eq!(key.verify(&forged, "us"), Err(Foreign::Forged));
        assert_eq!(key.verify("a.b", "us"), Err(Foreign::Unknown));
    }

    #[test]
    fn a_kept_key_signs_for_the_next_life_and_only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let claims = json!({"iss": "us"});

        let token = TokenKey::load_or_generate(folder.path()).unwrap().sign(&claims);
        let again = TokenKey::load_or_generate(folder.path()).unwrap();

        assert_eq!(again.verify(&token, "us"), Ok(claims));
        let file = std::fs::metadata(folder.path().join("service-accounts.key")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
}
