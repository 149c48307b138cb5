use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::*;
use crate::finding::sentence;
use crate::keys::{FreshSecrets, KeyPolicy};
use crate::kinds::keys::RndcAlgorithm;
use crate::settings::settings;
use crate::testing::key;

fn policy() -> KeyPolicy {
    KeyPolicy { algorithm: RndcAlgorithm::HmacSha256, rotate_after_hours: None, given: None }
}

fn ring(server: &str) -> KeyRing {
    let secret = |letter: char| format!("{}A=", letter.to_string().repeat(42));
    let fresh = FreshSecrets { control: secret('c'), update: secret('u'), transfer: secret('t') };
    KeyRing::created(&key(server), &policy(), fresh, jiff::Timestamp::UNIX_EPOCH)
}

fn settled(cluster: Value, instance: Value) -> ServerSettings {
    let mut spec = json!({"clusterRef": "c", "role": "secondary"});
    spec.as_object_mut().unwrap().extend(instance.as_object().unwrap().clone());
    settings(&from_value(spec).unwrap(), Some(&from_value(cluster).unwrap()), None)
}

fn followed(writer: &str) -> Following {
    Following {
        writer: key(writer),
        addresses: vec!["10.96.0.7".to_owned()],
        port: 53,
        catalog: names::catalog(&key(writer), &key("b")),
        keys: vec![ring(writer).current.transfer],
    }
}

fn made(
    settings: &ServerSettings,
    following: &[Following],
    given: &[(&str, &str)],
) -> Result<ServerFiles, Vec<Finding>> {
    let given = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    files(&FileSet {
        server: key("b"),
        settings,
        ring: &ring("b"),
        further: &[],
        following,
        followers: &[],
        address: PodAddress::Any,
        given,
    })
}

fn usual() -> ServerFiles {
    made(&settled(json!({}), json!({})), &[followed("a")], &[]).unwrap()
}

/// All files of a server as one text, each include replaced by what it includes.
pub(crate) fn whole(files: &ServerFiles) -> String {
    let named = files.plain["named.conf"].replace("include \"/etc/bind/keys/rndc.key\";", &files.secret["rndc.key"]);
    let named = named.replace("include \"/etc/bind/keys/keys.conf\";", &files.secret["keys.conf"]);
    let options = files.plain.get("named.conf.options").map_or("", String::as_str);
    named.replace("include \"/etc/bind/config/named.conf.options\";", options)
}

#[test]
fn a_server_that_follows_another_has_its_catalog_and_its_key() {
    let files = usual();
    let (options, named, keys) =
        (&files.plain["named.conf.options"], &files.plain["named.conf"], &files.secret["keys.conf"]);
    let catalog = names::catalog(&key("a"), &key("b"));

    assert!(
        options
            .contains(&format!("zone \"{catalog}\" default-primaries {{ 10.96.0.7 port 53 key \"transfer.a.dns\"; }}")),
        "{options}"
    );
    assert!(named.contains(&format!("zone \"{catalog}\" {{\n    type secondary;")), "{named}");
    assert!(
        keys.contains("key \"transfer.a.dns\"") && keys.contains("acl \"bindy-peers\" { key \"transfer.a.dns\"; };"),
        "{keys}"
    );
    assert!(options.contains("allow-transfer { bindy-transfer; bindy-updaters; };"), "never by address: {options}");
    assert!(options.contains("allow-notify { bindy-peers; };"));
}

#[test]
fn no_secret_is_in_a_file_that_anybody_may_read() {
    let secret = "c".repeat(42);

    assert!(usual().plain.values().all(|text| !text.contains(&secret) && !text.contains(&"t".repeat(42))));
    assert!(usual().secret["rndc.key"].contains(&secret));
}

#[test]
fn the_files_of_a_server_pass_their_own_check_as_one() {
    let settings = settled(
        json!({"acls": {"office": ["10/8"], "partners": ["office", "!10.9.0.0/16", "!office", "!key partner"]},
               "global": {"allowQuery": ["partners"], "forwarders": ["9.9.9.9"], "recursion": true,
                          "dnssec": {"validation": true, "signing": {"enabled": true, "nsec3": true}}}}),
        json!({"primaryServers": ["10.0.0.9"]}),
    );
    let files = made(&settings, &[followed("a"), followed("c")], &[]).unwrap();

    assert_eq!(crate::conf::check_text(&whole(&files), "named.conf"), []);
    let options = &files.plain["named.conf.options"];
    assert!(options.contains("allow-query { bindy-servers; \"partners\"; };"), "{options}");
    assert!(options.contains("dnssec-policy \"bindy-default\""), "{options}");
}

#[test]
fn the_version_tells_files_apart_that_differ_in_anything_that_a_server_reads() {
    let settings = |more| settled(json!({ "global": more }), json!({}));
    let version = |settings: &ServerSettings, following: &[Following]| made(settings, following, &[]).unwrap().version;
    let usual = version(&settings(json!({})), &[]);

    assert_eq!(usual, version(&settings(json!({})), &[]));
    assert_ne!(usual, version(&settings(json!({"allowQuery": ["localhost"]})), &[]));
    assert_ne!(usual, version(&settings(json!({})), &[followed("a")]));
    let one = made(&settings(json!({"allowQuery": ["localhost"]})), &[], &[]).unwrap();
    assert!(one.plain["named.conf.options"].contains(&format!("version \"{}\";", one.version)));
}

#[test]
fn scenario_66_what_reconfig_takes_asks_for_no_new_pod() {
    let rollout = |cluster, given: &[(&str, &str)]| made(&settled(cluster, json!({})), &[], given).unwrap().rollout;

    assert_eq!(rollout(json!({}), &[]), rollout(json!({"global": {"allowQuery": ["localhost"]}}), &[]));
    assert_ne!(rollout(json!({}), &[]), rollout(json!({}), &[("named.conf.zones", "// a\n")]));
    assert_ne!(
        rollout(json!({}), &[("named.conf", "include \"/etc/bind/named.conf.options\";\n")]),
        rollout(
            json!({"global": {"recursion": true}}),
            &[("named.conf", "include \"/etc/bind/named.conf.options\";\n")]
        ),
        "the options that a user's file includes are mounted by themselves",
    );
}

#[test]
fn files_of_the_users_are_included_where_they_always_were_and_nothing_is_there_twice() {
    let own = "include \"/etc/bind/keys/rndc.key\";\ninclude \"/etc/bind/named.conf.options\";\n";
    let files =
        made(&settled(json!({}), json!({})), &[], &[("named.conf", own), ("named.conf.options", "options { };\n")])
            .unwrap();

    let named = &files.plain["named.conf"];
    assert!(named.contains("include \"/etc/bind/named.conf\";") && named.contains("keys.conf"), "{named}");
    assert!(!named.contains("rndc.key") && !named.contains("logging"), "{named}");
    assert!(!files.plain.contains_key("named.conf.options"));
    assert!(sentence(&files.notes, Weight::Ignored).unwrap().contains("allow-new-zones"), "{:?}", files.notes);
}

#[test]
fn scenario_64_what_no_server_starts_with_gives_findings_and_no_files() {
    for (cluster, given, said) in [
        (json!({"global": {"allowQuery": ["any; }; zone \"x\" {"]}}), &[][..], "allowQuery"),
        (json!({"global": {"dnssec": {"signing": {"enabled": true, "policy": "none"}}}}), &[], "signing.policy"),
        (json!({}), &[("named.conf.options", "options { recursion no")], "semicolon is missing"),
        (json!({}), &[("named.conf.zones", "zone \"x\" { type primary; };")], "has no file"),
    ] {
        let findings = made(&settled(cluster, json!({})), &[], given).unwrap_err();
        assert!(sentence(&findings, Weight::Refused).unwrap().contains(said), "{findings:?}");
    }
}

#[test]
fn after_a_renewal_both_keys_may_control_and_update() {
    let settings = settled(json!({}), json!({}));
    let fresh = FreshSecrets { control: "Qw==".to_owned(), update: "Ug==".to_owned(), transfer: "VA==".to_owned() };
    let rotated = ring("b").rotated(&key("b"), &policy(), fresh, jiff::Timestamp::UNIX_EPOCH);
    let set = FileSet {
        server: key("b"),
        settings: &settings,
        ring: &rotated,
        further: &[],
        following: &[],
        followers: &[],
        address: PodAddress::Any,
        given: BTreeMap::new(),
    };

    let files = files(&set).unwrap();

    let keys = &files.secret["keys.conf"];
    assert!(keys.contains("keys { \"bindy-operator-1\"; \"bindy-operator\"; }"), "{keys}");
    assert!(keys.contains("acl \"bindy-updaters\" { key \"bindy-update-1\"; key \"bindy-update\"; };"), "{keys}");
    assert_eq!(crate::conf::check_text(&whole(&files), "named.conf"), []);
}

#[test]
fn a_server_that_shares_a_network_listens_on_its_own_address_alone() {
    let settings = settled(json!({}), json!({}));
    let address = PodAddress::Own("127.77.0.2".to_owned());
    let set = FileSet {
        server: key("b"),
        settings: &settings,
        ring: &ring("b"),
        further: &[],
        following: &[],
        followers: &[],
        address,
        given: BTreeMap::new(),
    };

    let files = files(&set).unwrap();

    let options = &files.plain["named.conf.options"];
    assert!(
        options.contains("listen-on port 5353 { 127.77.0.2; };")
            && options.contains("listen-on-v6 port 5353 { none; };"),
        "{options}"
    );
    assert!(files.secret["keys.conf"].contains("inet 127.77.0.2 port 9530"));
}

#[test]
fn a_server_tells_its_followers_by_a_list_that_its_zones_name() {
    let (settings, ring) = (settled(json!({}), json!({})), ring("b"));
    let of = |followers: &[String]| {
        let set = FileSet {
            server: key("b"),
            settings: &settings,
            ring: &ring,
            further: &[],
            following: &[],
            followers,
            address: PodAddress::Any,
            given: BTreeMap::new(),
        };
        files(&set).unwrap()
    };
    let (none, one) = (of(&[]), of(&["10.96.0.8".to_owned()]));

    assert!(
        one.secret["keys.conf"]
            .contains("primaries \"bindy-followers\" { 10.96.0.8 port 53 key \"transfer.b.dns\"; };"),
        "{}",
        one.secret["keys.conf"]
    );
    assert_ne!(none.version, one.version);
    assert_eq!(crate::conf::check_text(&whole(&none), "named.conf"), []);
}

fn word() -> impl Strategy<Value = Value> {
    let words = [
        "any",
        "none",
        "10.0.0.0/8",
        "10/8",
        "::1",
        "office",
        "a; b",
        "\"x",
        "key k",
        "1y",
        "365d",
        "",
        "9.9.9.9",
        "{",
        "}",
        "\u{0}",
        "bücher",
    ];
    proptest::sample::select(words.to_vec()).prop_map(|word| json!(word))
}

fn list() -> impl Strategy<Value = Value> {
    proptest::collection::vec(word(), 0..3).prop_map(Value::from)
}

/// Clusters of which some are right and some are not.
fn cluster() -> impl Strategy<Value = Value> {
    let signing = (any::<bool>(), word(), word(), any::<bool>(), 0u32..80).prop_map(|(enabled, policy, life, nsec3, iterations)| {
        json!({"enabled": enabled, "policy": policy, "kskLifetime": life, "nsec3": nsec3, "nsec3Iterations": iterations})
    });
    let global = (list(), list(), list(), list(), proptest::option::of(signing));
    let rest = (list(), word(), word());
    (global, rest).prop_map(|((query, transfer, listen, forwarders, signing), (office, image, volume))| {
        json!({
            "acls": {"office": office}, "image": {"image": image}, "volumes": [{"name": volume, "emptyDir": {}}],
            "global": {"allowQuery": query, "allowTransfer": transfer, "listenOn": listen, "forwarders": forwarders, "dnssec": {"signing": signing}},
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn of_2000_manifests_each_has_files_that_pass_their_check_or_findings_that_name_its_fields(cluster in cluster()) {
        let settings = settled(cluster, json!({}));
        match made(&settings, &[followed("a")], &[]) {
            Ok(files) => {
                prop_assert_eq!(crate::conf::check_text(&whole(&files), "named.conf"), Vec::new());
                prop_assert_eq!(made(&settings, &[followed("a")], &[]), Ok(files));
            }
            Err(findings) => {
                prop_assert!(findings.iter().all(|one| one.field.starts_with("spec.") || one.field == "named.conf"));
                prop_assert!(sentence(&findings, Weight::Refused).is_some());
                prop_assert!(!validate::server(&settings).is_empty(), "refused only by the check of files: {:?}", findings);
            }
        }
    }

    #[test]
    fn the_order_of_those_who_are_followed_changes_no_octet(swap in any::<bool>()) {
        let settings = settled(json!({}), json!({}));
        let (one, other) = (followed("a"), followed("c"));
        let pair = if swap { [other, one] } else { [one, other] };

        prop_assert_eq!(made(&settings, &pair, &[]), made(&settings, &[followed("a"), followed("c"), followed("a")], &[]));
    }
}
