//! A zone that is complete before it is open (docs: the operator's responder seeds it), on a real server, through restarts.

use std::{net::SocketAddr, time::Duration};

use portolan_bind9_wire::{
    DnsClient, DomainName, JournalFile, Nameserver, ResourceRecord, ResponderLimits, ResponseCode, RndcRefusal,
    SeedResponder, SeedTable, Seeding, SeedingError, Serial, ServerLimits, Soa, TransferBounds, TypeCode, ZoneApex,
    ZoneFiles, ZoneSeed, ZoneUpdate, says_the_same,
};

use portolan_named_fixture::NamedServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
};

use crate::support::{
    SECRET, add, configuration, dns, eventually, key, name, record, rndc, server, update_key, values,
};

/// Without these named asks for 20 serials a second, and fetches two zones at a time from one address.
const QUOTAS: &str = "serial-query-rate 1000; transfers-in 50; transfers-per-ns 50;";

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
    rndc.sync(&zone, JournalFile::Keep).await.unwrap();
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
    let limits = ResponderLimits { connections: 4, step: Duration::from_millis(300), ..ResponderLimits::default() };
    let responder = SeedResponder::bind(([127, 0, 0, 1], 0).into(), zones.clone(), limits).await.unwrap();
    let from = responder.address().unwrap();
    tokio::spawn(responder.serve());
    let zone = name("big.example");
    zones.insert(zone.clone(), seed(&zone, 7, 10));
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(from).await.unwrap());
    }

    let ours = DnsClient::new(from, Some(update_key()), ServerLimits::default());
    eventually("the silent ones are gone", || async { ours.contents(&zone, TransferBounds::default()).await.ok() })
        .await;
    assert_eq!(ours.soa(&zone).await.unwrap().serial, Serial(7));
}

/// Bytes from a seed, one number after another (xorshift).
fn noise(state: &mut u64, length: usize) -> Vec<u8> {
    let mut next = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test]
async fn whatever_is_sent_to_the_responder_it_goes_on() {
    let zones = SeedTable::new();
    let from = responder(&zones).await;
    let zone = name("big.example");
    zones.insert(zone.clone(), seed(&zone, 7, 10));
    let datagrams = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut state = 0x5eed_5eed_5eed_5eed;

    for round in 0..300_usize {
        let bytes = noise(&mut state, round % 120);
        datagrams.send_to(&bytes, from).await.unwrap();
        // Some with their length before them, some with another.
        let mut stream = TcpStream::connect(from).await.unwrap();
        let length = if round % 3 == 0 { u16::MAX } else { u16::try_from(bytes.len()).unwrap() };
        let _reset = stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await;
    }

    let ours = DnsClient::new(from, Some(update_key()), ServerLimits::default());
    eventually("it answers", || async { ours.contents(&zone, TransferBounds::default()).await.ok() }).await;
    assert_eq!(ours.soa(&zone).await.unwrap().serial, Serial(7));
}

#[tokio::test]
async fn who_asks_for_a_zone_and_does_not_read_it_is_left() {
    let zones = SeedTable::new();
    let limits = ResponderLimits { connections: 1, step: Duration::from_millis(300), ..ResponderLimits::default() };
    let responder = SeedResponder::bind(([127, 0, 0, 1], 0).into(), zones.clone(), limits).await.unwrap();
    let from = responder.address().unwrap();
    tokio::spawn(responder.serve());
    let zone = name("big.example");
    // Far more than the buffers of a connection hold.
    let endless = ZoneSeed::new(apex(&zone, 7).soa, 300, update_key(), || {
        (0..400_000).map(|number| {
            record(&format!("h{number}.big.example"), TypeCode::TXT, "\"0123456789012345678901234567890123456789\"")
        })
    });
    let counted = zones.insert(zone.clone(), endless);
    let ours = DnsClient::new(from, Some(update_key()), ServerLimits::default());
    let mut transfer = ours.transfer(&zone, None, TransferBounds::default()).await.unwrap();
    transfer.next().await.unwrap();

    // It holds the only place until it is left; meanwhile datagrams are answered.
    ours.soa(&zone).await.unwrap();
    eventually("its place is free", || async {
        let mut stream = TcpStream::connect(from).await.unwrap();
        stream.write_all(&[0, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.ok()?;
        // FORMERR, for there is no question: somebody is there.
        stream.read_u16().await.ok()
    })
    .await;
    assert_eq!(counted.fetched(), 0);
}

/// What a zone is to become on a server, and where it is fetched.
fn plan<'a>(zone: &'a DomainName, statements: &'a [String; 2], seed: &'a ZoneSeed) -> Seeding<'a> {
    Seeding { zone, closed: &statements[0], open: &statements[1], seed, limit: Duration::from_secs(30) }
}

fn statements(zone: &str, from: SocketAddr) -> [String; 2] {
    [as_secondary(zone, from), as_primary(zone)]
}

#[tokio::test]
async fn many_zones_are_seeded_at_once_and_each_is_complete() {
    let Some(server) = NamedServer::start(configuration().with_options(QUOTAS)) else { return };
    let (rndc, dns, zones) = (rndc(&server), dns(&server), SeedTable::new());
    let from = responder(&zones).await;
    let names: Vec<_> = (0..30).map(|number| format!("z{number}.example")).collect();

    let seeding = names.iter().map(|text| {
        let (rndc, zones, zone) = (&rndc, &zones, name(text));
        async move {
            let counted = zones.insert(zone.clone(), seed(&zone, 7, 100));
            rndc.open_seeded(plan(&zone, &statements(text, from), &counted)).await
        }
    });
    for result in futures::future::join_all(seeding).await {
        result.unwrap();
    }

    for text in &names {
        let contents = dns.contents(&name(text), TransferBounds::default()).await.unwrap();
        assert_eq!((contents.soa.serial, contents.records.len()), (Serial(7), 103), "{text}");
    }
}

#[tokio::test]
async fn seeding_goes_on_wherever_it_was_broken_off() {
    let Some(server) = server() else { return };
    let (rndc, dns, zones) = (rndc(&server), dns(&server), SeedTable::new());
    let from = responder(&zones).await;
    for steps in 0..=5 {
        let text = format!("broken{steps}.example");
        let (zone, both) = (name(&text), statements(&text, from));
        let counted = zones.insert(zone.clone(), seed(&zone, 7, 100));
        if steps > 0 {
            rndc.add_zone(&zone, &both[0]).await.unwrap();
        }
        if steps > 1 {
            eventually("it is fetched", || async { rndc.zone_status(&zone).await.ok() }).await;
        }
        if steps > 2 {
            rndc.sync(&zone, JournalFile::Keep).await.unwrap();
        }
        if steps > 3 {
            rndc.delete_zone(&zone, ZoneFiles::Keep).await.unwrap();
        }
        if steps > 4 {
            eventually("it is open", || async { rndc.add_zone(&zone, &both[1]).await.ok() }).await;
        }

        rndc.open_seeded(plan(&zone, &both, &counted)).await.unwrap();

        assert!(says_the_same(&rndc.show_zone(&zone).await.unwrap(), &both[1]), "after {steps} steps");
        assert_eq!(
            dns.contents(&zone, TransferBounds::default()).await.unwrap().records.len(),
            103,
            "after {steps} steps"
        );
    }
}

#[tokio::test]
async fn what_an_earlier_life_left_is_not_opened() {
    let Some(server) = server() else { return };
    let (rndc, dns, zones) = (rndc(&server), dns(&server), SeedTable::new());
    let from = responder(&zones).await;
    let (zone, both) = (name("again.example"), statements("again.example", from));
    // A newer serial than ours, and other records.
    let before = zones.insert(zone.clone(), seed(&zone, 9_000, 3));
    rndc.open_seeded(plan(&zone, &both, &before)).await.unwrap();
    rndc.delete_zone(&zone, ZoneFiles::Keep).await.unwrap();
    let now = zones.insert(zone.clone(), seed(&zone, 7, 50));

    let error = rndc.open_seeded(plan(&zone, &both, &now)).await.unwrap_err();
    assert!(matches!(error, SeedingError::OldFile { has: Serial(9_000), wanted: Serial(7), .. }), "{error}");
    assert_eq!(code_of(&server, "h1.again.example").await, ResponseCode::REFUSED);
    rndc.delete_zone(&zone, ZoneFiles::Remove).await.unwrap();
    let both = both.map(|statement| statement.replace("again.example.db", "again.example.7.db"));
    rndc.open_seeded(plan(&zone, &both, &now)).await.unwrap();

    let contents = dns.contents(&zone, TransferBounds::default()).await.unwrap();
    assert_eq!((contents.soa.serial, contents.records.len()), (Serial(7), 53));
}

#[tokio::test]
async fn a_zone_that_nobody_has_stays_closed_and_another_ones_is_left_alone() {
    let Some(server) = server() else { return };
    let (rndc, zones) = (rndc(&server), SeedTable::new());
    let from = responder(&zones).await;
    let (zone, both) = (name("lost.example"), statements("lost.example", from));
    let unknown = seed(&zone, 7, 3);

    let short = Seeding { limit: Duration::from_secs(1), ..plan(&zone, &both, &unknown) };
    let error = rndc.open_seeded(short).await.unwrap_err();
    assert!(error.to_string().contains("did not fetch the zone lost.example. within 1s"), "{error}");
    assert_eq!(code_of(&server, "ns1.lost.example").await, ResponseCode::SERVFAIL);

    let other = name("example.com");
    let error = rndc.open_seeded(plan(&other, &both, &unknown)).await.unwrap_err();
    assert!(matches!(&error, SeedingError::OtherZone { shown, .. } if shown.contains("example.zone")), "{error}");
    assert_eq!(values(server.dns(), "ns1.example.com", TypeCode::A).await, ["192.0.2.53"]);
}

async fn code_of(server: &NamedServer, owner: &str) -> ResponseCode {
    let open = DnsClient::new(server.dns(), None, ServerLimits::default());
    open.query(&name(owner), TypeCode::A).await.unwrap().code
}
