//! How zones are to be signed → the policy that `named` is given, or why it would not start with it.

use crate::defaults;
use crate::finding::Finding;
use crate::kinds::dnssec::{DNSSECConfig, DNSSECSigningConfig};
use crate::kinds::patterns::POLICY_PATTERN;
use crate::validate::lifetime::{Lifetime, lifetime_seconds};

/// Algorithms that may sign, as `named` knows them; those with SHA-1 must not be used for signing (RFC 8624 §3.1).
const ALGORITHMS: [&str; 6] = ["RSASHA256", "RSASHA512", "ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519", "ED448"];
/// Policies that `named` has by itself: it does not start where one is defined anew (checked with 9.18.49).
const BUILT_IN: [&str; 3] = ["default", "insecure", "none"];
/// What stands in for `default` where its parameters are not the built-in ones.
const OWN_DEFAULT: &str = "bindy-default";
/// More than this many times hashing again is refused (`dns_nsec3_maxiterations`).
const MOST_ITERATIONS: u32 = 50;
/// Shorter lives do not leave the time that a renewal takes.
const SHORTEST_LIFE: u64 = 30 * 24 * 60 * 60;

/// The policy that zones are signed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningPolicy {
    /// Its name in the configuration.
    pub name: String,
    /// Its parameters; none for a policy that `named` has by itself.
    pub block: Option<PolicyBlock>,
}

/// The parameters of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyBlock {
    /// What keys sign with.
    pub algorithm: String,
    /// How long the key-signing key lives.
    pub ksk_lifetime: String,
    /// How long the zone-signing key lives.
    pub zsk_lifetime: String,
    /// How absence is denied by NSEC3: how often hashed again, and bytes of salt; by NSEC where absent.
    pub nsec3: Option<(u32, usize)>,
}

impl SigningPolicy {
    /// The name under which this policy stands in configurations, for a name that a user says.
    pub fn resolved<'a>(&'a self, asked: &'a str) -> &'a str {
        if asked.eq_ignore_ascii_case("default") && self.name == OWN_DEFAULT { OWN_DEFAULT } else { asked }
    }
}

/// The policy of a server, where it signs. What cannot be is found, and then there is none.
pub fn policy(config: &DNSSECConfig, field: &str, found: &mut Vec<Finding>) -> Option<SigningPolicy> {
    let signing = config.signing.as_ref()?;
    let field = format!("{field}.signing");
    let before = found.len();
    without_effect(signing, &field, found);
    if signing.enabled != Some(true) {
        return None;
    }
    let name = signing.policy.as_deref().unwrap_or(defaults::POLICY);
    check_name(name, &field, found);
    let block = block(signing, &field, found);
    if found[before..].iter().any(|one| one.weight == crate::Weight::Refused) {
        return None;
    }
    Some(named(name, block, is_customised(signing)))
}

fn named(name: &str, block: PolicyBlock, customised: bool) -> SigningPolicy {
    match (name.eq_ignore_ascii_case("default"), customised) {
        (true, false) => SigningPolicy { name: "default".to_owned(), block: None },
        (true, true) => SigningPolicy { name: OWN_DEFAULT.to_owned(), block: Some(block) },
        (false, _) => SigningPolicy { name: name.to_owned(), block: Some(block) },
    }
}

/// Whether anything is said that the built-in policy does not say: one key of `ECDSAP256SHA256` that lives for good, and NSEC.
fn is_customised(signing: &DNSSECSigningConfig) -> bool {
    let DNSSECSigningConfig { algorithm, ksk_lifetime, zsk_lifetime, nsec3, .. } = signing;
    algorithm.is_some() || ksk_lifetime.is_some() || zsk_lifetime.is_some() || *nsec3 == Some(true)
}

fn check_name(name: &str, field: &str, found: &mut Vec<Finding>) {
    let reserved = BUILT_IN.iter().any(|one| one.eq_ignore_ascii_case(name)) && !name.eq_ignore_ascii_case("default");
    if reserved {
        found.push(Finding::refused(
            format!("{field}.policy"),
            format!(
                "{name:?} means that zones are not signed; set enabled to false for that, or name the policy otherwise"
            ),
        ));
    } else if !is_identifier(name) {
        found.push(Finding::refused(
            format!("{field}.policy"),
            format!("{name:?} is no name of a policy; it has to match {POLICY_PATTERN}"),
        ));
    }
}

/// Whether a text can name a policy.
pub(crate) fn is_identifier(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn block(signing: &DNSSECSigningConfig, field: &str, found: &mut Vec<Finding>) -> PolicyBlock {
    let algorithm = signing.algorithm.as_deref().unwrap_or(defaults::SIGNING_ALGORITHM).to_ascii_uppercase();
    if !ALGORITHMS.contains(&algorithm.as_str()) {
        let known = portolan_core::text::join_or(ALGORITHMS);
        let shown = portolan_core::text::shorten(&algorithm, 40).into_owned();
        found.push(Finding::refused(format!("{field}.algorithm"), format!("{shown:?} does not sign; write {known}")));
    }
    let mut life = |text: &Option<String>, name: &str| {
        let text = text.as_deref().unwrap_or(defaults::KEY_LIFETIME);
        check_life(text, &format!("{field}.{name}"), found);
        text.to_owned()
    };
    let (ksk_lifetime, zsk_lifetime) =
        (life(&signing.ksk_lifetime, "kskLifetime"), life(&signing.zsk_lifetime, "zskLifetime"));
    let nsec3 = (signing.nsec3 == Some(true)).then(|| nsec3(signing, field, found));
    PolicyBlock { algorithm, ksk_lifetime, zsk_lifetime, nsec3 }
}

fn check_life(text: &str, field: &str, found: &mut Vec<Finding>) {
    match lifetime_seconds(text) {
        Some(Lifetime::Unlimited) => {}
        Some(Lifetime::Seconds(seconds)) if seconds >= SHORTEST_LIFE => {}
        Some(Lifetime::Seconds(_)) => found.push(Finding::refused(
            field,
            format!("{text:?} leaves no time to renew the key; write 30d or more, or unlimited"),
        )),
        None => found.push(Finding::refused(
            field,
            format!(
                "{text:?} is no lifetime; write days or weeks as 365d or 52w, an ISO 8601 duration as P1Y, or unlimited"
            ),
        )),
    }
}

fn nsec3(signing: &DNSSECSigningConfig, field: &str, found: &mut Vec<Finding>) -> (u32, usize) {
    let iterations = signing.nsec3_iterations.unwrap_or_default();
    if iterations > MOST_ITERATIONS {
        found.push(Finding::refused(
            format!("{field}.nsec3Iterations"),
            format!("{iterations} is more than the {MOST_ITERATIONS} that resolvers put up with; write 0 (RFC 9276)"),
        ));
    }
    let salt = match signing.nsec3_salt.as_deref() {
        None => Some(defaults::NSEC3_SALT_BYTES),
        Some("" | "-") => Some(0),
        Some(salt) => salt_bytes(salt),
    };
    if salt.is_none() {
        found.push(Finding::refused(
            format!("{field}.nsec3Salt"),
            "is no salt; write pairs of hexadecimal digits, at most 255 of them, or - for none",
        ));
    }
    (iterations, salt.unwrap_or_default())
}

fn salt_bytes(salt: &str) -> Option<usize> {
    let fits = salt.len() <= 510 && salt.len().is_multiple_of(2) && salt.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then_some(salt.len() / 2)
}

/// Fields of which a server makes nothing, or not what they say.
fn without_effect(signing: &DNSSECSigningConfig, field: &str, found: &mut Vec<Finding>) {
    if signing.nsec3_salt.as_deref().is_some_and(|salt| !matches!(salt, "" | "-")) && signing.nsec3 == Some(true) {
        found.push(Finding::ignored(
            format!("{field}.nsec3Salt"),
            "only its length counts: servers make salts by themselves",
        ));
    }
    if signing.auto_generate == Some(false) {
        found.push(Finding::ignored(
            format!("{field}.autoGenerate"),
            "keys are made where there are none; take the field away",
        ));
    }
    if let Some(source) = &signing.keys_from {
        if source.secret_ref.is_some() {
            found.push(Finding::ignored(
                format!("{field}.keysFrom.secretRef"),
                "keys are not read from Secrets; keep them on a disk with spec.storage of the instance",
            ));
        }
        if source.persistent_volume.is_some() {
            found.push(Finding::ignored(
                format!("{field}.keysFrom.persistentVolume"),
                "keys lie beside the zones; keep both on a disk with spec.storage of the instance",
            ));
        }
    }
    if signing.export_to_secret == Some(true) {
        found.push(Finding::ignored(
            format!("{field}.exportToSecret"),
            "keys are not copied into Secrets; keep them on a disk with spec.storage of the instance",
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(signing: Value) -> Result<SigningPolicy, String> {
        let config: DNSSECConfig = serde_json::from_value(json!({ "signing": signing })).unwrap();
        let mut found = Vec::new();
        let policy = policy(&config, "spec.global.dnssec", &mut found);
        policy.ok_or_else(|| crate::finding::sentence(&found, crate::Weight::Refused).unwrap_or_default())
    }

    #[test]
    fn the_usual_policy_is_the_one_that_named_has() {
        let usual = asked(json!({"enabled": true})).unwrap();
        let said = asked(json!({"enabled": true, "policy": "default"})).unwrap();

        assert_eq!((usual.name.as_str(), &usual.block), ("default", &None));
        assert_eq!(usual, said);
        assert_eq!(asked(json!({"policy": "default"})), Err(String::new()), "nobody turned it on");
    }

    #[test]
    fn the_trap_of_the_usual_policy_with_other_parameters_gets_a_name_of_its_own() {
        let policy =
            asked(json!({"enabled": true, "policy": "default", "kskLifetime": "365d", "nsec3": true})).unwrap();

        assert_eq!(policy.name, "bindy-default");
        assert_eq!((policy.resolved("default"), policy.resolved("other")), ("bindy-default", "other"));
        let block = policy.block.unwrap();
        assert_eq!(
            (block.ksk_lifetime.as_str(), block.zsk_lifetime.as_str(), block.nsec3),
            ("365d", "unlimited", Some((0, 16)))
        );
    }

    #[test]
    fn scenario_63_what_named_does_not_start_with_is_refused_with_what_to_write() {
        for (signing, sentence) in [
            (json!({"kskLifetime": "1y"}), "365d"),
            (json!({"zskLifetime": "29d"}), "30d or more"),
            (json!({"policy": "none"}), "enabled to false"),
            (json!({"policy": "insecure"}), "enabled to false"),
            (json!({"policy": "a b"}), "is no name of a policy"),
            (json!({"policy": "x\"; }; zone \"y"}), "is no name of a policy"),
            (json!({"algorithm": "RSASHA1"}), "does not sign"),
            (json!({"nsec3": true, "nsec3Iterations": 51}), "write 0"),
            (json!({"nsec3": true, "nsec3Salt": "abc"}), "hexadecimal"),
        ] {
            let mut signing = signing;
            signing["enabled"] = json!(true);
            let said = asked(signing.clone()).unwrap_err();
            assert!(said.contains(sentence), "{signing} said {said:?}");
        }
    }

    #[test]
    fn fields_without_effect_are_named_and_stand_in_nobodys_way() {
        let config: DNSSECConfig =
            serde_json::from_value(json!({"signing": {"enabled": true, "exportToSecret": true}})).unwrap();
        let mut found = Vec::new();

        assert!(policy(&config, "spec.config.dnssec", &mut found).is_some());
        assert!(crate::finding::sentence(&found, crate::Weight::Ignored).unwrap().contains("exportToSecret"));
    }
}
