//! Updates on a real server: prerequisites, atomicity, refusals by class, many records in few messages.

use std::time::Instant;

use portolan_bind9_wire::{
    DnsClient, Prerequisite, RecordData, ResourceRecord, ResponseCode, ServerLimits, TransferBounds, TypeCode,
    UpdateRefusal, ZoneChange, ZoneUpdate, batches,
};
use portolan_named_fixture::tell;

use crate::support::{add, dns, name, record, server, update_key, values};

fn update(changes: Vec<ZoneChange>) -> ZoneUpdate {
    ZoneUpdate::new(name("example.com"), changes)
}

#[tokio::test]
async fn several_rrsets_change_together_or_not_at_all() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let before = dns.soa(&name("example.com")).await.unwrap().serial;
    dns.update(&update(vec![
        add("www.example.com", TypeCode::A, "192.0.2.1"),
        add("www.example.com", TypeCode::A, "192.0.2.2"),
        add("www.example.com", TypeCode::TXT, "\"one; two\" \"three\""),
        add("mail.example.com", TypeCode::AAAA, "2001:db8::1"),
        add("example.com", TypeCode::MX, "10 mail.example.com."),
    ]))
    .await
    .unwrap();
    assert_eq!(dns.soa(&name("example.com")).await.unwrap().serial, before.next());
    assert_eq!(values(server.dns(), "www.example.com", TypeCode::A).await, ["192.0.2.1", "192.0.2.2"]);
    assert_eq!(values(server.dns(), "www.example.com", TypeCode::TXT).await, ["\"one; two\" \"three\""]);

    // A value goes, a name changes its type, in one step.
    let one = RecordData::parse(TypeCode::A, "192.0.2.1").unwrap();
    dns.update(&update(vec![
        ZoneChange::Delete(name("WWW.example.com"), TypeCode::A, one),
        ZoneChange::DeleteName(name("mail.example.com")),
        add("mail.example.com", TypeCode::CNAME, "www.example.com."),
        ZoneChange::DeleteRrset(name("example.com"), TypeCode::MX),
    ]))
    .await
    .unwrap();
    assert_eq!(values(server.dns(), "www.example.com", TypeCode::A).await, ["192.0.2.2"]);
    assert_eq!(values(server.dns(), "mail.example.com", TypeCode::CNAME).await, ["www.example.com."]);

    let serial = dns.soa(&name("example.com")).await.unwrap().serial;
    let refused = dns
        .update(&update(vec![
            add("b.example.com", TypeCode::A, "192.0.2.9"),
            add("b.example.org", TypeCode::A, "192.0.2.9"),
        ]))
        .await
        .unwrap_err();
    assert_eq!(refused.update_refusal(), Some(UpdateRefusal::NotInZone));
    assert_eq!(values(server.dns(), "b.example.com", TypeCode::A).await, Vec::<String>::new());
    assert_eq!(dns.soa(&name("example.com")).await.unwrap().serial, serial);
}

#[tokio::test]
async fn a_prerequisite_that_does_not_hold_has_its_code() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let (there, none) = (name("ns1.example.com"), name("none.example.com"));
    let data = |text: &str| vec![RecordData::parse(TypeCode::A, text).unwrap()];
    for (prerequisite, code) in [
        (Prerequisite::NameExists(there.clone()), None),
        (Prerequisite::NameExists(none.clone()), Some(ResponseCode::NXDOMAIN)),
        (Prerequisite::NameAbsent(none.clone()), None),
        (Prerequisite::NameAbsent(there.clone()), Some(ResponseCode::YXDOMAIN)),
        (Prerequisite::RrsetExists(there.clone(), TypeCode::A), None),
        (Prerequisite::RrsetExists(there.clone(), TypeCode::TXT), Some(ResponseCode::NXRRSET)),
        (Prerequisite::RrsetAbsent(there.clone(), TypeCode::TXT), None),
        (Prerequisite::RrsetAbsent(there.clone(), TypeCode::A), Some(ResponseCode::YXRRSET)),
        (Prerequisite::RrsetIs(there.clone(), TypeCode::A, data("192.0.2.53")), None),
        (Prerequisite::RrsetIs(there.clone(), TypeCode::A, data("192.0.2.54")), Some(ResponseCode::NXRRSET)),
    ] {
        let update = ZoneUpdate {
            prerequisites: vec![prerequisite.clone()],
            ..update(vec![add("x.example.com", TypeCode::A, "192.0.2.1")])
        };
        let refusal = dns.update(&update).await.err().and_then(|error| error.update_refusal());
        assert_eq!(refusal, code.map(UpdateRefusal::Prerequisite), "{prerequisite:?}");
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let refusal = |changes: Vec<ZoneChange>| {
        let dns = &dns;
        async move { dns.update(&update(changes)).await.unwrap_err().update_refusal() }
    };
    // An address that named's own checks miss, and a limit of 9.18.49: 100 values a type.
    assert_eq!(
        refusal(vec![add("example.com", TypeCode::MX, "10 none.example.com.")]).await,
        Some(UpdateRefusal::Refused)
    );
    let many = (0..101).map(|last| add("many.example.com", TypeCode::A, &format!("192.0.2.{last}"))).collect();
    assert_eq!(refusal(many).await, Some(UpdateRefusal::ServerFailed));
    let elsewhere = ZoneUpdate::new(name("example.net"), vec![add("www.example.net", TypeCode::A, "192.0.2.1")]);
    let error = dns.update(&elsewhere).await.unwrap_err();
    assert_eq!(error.update_refusal(), Some(UpdateRefusal::NotAuthoritative));
    assert!(error.to_string().starts_with("updating example.net. at "), "{error}");
}

#[tokio::test]
async fn five_thousand_records_need_few_messages_and_all_arrive_in_their_order() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let zone = name("example.com");
    let groups = (0..5_000_u32).map(|number| {
        let data = RecordData::a((0x0a00_0000 + number).into());
        vec![ZoneChange::Add(ResourceRecord {
            name: name(&format!("h{number}.example.com")),
            kind: TypeCode::A,
            ttl: 300,
            data,
        })]
    });
    let updates: Vec<ZoneUpdate> = batches(zone.clone(), &update_key(), 500, groups).map(Result::unwrap).collect();
    assert_eq!(updates.len(), 10);

    let before = dns.soa(&zone).await.unwrap().serial;
    let started = Instant::now();
    let results = dns.update_all(&updates).await;
    let took = started.elapsed();

    assert!(results.iter().all(Result::is_ok), "{results:?}");
    tell(&format!(
        "5,000 records in {} updates: {took:?}, {:.0} records a second",
        updates.len(),
        5_000.0 / took.as_secs_f64()
    ));
    assert_eq!(dns.soa(&zone).await.unwrap().serial.0, before.0 + 10);
    let contents = dns.contents(&zone, TransferBounds::default()).await.unwrap();
    assert_eq!(contents.records.iter().filter(|record| record.kind == TypeCode::A).count(), 5_001);
}

#[tokio::test]
async fn updates_that_are_sent_before_others_are_answered_happen_in_their_order() {
    let Some(server) = server() else { return };
    let limits = ServerLimits { pipelined: 200, ..ServerLimits::default() };
    let dns = DnsClient::new(server.dns(), Some(update_key()), limits);
    let replace = |number: u32| {
        let one = format!("192.0.2.{}", number % 250);
        update(vec![
            ZoneChange::DeleteRrset(name("www.example.com"), TypeCode::A),
            add("www.example.com", TypeCode::A, &one),
        ])
    };
    let mut updates: Vec<_> = (0..200).map(replace).collect();
    // One that is refused in the midst of them holds up none.
    updates.insert(100, update(vec![add("www.example.org", TypeCode::A, "192.0.2.1")]));

    let results = dns.update_all(&updates).await;

    let refused: Vec<_> = results.iter().enumerate().filter(|(_, result)| result.is_err()).map(|(at, _)| at).collect();
    assert_eq!(refused, [100]);
    assert_eq!(values(server.dns(), "www.example.com", TypeCode::A).await, ["192.0.2.199"]);
}

#[tokio::test]
async fn an_update_as_long_as_a_message_can_be_arrives_whole() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let text = vec![b'x'; 250];
    let data = RecordData::txt([&text[..]]).unwrap();
    let groups = (0..2_000).map(|number| {
        vec![ZoneChange::Add(ResourceRecord {
            name: name(&format!("t{number}.example.com")),
            kind: TypeCode::TXT,
            ttl: 300,
            data: data.clone(),
        })]
    });
    let updates: Vec<_> = batches(name("example.com"), &update_key(), usize::MAX, groups).map(Result::unwrap).collect();
    let longest = updates.iter().map(|update| update.changes.len()).max();
    assert!(longest > Some(200) && updates.len() < 10, "{longest:?} in {}", updates.len());

    let results = dns.update_all(&updates).await;

    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let contents = dns.contents(&name("example.com"), TransferBounds::default()).await.unwrap();
    assert_eq!(contents.records.iter().filter(|record| record.kind == TypeCode::TXT).count(), 2_000);
    let record = record("huge.example.com", TypeCode::TXT, "x");
    let huge = ResourceRecord { data: RecordData::txt([&vec![b'x'; 65_250][..]]).unwrap(), ..record };
    let error = dns.update(&update(vec![ZoneChange::Add(huge)])).await.unwrap_err();
    assert!(error.to_string().contains("65,535 bytes"), "{error}");
}

#[tokio::test]
async fn data_of_every_type_comes_back_byte_for_byte() {
    let Some(server) = server() else { return };
    let dns = dns(&server);
    let records = vec![
        record("a.example.com", TypeCode::A, "192.0.2.1"),
        record("*.w.example.com", TypeCode::AAAA, "2001:db8::1"),
        record("_sip._tcp.example.com", TypeCode::SRV, "10 20 5060 Sip.Example.NET."),
        record("c.example.com", TypeCode::CAA, "128 issuemail \";\""),
        record("c.example.com", TypeCode::CAA, r#"0 issue "ca.example; accounturi=https://ca.example/1""#),
        record("p.example.com", TypeCode::PTR, "Host.Example.NET."),
        record("d.example.com", TypeCode::NS, "ns1.example.net."),
        record(
            "d.example.com",
            TypeCode::DS,
            "12345 13 2 4a1ba3f5b2c6d7e8f901234567890abcdef01234567890abcdef0123456789ab",
        ),
        record("t.example.com", TypeCode::TLSA, "3 1 1 0a0b"),
        record(
            "t.example.com",
            TypeCode::SSHFP,
            "4 2 4a1ba3f5b2c6d7e8f901234567890abcdef01234567890abcdef0123456789ab",
        ),
        record("t.example.com", TypeCode::NAPTR, r#"100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" ."#),
        record("t.example.com", TypeCode::URI, "10 1 \"https://example.com/\""),
        record("t.example.com", TypeCode::HTTPS, r"\# 3 000100"),
        record("t.example.com", TypeCode(65_280), r"\# 3 0a0b0c"),
        record(r"a\.b.example.com", TypeCode::TXT, r#""\000\255 \" \\ ;""#),
        record("null.example.com", TypeCode::MX, "0 ."),
    ];
    dns.update(&update(records.iter().cloned().map(ZoneChange::Add).collect())).await.unwrap();

    let contents = dns.contents(&name("example.com"), TransferBounds::default()).await.unwrap();

    for sent in records {
        assert!(contents.records.contains(&sent), "{sent}");
    }
}
