//! Transfers from a real server: all of a zone, what changed in it, bounds; and many questions for serials at once.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use futures::StreamExt;
use portolan_bind9_wire::{
    DnsClient, DnsError, RecordData, ResourceRecord, ResponseCode, Serial, TransferBounds, TransferEvent, TypeCode,
    ZoneChange, ZoneUpdate, batches, soa_of_all,
};
use portolan_named_fixture::tell;

use crate::support::{add, dns, name, rndc, server, update_key};

fn hosts(count: u32) -> impl Iterator<Item = Vec<ZoneChange>> {
    (0..count).map(|number| {
        let data = RecordData::a((0x0a00_0000 + number).into());
        vec![ZoneChange::Add(ResourceRecord {
            name: name(&format!("h{number}.example.com")),
            kind: TypeCode::A,
            ttl: 300,
            data,
        })]
    })
}

async fn all_events(client: &DnsClient, since: Option<Serial>) -> Vec<TransferEvent> {
    let mut transfer = client.transfer(&name("example.com"), since, TransferBounds::default()).await.unwrap();
    let mut all = Vec::new();
    while let Some(events) = transfer.next().await.unwrap() {
        all.extend(events);
    }
    all
}

#[tokio::test]
async fn twenty_thousand_records_come_message_by_message_and_no_more_than_is_taken() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let zone = name("example.com");
    let updates: Vec<ZoneUpdate> =
        batches(zone.clone(), &update_key(), 1_000, hosts(20_000)).map(Result::unwrap).collect();
    assert!(dns.update_all(&updates).await.iter().all(Result::is_ok));

    let started = Instant::now();
    let mut transfer = dns.transfer(&zone, None, TransferBounds::default()).await.unwrap();
    let (mut messages, mut names) = (0, BTreeSet::new());
    while let Some(events) = transfer.next().await.unwrap() {
        messages += 1;
        names.extend(events.into_iter().filter_map(|event| match event {
            TransferEvent::Added(record) if record.kind == TypeCode::A => Some(record.name),
            _ => None,
        }));
    }
    tell(&format!("AXFR of 20,000 records: {messages} messages, {:?}", started.elapsed()));
    assert_eq!(names.len(), 20_001);
    assert!(messages > 10, "it came in {messages} pieces");

    let few = TransferBounds { records: 1_000, ..TransferBounds::default() };
    let refused = dns.contents(&zone, few).await.unwrap_err();
    assert!(refused.to_string().contains("more records than are taken"), "{refused}");
    let short = TransferBounds { bytes: 10_000, ..TransferBounds::default() };
    assert!(dns.contents(&zone, short).await.unwrap_err().to_string().contains("more bytes than are taken"));
}

#[tokio::test]
async fn what_changed_since_a_version_is_told_alone() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let zone = name("example.com");
    let many: Vec<ZoneUpdate> = batches(zone.clone(), &update_key(), 500, hosts(500)).map(Result::unwrap).collect();
    assert!(dns.update_all(&many).await.iter().all(Result::is_ok));
    let before = dns.soa(&zone).await.unwrap().serial;
    dns.update(&ZoneUpdate::new(zone.clone(), vec![add("www.example.com", TypeCode::A, "192.0.2.1")])).await.unwrap();
    let gone = ZoneChange::DeleteName(name("h7.example.com"));
    dns.update(&ZoneUpdate::new(zone.clone(), vec![gone])).await.unwrap();

    let events = all_events(&dns, Some(before)).await;

    let said: Vec<String> = events
        .iter()
        .map(|event| match event {
            TransferEvent::Changes(soa) => format!("changes {}", soa.serial.0 - before.0),
            TransferEvent::Step { from, to } => format!("{}-{}", from.0 - before.0, to.0 - before.0),
            TransferEvent::Added(record) => format!("+{}", record.name),
            TransferEvent::Removed(record) => format!("-{}", record.name),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(said, ["changes 2", "0-1", "+www.example.com.", "-h7.example.com.", "1-2", "Complete"]);

    let now = dns.soa(&zone).await.unwrap();
    assert_eq!(all_events(&dns, Some(now.serial)).await, [TransferEvent::UpToDate(now.clone())]);
    // A version that the server does not know: all of the zone.
    let whole = all_events(&dns, Some(Serial(now.serial.0.wrapping_sub(1_000)))).await;
    assert_eq!(whole.first(), Some(&TransferEvent::Whole(now)));
    assert_eq!(whole.last(), Some(&TransferEvent::Complete));
}

#[tokio::test]
async fn serials_of_many_zones_are_asked_at_once_and_each_server_says_what_it_has() {
    let Some(server) = server() else { return };
    let (rndc, client) = (rndc(&server), Arc::new(dns(&server)));
    let zones: Vec<_> = (0..50).map(|number| name(&format!("z{number}.example"))).collect();
    for zone in &zones {
        rndc.add_zone(zone, "{ type primary; file \"seed.zone\"; }").await.unwrap();
    }
    let empty = name("empty.example");
    rndc.add_zone(&empty, "{ type secondary; primaries { 127.0.0.1 port 1; }; file \"e.db\"; }").await.unwrap();
    let silent = Arc::new(DnsClient::new("127.0.0.1:1".parse().unwrap(), None, crate::support::impatient()));

    let asked = zones
        .iter()
        .cloned()
        .chain([empty.clone(), name("none.example"), name("www.z1.example")])
        .map(|zone| (Arc::clone(&client), zone));
    let asked = asked.chain([(silent, name("z1.example"))]);
    let answers: Vec<_> = soa_of_all(asked, 16).collect().await;

    assert_eq!(answers.len(), 54);
    let served = answers.iter().filter(|(_, _, soa)| soa.as_ref().is_ok_and(|soa| soa.serial == Serial(1))).count();
    assert_eq!(served, 50);
    let said = |zone: &str| {
        answers.iter().find(|(_, asked, soa)| *asked == name(zone) && soa.is_err()).unwrap().2.clone().unwrap_err()
    };
    assert_eq!(said("empty.example").code(), Some(ResponseCode::SERVFAIL));
    assert_eq!(said("none.example").code(), Some(ResponseCode::REFUSED));
    assert!(matches!(said("www.z1.example"), DnsError::NotServed { .. }));
    assert!(matches!(said("z1.example"), DnsError::Transport { .. }));
}

#[tokio::test]
async fn an_answer_that_fits_no_datagram_comes_by_connection() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let many = (0..90).map(|last| add("many.example.com", TypeCode::A, &format!("192.0.2.{last}"))).collect();
    dns.update(&ZoneUpdate::new(name("example.com"), many)).await.unwrap();

    let answer = dns.query(&name("many.example.com"), TypeCode::A).await.unwrap();

    assert_eq!((answer.code, answer.records.len(), answer.is_authoritative), (ResponseCode::NOERROR, 90, true));
    let none = dns.query(&name("none.example.com"), TypeCode::A).await.unwrap();
    assert_eq!((none.code, none.records.len()), (ResponseCode::NXDOMAIN, 0));
}
