//! A key that both sides know: its name, its algorithm, its secret. It signs messages of the DNS and commands alike.

use std::{fmt, str::FromStr};

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, Mac};
use portolan_core::InvalidName;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::message::DomainName;

/// How a key signs (RFC 8945 §6). MD5 is left out: nobody should make such keys, and named may be built without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of the algorithms")]
pub enum HmacAlgorithm {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl HmacAlgorithm {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// As configurations and messages have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "hmac-sha1",
            Self::Sha224 => "hmac-sha224",
            Self::Sha256 => "hmac-sha256",
            Self::Sha384 => "hmac-sha384",
            Self::Sha512 => "hmac-sha512",
        }
    }

    /// Bytes of a signature.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    pub(crate) fn name(self) -> DomainName {
        DomainName::parse(self.as_str()).expect("the names of algorithms are names")
    }
}

impl fmt::Display for HmacAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for HmacAlgorithm {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let lower = text.trim().trim_end_matches('.').to_ascii_lowercase();
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == lower).ok_or_else(|| {
            InvalidName::new(
                "key algorithm",
                text,
                "write hmac-sha256, or hmac-sha1, hmac-sha224, hmac-sha384 or hmac-sha512",
            )
        })
    }
}

/// A key. What it prints never shows its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HmacKey {
    name: DomainName,
    algorithm: HmacAlgorithm,
    secret: Box<[u8]>,
}

/// Padding may be there or not, as named and its tools read it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl HmacKey {
    /// A key as configurations have it: its name and its secret in base64.
    pub fn new(name: &str, algorithm: HmacAlgorithm, secret: &str) -> Result<Self, InvalidName> {
        let digits: String = secret.split_ascii_whitespace().collect();
        let secret = LENIENT.decode(digits).ok().filter(|secret| !secret.is_empty());
        // The text of a secret that is none is still a secret.
        let secret = secret
            .ok_or_else(|| InvalidName::new("secret of the key", name, "the secret must be base64, and not empty"))?;
        Ok(Self { name: DomainName::parse(name)?, algorithm, secret: secret.into() })
    }

    /// The key's name, by which the other side finds it.
    pub fn name(&self) -> &DomainName {
        &self.name
    }

    /// How it signs.
    pub fn algorithm(&self) -> HmacAlgorithm {
        self.algorithm
    }

    /// The signature over all parts, one behind the other.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> Box<[u8]> {
        macro_rules! by {
            ($hash:ty) => {
                Box::from(&*self.digest::<Hmac<$hash>>(parts).finalize().into_bytes())
            };
        }
        match self.algorithm {
            HmacAlgorithm::Sha1 => by!(Sha1),
            HmacAlgorithm::Sha224 => by!(Sha224),
            HmacAlgorithm::Sha256 => by!(Sha256),
            HmacAlgorithm::Sha384 => by!(Sha384),
            HmacAlgorithm::Sha512 => by!(Sha512),
        }
    }

    /// Whether a signature is that of all parts, or a beginning of it that is long enough (RFC 8945 §5.2.2.1). It takes as long
    /// whether it is or not.
    pub(crate) fn verifies(&self, parts: &[&[u8]], signature: &[u8]) -> bool {
        macro_rules! by {
            ($hash:ty) => {
                self.digest::<Hmac<$hash>>(parts).verify_truncated_left(signature).is_ok()
            };
        }
        if signature.len() < (self.algorithm.width() / 2).max(10) {
            return false;
        }
        match self.algorithm {
            HmacAlgorithm::Sha1 => by!(Sha1),
            HmacAlgorithm::Sha224 => by!(Sha224),
            HmacAlgorithm::Sha256 => by!(Sha256),
            HmacAlgorithm::Sha384 => by!(Sha384),
            HmacAlgorithm::Sha512 => by!(Sha512),
        }
    }

    fn digest<M: Mac + hmac::digest::KeyInit>(&self, parts: &[&[u8]]) -> M {
        let mut mac = <M as Mac>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HmacKey({} {})", self.name, self.algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_rfc_2202_and_rfc_4231() {
        // Test case 2 of both: key "Jefe".
        for (algorithm, signature) in [
            (HmacAlgorithm::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (HmacAlgorithm::Sha224, "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44"),
            (HmacAlgorithm::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ] {
            let key = HmacKey::new("test", algorithm, "SmVmZQ").unwrap();
            let signed = key.sign(&[b"what do ya want ", b"for nothing?"]);
            assert_eq!(crate::values::hex(&signed), signature, "{algorithm}");
        }
    }

    #[test]
    fn a_signature_holds_for_its_text_and_its_key_alone() {
        for algorithm in HmacAlgorithm::ALL {
            let key = HmacKey::new("k", algorithm, "c2VjcmV0").unwrap();
            let signed = key.sign(&[b"text"]);

            assert_eq!(signed.len(), algorithm.width());
            assert!(key.verifies(&[b"te", b"xt"], &signed));
            assert!(!key.verifies(&[b"Text"], &signed));
            assert!(!HmacKey::new("k", algorithm, "b3RoZXI=").unwrap().verifies(&[b"text"], &signed));
            assert!(!key.verifies(&[b"text"], &signed[..9]) && !key.verifies(&[b"text"], b""));
        }
    }

    #[test]
    fn a_key_shows_no_secret_and_a_wrong_one_is_refused_without_it() {
        let key = HmacKey::new("k.example", HmacAlgorithm::Sha256, "c2VjcmV0").unwrap();
        assert_eq!(format!("{key:?}"), "HmacKey(k.example. hmac-sha256)");

        for secret in ["", "not base64!"] {
            let said = HmacKey::new("k", HmacAlgorithm::Sha256, secret).unwrap_err().to_string();
            assert!(said.contains("must be base64") && !said.contains("not base64!"), "{said}");
        }
        assert!("hmac-md5".parse::<HmacAlgorithm>().is_err());
        assert_eq!("HMAC-SHA512.".parse(), Ok(HmacAlgorithm::Sha512));
    }
}
