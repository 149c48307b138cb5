//! Keys ↔ the entries of a Secret. Those that the older operator wrote are read; it had one key for everything.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use portolan_core::{ObjectKey, rfc3339};

use crate::keys::{FreshSecrets, KeyPolicy, KeyRing, KeySet, TsigKey};
use crate::kinds::keys::{KEY_NAME_ENTRY, RndcAlgorithm, RndcSecretRef, SECRET_ENTRY};
use crate::names;

/// The entries of a Secret that are text.
pub type SecretData = BTreeMap<String, String>;

const ALGORITHM_ENTRY: &str = "algorithm";
const FILE_ENTRY: &str = "rndc.key";

/// A Secret as it is stored: its entries and annotations.
#[derive(Clone, Debug, Default)]
pub struct StoredKeys {
    /// Its entries.
    pub data: SecretData,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The keys that a Secret holds. One of the older operator's has one key, which stays for control and updates; transfers get a key of
/// their own. None where it holds none that can be used: then they are made anew.
pub fn read(stored: &StoredKeys, server: &ObjectKey, policy: &KeyPolicy, fresh: &FreshSecrets) -> Option<KeyRing> {
    let control = key(&stored.data, "")?;
    let update = key(&stored.data, "update-").unwrap_or_else(|| control.clone());
    let transfer = key(&stored.data, "transfer-").unwrap_or_else(|| TsigKey {
        name: names::transfer_key(server),
        algorithm: policy.algorithm,
        secret: fresh.transfer.clone(),
    });
    let previous = key(&stored.data, "previous-").and_then(|control| {
        let update = key(&stored.data, "previous-update-")?;
        Some(KeySet { control, update, transfer: key(&stored.data, "previous-transfer-")? })
    });
    let time = |name: &str| stored.annotations.get(name)?.parse::<Timestamp>().ok();
    let rotations = stored.annotations.get(names::KEYS_ROTATION_COUNT).and_then(|text| text.parse().ok());
    Some(KeyRing {
        current: KeySet { control, update, transfer },
        previous,
        created_at: time(names::KEYS_CREATED_AT).unwrap_or(Timestamp::UNIX_EPOCH),
        rotated_at: time(names::KEYS_ROTATED_AT),
        rotations: rotations.unwrap_or_default(),
    })
}

/// Keys as entries and annotations. `key-name`, `algorithm`, `secret` and `rndc.key` are where the older operator had them.
pub fn written(ring: &KeyRing, policy: &KeyPolicy) -> StoredKeys {
    let mut data = SecretData::new();
    let mut put = |prefix: &str, set: &KeySet| {
        for (purpose, key) in [("", &set.control), ("update-", &set.update), ("transfer-", &set.transfer)] {
            data.insert(format!("{prefix}{purpose}{KEY_NAME_ENTRY}"), key.name.clone());
            data.insert(format!("{prefix}{purpose}{ALGORITHM_ENTRY}"), key.algorithm.as_str().to_owned());
            data.insert(format!("{prefix}{purpose}{SECRET_ENTRY}"), key.secret.clone());
        }
    };
    put("", &ring.current);
    if let Some(previous) = &ring.previous {
        put("previous-", previous);
    }
    let times = [
        (names::KEYS_CREATED_AT, Some(rfc3339(ring.created_at))),
        (names::KEYS_ROTATE_AT, ring.rotate_at(policy).map(rfc3339)),
        (names::KEYS_ROTATED_AT, ring.rotated_at.map(rfc3339)),
        (names::KEYS_ROTATION_COUNT, Some(ring.rotations.to_string())),
    ];
    let annotations = times.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect();
    StoredKeys { data, annotations }
}

fn key(data: &SecretData, prefix: &str) -> Option<TsigKey> {
    let entry = |name: &str| data.get(&format!("{prefix}{name}")).map(|text| text.trim().to_owned());
    let name = entry(KEY_NAME_ENTRY).filter(|name| !name.is_empty())?;
    let algorithm = match entry(ALGORITHM_ENTRY) {
        Some(text) => RndcAlgorithm::parse(&text).filter(|algorithm| algorithm.is_strong())?,
        None => RndcAlgorithm::default(),
    };
    let secret = entry(SECRET_ENTRY).filter(|secret| !secret.is_empty())?;
    Some(TsigKey { name, algorithm, secret })
}

/// The user's key in a Secret that a manifest names; a Secret with an `rndc.key` alone is read too. Else a sentence that says what to do.
pub fn read_user_key(data: &SecretData, reference: &RndcSecretRef) -> Result<TsigKey, String> {
    let from_file = || data.get(FILE_ENTRY).and_then(|text| in_file(text));
    let entry = |name: &str| data.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let (name, secret) = (entry(reference.name_entry()), entry(reference.secret_entry()));
    let found = match (name, secret) {
        (Some(name), Some(secret)) => {
            let said = data.get(ALGORITHM_ENTRY).map(|text| RndcAlgorithm::parse(text));
            let algorithm = match (said, reference.algorithm) {
                (Some(None), _) => Err(weak(&reference.name)),
                (_, Some(asked)) => Ok(asked),
                (Some(Some(said)), None) => Ok(said),
                (None, None) => Ok(RndcAlgorithm::default()),
            };
            TsigKey { name, algorithm: algorithm?, secret }
        }
        _ => from_file().ok_or_else(|| missing(reference))?,
    };
    if !found.algorithm.is_strong() {
        return Err(weak(&reference.name));
    }
    if !crate::validate::is_key_name(&found.name) {
        return Err(format!(
            "Secret {} names its key in a way that no key can be named; use letters, digits, hyphens and dots",
            reference.name
        ));
    }
    if !is_base64(&found.secret) {
        return Err(format!("Secret {} has no secret in base64 in {:?}", reference.name, reference.secret_entry()));
    }
    Ok(found)
}

fn weak(secret: &str) -> String {
    format!("Secret {secret} has a key whose algorithm is too weak or unknown; make one with hmac-sha256 or longer")
}

fn missing(reference: &RndcSecretRef) -> String {
    format!(
        "Secret {} holds no key: it needs {:?} and {:?}, or {FILE_ENTRY:?}",
        reference.name,
        reference.name_entry(),
        reference.secret_entry()
    )
}

/// The first key of a file as `rndc-confgen` writes it.
fn in_file(text: &str) -> Option<TsigKey> {
    let clauses = crate::conf::parse(text).ok()?;
    let key = clauses.iter().find(|clause| clause.name() == "key")?;
    let of = |name: &str| key.inner()?.iter().find(|clause| clause.name() == name)?.text(1).map(str::to_owned);
    Some(TsigKey {
        name: key.text(1)?.to_owned(),
        algorithm: RndcAlgorithm::parse(&of("algorithm")?)?,
        secret: of("secret")?,
    })
}

/// Whether a text is a secret as `named` reads it: in base64 with nothing left over, down to the last bit (tried with 9.18.49).
pub(crate) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok_and(|octets| !octets.is_empty())
}
