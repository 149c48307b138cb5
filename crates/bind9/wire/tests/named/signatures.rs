//! Signatures of updates, transfers and questions on a real server: every algorithm, wrong keys, wrong clocks.

use portolan_bind9_wire::{
    DnsClient, HmacAlgorithm, HmacKey, ResponseCode, ServerLimits, SignatureFault, TransferBounds, TypeCode, ZoneUpdate,
};
use portolan_core::Class;
use portolan_named_fixture::{NamedConfiguration, NamedServer};

use crate::support::{SECRET, SEED, add, dns, key, name, server, values};

#[tokio::test]
async fn every_algorithm_signs_updates_transfers_and_questions() {
    let mut configuration = NamedConfiguration::default().with_file("example.zone", SEED);
    for algorithm in HmacAlgorithm::ALL {
        configuration = configuration.with_key(&format!("k-{algorithm}"), algorithm.as_str(), SECRET);
    }
    let keys: String =
        HmacAlgorithm::ALL.iter().fold(String::new(), |keys, algorithm| keys + &format!("key \"k-{algorithm}\"; "));
    let configuration = configuration.with_statements(&format!(
        "zone \"example.com\" {{ type primary; file \"example.zone\"; allow-update {{ {keys} }}; allow-transfer {{ {keys} }}; }};"
    ));
    let Some(server) = NamedServer::start(configuration) else { return };

    for algorithm in HmacAlgorithm::ALL {
        let key = HmacKey::new(&format!("K-{algorithm}"), algorithm, SECRET).unwrap();
        let dns = DnsClient::new(server.dns(), Some(key), ServerLimits::default());
        let zone = name("example.com");
        let owner = format!("{algorithm}.example.com");
        dns.update(&ZoneUpdate::new(zone.clone(), vec![add(&owner, TypeCode::A, "192.0.2.1")])).await.unwrap();
        let contents = dns.contents(&zone, TransferBounds::default()).await.unwrap();
        assert!(contents.records.iter().any(|record| record.name == name(&owner)), "{algorithm}");
        assert_eq!(dns.soa(&zone).await.unwrap(), contents.soa);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_key_is_said() {
    let Some(server) = server() else { return };
    let zone = name("example.com");
    let update = ZoneUpdate::new(zone.clone(), vec![add("www.example.com", TypeCode::A, "192.0.2.1")]);
    let with = |key: HmacKey| DnsClient::new(server.dns(), Some(key), ServerLimits::default());

    let unknown = with(key("nobody", SECRET));
    let wrong = with(key("update", "d3Jvbmc="));
    let other = with(HmacKey::new("update", HmacAlgorithm::Sha512, SECRET).unwrap());
    for (client, fault) in [
        (&unknown, SignatureFault::BadKey(name("nobody"))),
        (&wrong, SignatureFault::BadSignature(name("update"))),
        (&other, SignatureFault::BadKey(name("update"))),
    ] {
        let refused = client.update(&update).await.unwrap_err();
        assert_eq!((refused.signature_fault(), refused.class()), (Some(&fault), Class::Denied), "{refused}");
        let refused = client.contents(&zone, TransferBounds::default()).await.unwrap_err();
        assert_eq!(refused.signature_fault(), Some(&fault), "{refused}");
        let refused = client.soa(&zone).await.unwrap_err();
        assert_eq!(refused.signature_fault(), Some(&fault), "{refused}");
    }
    assert_eq!(values(server.dns(), "www.example.com", TypeCode::A).await, Vec::<String>::new());

    let unsigned = DnsClient::new(server.dns(), None, ServerLimits::default());
    assert_eq!(
        unsigned.contents(&zone, TransferBounds::default()).await.unwrap_err().code(),
        Some(ResponseCode::REFUSED)
    );
    let error = unsigned.update(&update).await.unwrap_err();
    assert!(error.to_string().ends_with("the server was not asked, for an update needs a key"), "{error}");
    assert_eq!(error.class(), Class::Invalid);
    dns(&server).update(&update).await.unwrap();
}

#[tokio::test]
async fn a_key_that_is_replaced_in_place_is_cut_at_once() {
    let Some(mut server) = server() else { return };
    let (old, rndc) = (dns(&server), crate::support::rndc(&server));
    let update = ZoneUpdate::new(name("example.com"), vec![add("www.example.com", TypeCode::A, "192.0.2.1")]);
    old.update(&update).await.unwrap();

    let other = "b3RoZXItb3RoZXItb3RoZXI=";
    server.write_configuration(
        NamedConfiguration::default()
            .with_key("update", "hmac-sha256", other)
            .with_options("allow-transfer { key update; };")
            .with_statements(
                "zone \"example.com\" { type primary; file \"example.zone\"; allow-update { key update; }; };",
            ),
    );
    rndc.reconfigure().await.unwrap();

    // Tried on 9.18.49: the old secret ends with `reconfig`, on connections that are open too.
    let refused = old.update(&update).await.unwrap_err();
    assert_eq!(refused.signature_fault(), Some(&SignatureFault::BadSignature(name("update"))), "{refused}");
    let new = DnsClient::new(server.dns(), Some(key("update", other)), ServerLimits::default());
    new.update(&update).await.unwrap();
}

#[tokio::test]
async fn clocks_that_differ_are_told_from_keys_that_do() {
    let Some(server) = NamedServer::start(crate::support::configuration().with_clock("+660s")) else { return };
    let zone = name("example.com");
    let client = dns(&server);
    let update = ZoneUpdate::new(zone.clone(), vec![add("www.example.com", TypeCode::A, "192.0.2.1")]);

    let refused = [
        client.update(&update).await.unwrap_err(),
        client.soa(&zone).await.unwrap_err(),
        client.contents(&zone, TransferBounds::default()).await.unwrap_err(),
    ];

    for error in refused {
        let Some(SignatureFault::BadTime { server, ours }) = error.signature_fault() else { panic!("{error}") };
        assert!((655..=670).contains(&server.saturating_sub(*ours)), "{error}");
        assert!(error.to_string().contains("BADTIME"), "{error}");
    }
    // The control channel hangs up, for a wrong clock as for a wrong key.
    let error = crate::support::rndc(&server).status().await.unwrap_err();
    assert!(error.to_string().contains("clocks"), "{error}");
}

/// A server whose list of those who may update has these keys; a zone made by command goes by the list.
fn with_updaters(updaters: &[&str]) -> NamedConfiguration {
    let list = updaters.iter().fold(String::new(), |list, name| list + &format!("key \"{name}\"; "));
    let known =
        updaters.iter().fold(NamedConfiguration::default(), |all, name| all.with_key(name, "hmac-sha256", SECRET));
    known.with_statements(&format!("acl \"updaters\" {{ {list} }};")).with_file("example.zone", SEED)
}

#[tokio::test]
async fn keys_are_replaced_while_updates_go_on_and_none_is_refused() {
    let Some(mut server) = NamedServer::start(with_updaters(&["one"])) else { return };
    let rndc = crate::support::rndc(&server);
    let zone = name("example.com");
    rndc.add_zone(&zone, "{ type primary; file \"example.zone\"; allow-update { updaters; }; }").await.unwrap();
    let (key_in_use, mut next_key) = tokio::sync::watch::channel("one");
    let (address, updated) = (server.dns(), zone.clone());
    let updating = tokio::spawn(async move {
        let mut done = Vec::new();
        loop {
            let with = *next_key.borrow_and_update();
            if with.is_empty() {
                return done;
            }
            let client = DnsClient::new(address, Some(key(with, SECRET)), ServerLimits::default());
            while !next_key.has_changed().unwrap() {
                let owner = format!("h{}.example.com", done.len());
                let update = ZoneUpdate::new(updated.clone(), vec![add(&owner, TypeCode::A, "192.0.2.1")]);
                done.push((with, client.update(&update).await));
            }
        }
    });
    let serial = || async { DnsClient::new(address, None, ServerLimits::default()).soa(&zone).await.unwrap().serial.0 };
    let some_more = || async {
        let before = serial().await;
        crate::support::eventually("updates go on", || async { (serial().await > before + 5).then_some(()) }).await;
    };

    some_more().await;
    server.write_configuration(with_updaters(&["one", "two"]));
    rndc.reconfigure().await.unwrap();
    some_more().await;
    key_in_use.send("two").unwrap();
    some_more().await;
    // Nobody signs with the old one any more.
    server.write_configuration(with_updaters(&["two"]));
    rndc.reconfigure().await.unwrap();
    some_more().await;
    key_in_use.send("").unwrap();

    let done = updating.await.unwrap();
    let failed: Vec<_> = done.iter().filter(|(_, result)| result.is_err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(["one", "two"].iter().all(|with| done.iter().any(|(used, _)| used == with)));
    let old = DnsClient::new(server.dns(), Some(key("one", SECRET)), ServerLimits::default());
    assert!(old.update(&ZoneUpdate::new(zone, vec![add("x.example.com", TypeCode::A, "192.0.2.1")])).await.is_err());
}
