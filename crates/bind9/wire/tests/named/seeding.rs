//! A zone that is complete before it is open (docs: the operator's responder seeds it), on a real server, through restarts.

use std::net::SocketAddr;

use portolan_bind9_wire::{
    DnsClient, DomainName, Journal, Nameserver, ResourceRecord, ResponderLimits, ResponseCode, RndcRefusal,
    SeedResponder, SeedTable, Serial, ServerLimits, Soa, TransferBounds, TypeCode, ZoneApex, ZoneFiles, ZoneSeed,
    ZoneUpdate,
};

use crate::support::{SECRET, add, dns, eventually, key, name, record, rndc, server, update_key, values};

/// A responder on a free port of loopback, until the task is dropped with the test.
async fn responder(zones: &SeedTable) -> SocketAddr {
    let responder =
        SeedResponder::bind(([127, 0, 0, 1], 0).into(), zones.clone(), ResponderLimits::default()).await.unwrap();
    let address = responder.address().unwrap();
    tokio::spawn(responder.serve());
    address
}

fn apex(zone: &DomainName, serial: u32) -> ZoneApex {
    let host = zone.child("ns1").unwrap();
    let soa = Soa {
        primary: host.clone(),
        mailbox: zone.child("hostmaster").unwrap(),
        serial: Serial(serial),
        refresh: 3_600,
        retry: 600,
        expire: 604_800,
        negative_ttl: 60,
    };
    let nameserver =
        Nameserver { host, addresses: vec!["192.0.2.53".parse().unwrap(), "2001:db8::53".parse().unwrap()] };
    ZoneApex { zone: zone.clone(), soa, ttl: 300, nameservers: vec![nameserver] }
}

fn seed(zone: &DomainName, serial: u32, hosts: u32) -> ZoneSeed {
    let apex = apex(zone, serial);
    let records = apex.records().unwrap();
    let zone = zone.clone();
    let soa = apex.soa;
    ZoneSeed::new(soa, 300, update_key(), move || {
        let zone = zone.clone();
        let hosts = (0..hosts).map(move |number| {
            record(&format!("h{number}.{zone}"), TypeCode::A, &format!("10.0.{}.{}", number / 250, number % 250))
        });
        records.clone().into_iter().chain(hosts)
    })
}

fn as_secondary(zone: &str, from: SocketAddr) -> String {
    format!(
        "{{ type secondary; file \"{zone}.db\"; allow-query {{ none; }}; primaries {{ {} port {} key update; }}; }}",
        from.ip(),
        from.port()
    )
}

fn as_primary(zone: &str) -> String {
    format!(
        "{{ type primary; file \"{zone}.db\"; masterfile-format raw; allow-update {{ key update; }}; \
         allow-transfer {{ key update; }}; serial-update-method unixtime; }}"
    )
}

/// Nobody gets an answer of the zone. Tried on 9.18.49: SERVFAIL while it is being fetched, whoever may ask; REFUSED before and after.
async fn assert_closed(open: &DnsClient) {
    let answer = open.query(&name("h1.big.example"), TypeCode::A).await.unwrap();
    assert!(
        [ResponseCode::REFUSED, ResponseCode::SERVFAIL].contains(&answer.code) && answer.records.is_empty(),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_zone_is_never_open_before_it_is_complete() {
    let Some(mut server) = server() else { return };
    let (rndc, dns, zones) = (rndc(&server), dns(&server), SeedTable::new());
    let from = responder(&zones).await;
    let zone = name("big.example");
    let counted = zones.insert(zone.clone(), seed(&zone, 7, 5_000));

    rndc.add_zone(&zone, &as_secondary("big.example", from)).await.unwrap();
    let open = DnsClient::new(server.dns(), None, ServerLimits::default());
    eventually("the zone is there", || async {
        assert_closed(&open).await;
        rndc.zone_status(&zone).await.ok()
    })
    .await;
    assert_eq!(counted.fetched(), 1);
    rndc.sync(&zone, Journal::Keep).await.unwrap();
    rndc.delete_zone(&zone, ZoneFiles::Keep).await.unwrap();
    eventually("the zone is open", || async {
        assert_closed(&open).await;
        let added = rndc.add_zone(&zone, &as_primary("big.example")).await;
        // The file is still being written, although the zone is deleted.
        let file_is_missing = added.as_ref().is_err_and(|error| error.refusal() == Some(RndcRefusal::FileNotFound));
        assert!(added.is_ok() || file_is_missing, "{added:?}");
        added.ok()
    })
    .await;
    zones.remove(&zone);

    let contents = dns.contents(&zone, TransferBounds::default()).await.unwrap();
    assert_eq!(contents.soa, apex(&zone, 7).soa);
    assert_eq!(contents.records.len(), 5_003);
    let mut apex: Vec<ResourceRecord> = contents.records.into_iter().filter(|record| record.name == zone).collect();
    apex.sort();
    assert_eq!(apex.iter().map(ToString::to_string).collect::<Vec<_>>(), ["big.example. 300 IN NS ns1.big.example."]);
    assert_eq!(values(server.dns(), "h4999.big.example", TypeCode::A).await, ["10.0.19.249"]);

    // It takes updates, and serials of time that are newer; all of it is there after it was killed.
    dns.update(&ZoneUpdate::new(zone.clone(), vec![add("www.big.example", TypeCode::A, "192.0.2.1")])).await.unwrap();
    let serial = dns.soa(&zone).await.unwrap().serial;
    assert!(serial.is_newer_than(Serial(1_600_000_000)), "{serial}");
    server.kill();
    server.start_again();
    let contents = dns.contents(&zone, TransferBounds::default()).await.unwrap();
    assert_eq!((contents.soa.serial, contents.records.len()), (serial, 5_004));
}

#[tokio::test]
async fn who_has_no_key_of_a_seeded_zone_gets_nothing_of_it() {
    let zones = SeedTable::new();
    let from = responder(&zones).await;
    let zone = name("big.example");
    zones.insert(zone.clone(), seed(&zone, 7, 10));
    let with = |key| DnsClient::new(from, key, ServerLimits::default());

    let ours = with(Some(update_key()));
    let contents = ours.contents(&zone, TransferBounds::default()).await.unwrap();
    assert_eq!((contents.records.len(), contents.soa.serial), (13, Serial(7)));
    assert_eq!(ours.soa(&zone).await.unwrap(), contents.soa);

    let nobody = with(None);
    assert_eq!(
        nobody.contents(&zone, TransferBounds::default()).await.unwrap_err().code(),
        Some(ResponseCode::REFUSED)
    );
    assert_eq!(nobody.soa(&zone).await.unwrap_err().code(), Some(ResponseCode::REFUSED));
    let wrong = with(Some(key("update", "d3Jvbmc=")));
    assert!(wrong.contents(&zone, TransferBounds::default()).await.unwrap_err().signature_fault().is_some());
    let other = with(Some(key("other", SECRET)));
    assert!(other.soa(&zone).await.unwrap_err().signature_fault().is_some());

    zones.remove(&zone);
    assert!(ours.contents(&zone, TransferBounds::default()).await.is_err());
    assert!(zones.is_empty());
}

#[tokio::test]
async fn those_who_connect_and_say_nothing_do_not_hold_up_others() {
    let zones = SeedTable::new();
    let limits =
        ResponderLimits { connections: 4, step: std::time::Duration::from_millis(300), ..ResponderLimits::default() };
    let responder = SeedResponder::bind(([127, 0, 0, 1], 0).into(), zones.clone(), limits).await.unwrap();
    let from = responder.address().unwrap();
    tokio::spawn(responder.serve());
    let zone = name("big.example");
    zones.insert(zone.clone(), seed(&zone, 7, 10));
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(tokio::net::TcpStream::connect(from).await.unwrap());
    }

    let ours = DnsClient::new(from, Some(update_key()), ServerLimits::default());
    eventually("the silent ones are gone", || async { ours.contents(&zone, TransferBounds::default()).await.ok() })
        .await;
    assert_eq!(ours.soa(&zone).await.unwrap().serial, Serial(7));
}
