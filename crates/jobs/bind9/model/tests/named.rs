//! The real `named-checkconf` over what the model renders: what passes our check passes its own, and what it refuses is refused by us.
//!
//! Its programs are those of `tools/named/build.sh`. Without them these tests say that they did not run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use portolan_bind9_model::conf::{
    FileSet, Following, PodAddress, ServerFiles, ZoneForm, check_text, files, zone_clauses,
};
use portolan_bind9_model::keys::{FreshSecrets, KeyPolicy, KeyRing};
use portolan_bind9_model::kinds::keys::RndcAlgorithm;
use portolan_bind9_model::names;
use portolan_bind9_model::settings::settings;
use portolan_core::ObjectKey;
use serde_json::{Value, from_value, json};

/// The folder with BIND's programs, where they could be made ready.
fn programs() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tools/named/build.sh");
    let made = Command::new(script).output().ok()?;
    made.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&made.stdout).trim()))
}

/// What `named-checkconf` says of a text; nothing where it takes it.
fn checked(programs: &Path, folder: &Path, text: &str) -> String {
    let file = folder.join("named.conf");
    std::fs::write(&file, text).expect("the folder can be written");
    let said = Command::new(programs.join("named-checkconf")).arg(&file).output().expect("named-checkconf can be run");
    if said.status.success() {
        String::new()
    } else {
        format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("dns", name)
}

fn policy() -> KeyPolicy {
    KeyPolicy { algorithm: RndcAlgorithm::HmacSha256, rotate_after_hours: None, given: None }
}

fn ring(server: &str) -> KeyRing {
    let secret = |letter: char| format!("{}A=", letter.to_string().repeat(42));
    let fresh = FreshSecrets { control: secret('c'), update: secret('u'), transfer: secret('t') };
    KeyRing::created(&key(server), &policy(), fresh, jiff::Timestamp::UNIX_EPOCH)
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

fn made(cluster: Value, following: &[Following], ring: &KeyRing) -> Option<ServerFiles> {
    let spec = json!({"clusterRef": "c", "role": "secondary"});
    let settings = settings(&read(spec), Some(&read(cluster)), None);
    let (address, given) = (PodAddress::Any, BTreeMap::new());
    let followers = if following.is_empty() { Vec::new() } else { followers() };
    files(&FileSet {
        server: key("b"),
        settings: &settings,
        ring,
        further: &[],
        following,
        followers: &followers,
        address,
        given,
    })
    .ok()
}

fn followers() -> Vec<String> {
    vec!["10.96.0.8".to_owned(), "fd00::8".to_owned()]
}

fn read<T: serde::de::DeserializeOwned>(spec: Value) -> T {
    from_value(spec).expect("the spec is one of its kind")
}

/// All files as one, with folders that are there.
fn whole(files: &ServerFiles, folder: &Path) -> String {
    let named = files.plain["named.conf"].replace("include \"/etc/bind/keys/rndc.key\";", &files.secret["rndc.key"]);
    let named = named.replace("include \"/etc/bind/keys/keys.conf\";", &files.secret["keys.conf"]);
    let named = named.replace("include \"/etc/bind/config/named.conf.options\";", &files.plain["named.conf.options"]);
    named.replace("/var/cache/bind", &folder.display().to_string())
}

/// Clusters by the words in their lists: every word in every place once.
fn generated() -> Vec<Value> {
    let words = [
        "any",
        "none",
        "localhost",
        "localnets",
        "10.0.0.0/8",
        "10/8",
        "!192.168.0.0/16",
        "::1",
        "2001:db8::/32",
        "office",
        "!office",
        "key partner",
        "! key partner",
        "10.0.0.1",
        "! any",
    ];
    let policies = [
        json!(null),
        json!({"enabled": true}),
        json!({"enabled": true, "policy": "default", "nsec3": true}),
        json!({"enabled": true, "policy": "own", "kskLifetime": "P1Y", "zskLifetime": "90d", "algorithm": "ED25519"}),
        json!({"enabled": true, "policy": "own", "nsec3": true, "nsec3Iterations": 50, "nsec3Salt": "-", "algorithm": "RSASHA256"}),
    ];
    let mut all = Vec::new();
    for word in words {
        for place in ["allowQuery", "allowTransfer", "listenOn", "listenOnV6"] {
            all.push(json!({"acls": {"office": ["10.0.0.0/8"]}, "global": {place: [word], "recursion": true}}));
        }
        all.push(
            json!({"acls": {"office": ["10.0.0.0/8"], "partners": [word]}, "global": {"allowQuery": ["partners"]}}),
        );
    }
    all.extend(policies.into_iter().map(|signing| json!({"global": {"dnssec": {"validation": true, "signing": signing}, "forwarders": ["9.9.9.9", "::1"]}})));
    all
}

/// Zones of every form, as they are given to `addzone`, with the words around them that a file needs.
fn zones() -> String {
    let seeding = zone_clauses("s.db", ZoneForm::Seeding { operator: ("10.0.0.9", 5300), key: "bindy-update" });
    let forms =
        [seeding, zone_clauses("o.db", ZoneForm::Open { policy: None }), zone_clauses("c.db", ZoneForm::Catalog)];
    let statement = |(number, form): (usize, &String)| format!("zone \"z{number}.example\" {form}\n");
    forms.iter().enumerate().map(statement).collect::<Vec<_>>().concat()
}

#[test]
fn named_checkconf_takes_every_configuration_that_the_model_renders() {
    let Some(programs) = programs() else {
        println!("BIND's programs could not be made ready: nothing was checked");
        return;
    };
    let folder = std::env::temp_dir().join(format!("portolan-bind9-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let fresh = FreshSecrets { control: "Qw==".to_owned(), update: "Qw==".to_owned(), transfer: "Qw==".to_owned() };
    let rotated = ring("b").rotated(&key("b"), &policy(), fresh, jiff::Timestamp::UNIX_EPOCH);
    let mut count = 0;
    for cluster in generated() {
        for (following, ring) in [(vec![], ring("b")), (vec![followed("a"), followed("d")], rotated.clone())] {
            let Some(files) = made(cluster.clone(), &following, &ring) else { continue };
            let text = format!("{}{}", whole(&files, &folder), zones());
            assert_eq!(checked(&programs, &folder, &text), "", "{cluster}\n{text}");
            count += 1;
        }
    }
    let broken = [
        "options { allow-query { home; }; };",
        "options { listen-on port 99999 { any; }; };",
        "key \"k\" { algorithm hmac-sha0; secret \"MTIzNA==\"; };",
        "key \"k\" { algorithm hmac-sha256; secret \"uuu=\"; };",
        "zone \"x\" { type secondary; };",
        "dnssec-policy default { };",
        "dnssec-policy p { keys { ksk lifetime 1y algorithm ed25519; }; };",
        "zone \"x\" { type primary; file \"x\"; dnssec-policy p; };",
        "options { recursion no };",
        "acl a { any; }; acl a { none; };",
    ];
    for text in broken {
        assert!(!check_text(text, "named.conf").is_empty(), "{text}");
        assert_ne!(checked(&programs, &folder, text), "", "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("named-checkconf took {count} configurations and refused {}", broken.len());
    assert!(count > 120, "{count} were rendered");
}
