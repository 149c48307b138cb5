//! What named does that no document says, or that documents say otherwise: each was tried, with its version. When one of these
//! fails, named has changed, and so must what is built on it.

use portolan_bind9_wire::{RecordData, RndcRefusal, TypeCode, ZoneChange, ZoneFiles, ZoneUpdate};

use crate::support::{add, dns, eventually, name, rndc, server, values};

fn update(changes: Vec<ZoneChange>) -> ZoneUpdate {
    ZoneUpdate::new(name("example.com"), changes)
}

/// 9.18.49: a record that is to go is found whatever the case of names in its data; a TXT is not.
#[tokio::test]
async fn a_value_is_deleted_in_any_spelling_of_the_names_in_it() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    dns.update(&update(vec![add("a.example.com", TypeCode::CNAME, "Target.Example.NET.")])).await.unwrap();
    dns.update(&update(vec![add("t.example.com", TypeCode::TXT, "Text")])).await.unwrap();
    let delete = |owner: &str, kind: TypeCode, text: &str| {
        ZoneChange::Delete(name(owner), kind, RecordData::parse(kind, text).unwrap())
    };

    dns.update(&update(vec![delete("A.EXAMPLE.com", TypeCode::CNAME, "target.example.net.")])).await.unwrap();
    dns.update(&update(vec![delete("t.example.com", TypeCode::TXT, "text")])).await.unwrap();

    assert_eq!(values(server.dns(), "a.example.com", TypeCode::CNAME).await, Vec::<String>::new());
    assert_eq!(values(server.dns(), "t.example.com", TypeCode::TXT).await, ["\"Text\""]);
}

/// 9.18.49: NOERROR, and nothing happened.
#[tokio::test]
async fn noerror_is_no_proof() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    dns.update(&update(vec![add("a.example.com", TypeCode::A, "192.0.2.1")])).await.unwrap();
    let before = dns.soa(&name("example.com")).await.unwrap().serial;

    for changes in [
        vec![add("a.example.com", TypeCode::CNAME, "b.example.com.")],
        vec![add("example.com", TypeCode::CNAME, "b.example.com.")],
        vec![ZoneChange::DeleteRrset(name("example.com"), TypeCode::NS)],
        vec![add("a.example.com", TypeCode::A, "192.0.2.1")],
    ] {
        dns.update(&update(changes.clone())).await.unwrap();
        assert_eq!(dns.soa(&name("example.com")).await.unwrap().serial, before, "{changes:?}");
    }
    // A DS without a delegation even makes a new version of the zone, and is not in it.
    let digest = "4a1ba3f5b2c6d7e8f901234567890abcdef01234567890abcdef0123456789ab";
    dns.update(&update(vec![add("d.example.com", TypeCode::DS, &format!("1 13 2 {digest}"))])).await.unwrap();
    assert_eq!(dns.soa(&name("example.com")).await.unwrap().serial, before.next());
    assert_eq!(values(server.dns(), "d.example.com", TypeCode::DS).await, Vec::<String>::new());
}

/// 9.18.49: an apex NS in the zone needs its address in the same message, and so does a mail server.
#[tokio::test]
async fn a_name_server_comes_with_its_address() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let ns = || add("example.com", TypeCode::NS, "ns2.example.com.");

    assert!(dns.update(&update(vec![ns()])).await.is_err());
    dns.update(&update(vec![ns(), add("ns2.example.com", TypeCode::A, "192.0.2.54")])).await.unwrap();

    assert_eq!(values(server.dns(), "example.com", TypeCode::NS).await, ["ns1.example.com.", "ns2.example.com."]);
}

/// 9.18.49: a zone of the configuration can be deleted by command, and is back after a restart only.
#[tokio::test]
async fn a_zone_of_the_configuration_can_be_deleted() {
    let Some(mut server) = server() else { return };
    let rndc = rndc(&server);
    let zone = name("example.com");
    rndc.delete_zone(&zone, ZoneFiles::Keep).await.unwrap();
    eventually("it is gone", || async {
        (rndc.show_zone(&zone).await.err()?.refusal() == Some(RndcRefusal::ZoneNotFound)).then_some(())
    })
    .await;

    rndc.reconfigure().await.unwrap();
    let after_reconfig = rndc.show_zone(&zone).await;
    server.stop();
    server.start_again();

    assert!(after_reconfig.is_ok(), "`reconfig` brings it back as well: {after_reconfig:?}");
    rndc.show_zone(&zone).await.unwrap();
}

/// 9.18.49: a zone may name a key that nobody knows, and nobody can update it then.
#[tokio::test]
async fn a_key_that_is_not_there_goes_unnoticed() {
    let Some(server) = server() else { return };
    let rndc = rndc(&server);

    rndc.add_zone(&name("x.example"), "{ type primary; file \"seed.zone\"; allow-update { key none-such; }; }")
        .await
        .unwrap();

    assert!(rndc.show_zone(&name("x.example")).await.unwrap().contains("none-such"));
}
