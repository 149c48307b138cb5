use proptest::prelude::*;

use super::{super::pages::Pages, *};
use crate::{
    HmacAlgorithm, HmacKey, RecordData, Serial,
    transfer::{TransferEvent, TransferReader},
    tsig::{SignatureFault, VerifyError, sign_request},
};

const NOW: u64 = 1_800_000_000;

fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn key(key_name: &str, secret: &str) -> HmacKey {
    HmacKey::new(key_name, HmacAlgorithm::Sha256, secret).unwrap()
}

fn soa(serial: u32) -> Soa {
    let (primary, mailbox) = (name("ns1.example.com"), name("hostmaster.example.com"));
    Soa { primary, mailbox, serial: Serial(serial), refresh: 1, retry: 2, expire: 3, negative_ttl: 4 }
}

/// A table with example.com at serial 7, its records so many TXT of so many bytes.
fn zones(count: usize, bytes: usize) -> SeedTable {
    let zones = SeedTable::new();
    let records = move || {
        (0..count).map(move |number| {
            let data = RecordData::txt([&vec![b'x'; bytes][..]]).unwrap();
            ResourceRecord { name: name(&format!("n{number}.example.com")), kind: TypeCode::TXT, ttl: 60, data }
        })
    };
    zones.insert(
        name("example.com"),
        ZoneSeed::new(soa(7), 60, key("seed", "c2VjcmV0"), records).with_key(key("next", "bmV4dA==")),
    );
    zones
}

fn question(zone: &str, kind: TypeCode, opcode: Opcode, since: Option<u32>) -> Vec<u8> {
    let question = Question::of(name(zone), kind);
    let mut builder = MessageBuilder::new(Header::asking(9, opcode), Some(&question));
    if let Some(serial) = since {
        let record = ResourceRecord { name: name(zone), kind: TypeCode::SOA, ttl: 0, data: soa(serial).to_data() };
        assert!(builder.push_within(Section::Authority, &record.into(), 4_096));
    }
    builder.finish()
}

/// What a request is answered, in a word.
fn said(zone: &str, kind: TypeCode, opcode: Opcode, since: Option<u32>, with: Option<HmacKey>, by: Arrival) -> String {
    let message = question(zone, kind, opcode, since);
    let (message, conversation) = match with {
        Some(key) => {
            let (message, conversation) = sign_request(message, &key, NOW);
            (message, Some(conversation))
        }
        None => (message, None),
    };
    match (reply(&message, by, &zones(3, 10), NOW), conversation) {
        (SeedReply::Silence, _) => "silence".into(),
        (SeedReply::Transfer(_), _) => "transfer".into(),
        (SeedReply::Message(answer), None) => DnsMessage::read(&answer).unwrap().header.code.to_string(),
        (SeedReply::Message(answer), Some(mut conversation)) => match conversation.verify(&answer, NOW) {
            Ok(answer) => {
                let answer = DnsMessage::read(&answer).unwrap();
                format!("{} with {}", answer.header.code, answer.answers.len())
            }
            Err(VerifyError::Fault(SignatureFault::BadKey(_))) => "BADKEY".into(),
            Err(VerifyError::Fault(SignatureFault::BadSignature(_))) => "BADSIG".into(),
            Err(why) => panic!("{why}"),
        },
    }
}

#[test]
fn only_signed_questions_for_a_seeded_zone_are_answered() {
    let ours = || Some(key("seed", "c2VjcmV0"));
    for (zone, kind, opcode, since, with, by, expected) in [
        ("example.com", TypeCode::SOA, Opcode::QUERY, None, ours(), Arrival::Datagram, "NOERROR with 1"),
        ("Example.COM", TypeCode::SOA, Opcode::QUERY, None, ours(), Arrival::Connection, "NOERROR with 1"),
        ("example.com", TypeCode::AXFR, Opcode::QUERY, None, ours(), Arrival::Connection, "transfer"),
        (
            "example.com",
            TypeCode::AXFR,
            Opcode::QUERY,
            None,
            Some(key("next", "bmV4dA==")),
            Arrival::Connection,
            "transfer",
        ),
        ("example.com", TypeCode::IXFR, Opcode::QUERY, Some(3), ours(), Arrival::Connection, "transfer"),
        ("example.com", TypeCode::IXFR, Opcode::QUERY, Some(7), ours(), Arrival::Connection, "NOERROR with 1"),
        ("example.com", TypeCode::IXFR, Opcode::QUERY, Some(3), ours(), Arrival::Datagram, "NOERROR with 1"),
        ("example.com", TypeCode::AXFR, Opcode::QUERY, None, ours(), Arrival::Datagram, "REFUSED with 0"),
        ("example.com", TypeCode::A, Opcode::QUERY, None, ours(), Arrival::Connection, "REFUSED with 0"),
        ("example.com", TypeCode::SOA, Opcode::UPDATE, None, ours(), Arrival::Connection, "NOTIMP with 0"),
        ("example.com", TypeCode::SOA, Opcode::NOTIFY, None, ours(), Arrival::Connection, "NOTIMP with 0"),
        ("example.com", TypeCode::AXFR, Opcode::QUERY, None, None, Arrival::Connection, "REFUSED"),
        ("other.com", TypeCode::AXFR, Opcode::QUERY, None, None, Arrival::Connection, "REFUSED"),
        ("other.com", TypeCode::AXFR, Opcode::QUERY, None, ours(), Arrival::Connection, "BADKEY"),
        ("www.example.com", TypeCode::AXFR, Opcode::QUERY, None, ours(), Arrival::Connection, "BADKEY"),
        (
            "example.com",
            TypeCode::AXFR,
            Opcode::QUERY,
            None,
            Some(key("other", "c2VjcmV0")),
            Arrival::Connection,
            "BADKEY",
        ),
        (
            "example.com",
            TypeCode::AXFR,
            Opcode::QUERY,
            None,
            Some(key("seed", "b3RoZXI=")),
            Arrival::Connection,
            "BADSIG",
        ),
    ] {
        assert_eq!(said(zone, kind, opcode, since, with, by), expected, "{zone} {kind} {opcode:?} {since:?} {by:?}");
    }
}

#[test]
fn answers_and_rubbish_are_not_answered() {
    let mut answer = question("example.com", TypeCode::SOA, Opcode::QUERY, None);
    answer[2] |= 0x80;
    assert!(matches!(reply(&answer, Arrival::Datagram, &zones(1, 1), NOW), SeedReply::Silence));
    assert!(matches!(reply(b"GET", Arrival::Connection, &zones(1, 1), NOW), SeedReply::Silence));
}

#[test]
fn a_zone_of_any_size_is_read_back_from_its_messages() {
    for (count, bytes) in [(0, 0), (1, 60_000), (700, 100), (12, 19_000)] {
        let (request, mut asking) =
            sign_request(question("example.com", TypeCode::AXFR, Opcode::QUERY, None), &key("seed", "c2VjcmV0"), NOW);
        let SeedReply::Transfer(fetch) = reply(&request, Arrival::Connection, &zones(count, bytes), NOW) else {
            panic!("no transfer")
        };
        let mut pages = Pages::new(&fetch);
        let mut answering = fetch.conversation;
        let mut reader = TransferReader::new(name("example.com"), None);
        let mut events = Vec::new();
        while let Some(page) = pages.next().unwrap() {
            let signed = answering.sign(page, NOW);
            assert!(signed.len() <= LONGEST_MESSAGE);
            for entry in DnsMessage::read(&asking.verify(&signed, NOW).unwrap()).unwrap().answers {
                reader.take(entry.into_record().unwrap(), false, &mut events).unwrap();
            }
        }
        let added = events.iter().filter(|event| matches!(event, TransferEvent::Added(_))).count();
        assert_eq!((added, reader.is_complete()), (count, true), "{count} {bytes}");
    }
}

#[test]
fn a_record_that_no_message_can_carry_ends_the_transfer() {
    let (request, _) =
        sign_request(question("example.com", TypeCode::AXFR, Opcode::QUERY, None), &key("seed", "c2VjcmV0"), NOW);
    let SeedReply::Transfer(fetch) = reply(&request, Arrival::Connection, &zones(1, 65_200), NOW) else {
        panic!("no transfer")
    };
    let mut pages = Pages::new(&fetch);
    assert!(pages.next().unwrap().is_some());
    assert!(pages.next().is_err());
}

proptest! {
    #[test]
    fn whatever_bytes_come_nothing_of_a_zone_goes_out(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let SeedReply::Message(answer) = reply(&bytes, Arrival::Connection, &zones(1, 1), NOW) {
            prop_assert_eq!(DnsMessage::read(&answer).map(|answer| answer.answers.len()), Ok(0));
        }
    }

    #[test]
    fn a_request_with_changed_bytes_gets_nothing_of_a_zone(
        kind in prop::sample::select(vec![TypeCode::AXFR, TypeCode::SOA, TypeCode::IXFR]),
        changes in prop::collection::vec((0_usize..200, 1_u8..), 1..4),
    ) {
        let (mut request, _) = sign_request(question("example.com", kind, Opcode::QUERY, Some(3)), &key("seed", "c2VjcmV0"), NOW);
        let before = request.clone();
        for (at, flip) in changes {
            let at = at % request.len();
            request[at] ^= flip;
        }
        // The id and the case of names may change.
        prop_assume!(!request[2..].eq_ignore_ascii_case(&before[2..]));
        let got = reply(&request, Arrival::Connection, &zones(1, 1), NOW);
        prop_assert!(!matches!(got, SeedReply::Transfer(_)));
        if let SeedReply::Message(answer) = got {
            let answers = crate::tsig::split(&answer).ok().and_then(|(answer, _)| DnsMessage::read(&answer).ok()).map(|answer| answer.answers.len());
            prop_assert_eq!(answers, Some(0));
        }
    }
}
