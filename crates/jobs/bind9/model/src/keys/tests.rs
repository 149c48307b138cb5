use super::*;
use crate::kinds::keys::RndcSecretRef;
use crate::testing::key as server_key;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + hours * 3600).unwrap()
}

fn fresh(mark: &str) -> FreshSecrets {
    let secret = |purpose: &str| format!("{mark}{purpose}").replace('-', "A").chars().cycle().take(44).collect();
    FreshSecrets { control: secret("c"), update: secret("u"), transfer: secret("t") }
}

fn policy(hours: Option<i64>) -> KeyPolicy {
    KeyPolicy { algorithm: RndcAlgorithm::HmacSha256, rotate_after_hours: hours, given: None }
}

fn ring() -> KeyRing {
    KeyRing::created(&server_key("a"), &policy(None), fresh("one"), at(0))
}

fn step(ring: &KeyRing, policy: &KeyPolicy, now: Timestamp, known: KeysKnown) -> KeyStep {
    KeyRing::step(Some(ring), policy, now, known)
}

#[test]
fn a_server_has_a_key_for_each_purpose_and_the_control_key_is_the_known_one() {
    let set = ring().current;

    assert_eq!(
        [set.control.name.as_str(), &set.update.name, &set.transfer.name],
        ["bindy-operator", "bindy-update", "transfer.a.dns"]
    );
    assert_eq!(set.all().len(), 3);
}

#[test]
fn keys_that_nobody_asks_to_renew_are_kept_for_good() {
    assert_eq!(step(&ring(), &policy(None), at(1_000_000), KeysKnown::Everywhere), KeyStep::Keep(None));
    assert_eq!(KeyRing::step(None, &policy(None), at(0), KeysKnown::NotYet), KeyStep::Create);
}

#[test]
fn scenario_59_keys_are_renewed_when_due_and_never_twice_within_an_hour() {
    let policy = policy(Some(1));
    assert_eq!(step(&ring(), &policy, at(0), KeysKnown::Everywhere), KeyStep::Keep(Some(at(1))));
    assert_eq!(step(&ring(), &policy, at(1), KeysKnown::Everywhere), KeyStep::Rotate);

    let rotated = ring().rotated(&server_key("a"), &policy, fresh("two"), at(1));

    assert_eq!((rotated.rotations, rotated.current.control.name.as_str()), (1, "bindy-operator-1"));
    assert_eq!(rotated.rotate_at(&policy), Some(at(2)));
    assert_eq!(rotated.valid().len(), 6, "both are valid");
}

#[test]
fn the_keys_before_stay_until_every_server_knows_the_new_ones_and_some_time_has_passed() {
    let policy = policy(Some(720));
    let rotated = ring().rotated(&server_key("a"), &policy, fresh("two"), at(720));

    assert!(matches!(step(&rotated, &policy, at(720), KeysKnown::Everywhere), KeyStep::Keep(Some(_))));
    assert!(
        matches!(step(&rotated, &policy, at(721), KeysKnown::NotYet), KeyStep::Keep(Some(again)) if again > at(721))
    );
    assert_eq!(step(&rotated, &policy, at(721), KeysKnown::Everywhere), KeyStep::Retire);

    let retired = rotated.retired();
    assert_eq!(retired.valid().len(), 3);
    assert_eq!(step(&retired, &policy, at(721), KeysKnown::Everywhere), KeyStep::Keep(Some(at(1440))));
}

#[test]
fn another_algorithm_is_a_reason_to_renew() {
    let stronger = KeyPolicy { algorithm: RndcAlgorithm::HmacSha512, ..policy(None) };

    assert_eq!(step(&ring(), &stronger, at(0), KeysKnown::Everywhere), KeyStep::Rotate);
    let rotated = ring().rotated(&server_key("a"), &stronger, fresh("two"), at(0)).retired();
    assert_eq!(step(&rotated, &stronger, at(0), KeysKnown::Everywhere), KeyStep::Keep(None));
}

#[test]
fn scenario_60_a_users_key_serves_control_and_updates_and_is_never_renewed_by_itself() {
    let given = TsigKey { name: "theirs".to_owned(), algorithm: RndcAlgorithm::HmacSha512, secret: "QUJD".to_owned() };
    let policy = KeyPolicy { given: Some(given.clone()), ..policy(Some(1)) };

    let ring = KeyRing::created(&server_key("a"), &policy, fresh("one"), at(0));

    assert_eq!((&ring.current.control, &ring.current.update), (&given, &given));
    assert_ne!(ring.current.transfer.secret, given.secret, "transfers have a key of their own");
    assert_eq!(ring.current.all().len(), 2);
    assert_eq!(step(&ring, &policy, at(9000), KeysKnown::Everywhere), KeyStep::Keep(None));

    let other = TsigKey { secret: "REVG".to_owned(), ..given };
    let policy = KeyPolicy { given: Some(other.clone()), ..policy };
    assert_eq!(step(&ring, &policy, at(1), KeysKnown::Everywhere), KeyStep::Rotate);
    let rotated = ring.rotated(&server_key("a"), &policy, fresh("two"), at(1));
    assert_eq!(rotated.valid_for(|set| &set.control), [&other], "one name has one secret");
}

#[test]
fn keys_are_stored_and_read_as_they_were() {
    let policy = policy(Some(24));
    for ring in [ring(), ring().rotated(&server_key("a"), &policy, fresh("two"), at(24))] {
        let stored = written(&ring, &policy);

        assert_eq!(read(&stored, &server_key("a"), &policy, &fresh("other")), Some(ring));
    }
}

#[test]
fn a_secret_of_the_older_operator_keeps_its_key_and_transfers_get_one() {
    let entries = [("key-name", "bindy-operator"), ("algorithm", "hmac-sha256"), ("secret", "QUJD")];
    let data = entries.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let stored = StoredKeys {
        data,
        annotations: [(names::KEYS_CREATED_AT.to_owned(), "2026-01-01T00:00:00Z".to_owned())].into(),
    };

    let ring = read(&stored, &server_key("a"), &policy(None), &fresh("new")).unwrap();

    assert_eq!((ring.current.control.secret.as_str(), ring.current.update.secret.as_str()), ("QUJD", "QUJD"));
    assert_eq!(ring.current.transfer.secret, fresh("new").transfer);
    assert_eq!(ring.created_at.to_string(), "2026-01-01T00:00:00Z");
}

#[test]
fn a_secret_without_a_usable_key_is_none() {
    let mut stored = written(&ring(), &policy(None));
    stored.data.insert("algorithm".to_owned(), "hmac-md5".to_owned());

    assert_eq!(read(&stored, &server_key("a"), &policy(None), &fresh("new")), None);
    assert_eq!(read(&StoredKeys::default(), &server_key("a"), &policy(None), &fresh("new")), None);
}

fn user_key(entries: &[(&str, &str)]) -> Result<TsigKey, String> {
    let data = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read_user_key(&data, &RndcSecretRef { name: "theirs".to_owned(), ..RndcSecretRef::default() })
}

#[test]
fn a_users_key_is_read_from_entries_or_from_a_file_and_else_it_is_said_what_is_missing() {
    let file = "key \"theirs\" {\n\talgorithm hmac-sha384;\n\tsecret \"QUJD\";\n};\n";
    assert_eq!(user_key(&[("rndc.key", file)]).unwrap().algorithm, RndcAlgorithm::HmacSha384);
    assert_eq!(user_key(&[("key-name", "k"), ("secret", "QUJD\n")]).unwrap().secret, "QUJD");

    for (entries, sentence) in [
        (&[("secret", "QUJD")][..], "holds no key"),
        (&[("key-name", "k"), ("secret", "not base64!")], "in base64"),
        (&[("key-name", "k"), ("secret", "QUJD"), ("algorithm", "hmac-md5")], "too weak"),
        (&[("key-name", "k"), ("secret", "QUJD"), ("algorithm", "hmac-sha1")], "too weak"),
        (&[("key-name", "k\"; };"), ("secret", "QUJD")], "no key can be named"),
    ] {
        let said = user_key(entries).unwrap_err();
        assert!(said.contains(sentence) && !said.contains("QUJD"), "{said}");
    }
}

#[test]
fn nothing_that_shows_keys_shows_secrets() {
    let shown = format!("{:?} {}", ring(), ring().generation());

    assert!(!shown.contains(&fresh("one").control) && shown.contains("bindy-operator"), "{shown}");
}
