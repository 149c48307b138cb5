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
    let keys: String = HmacAlgorithm::ALL.iter().map(|algorithm| format!("key \"k-{algorithm}\"; ")).collect();
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
    assert!(unsigned.update(&update).await.is_err());
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
