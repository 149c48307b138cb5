use proptest::prelude::*;

use super::*;
use crate::message::{DnsMessage, Header, MessageBuilder, Opcode, Question, TypeCode};

const NOW: u64 = 1_800_000_000;

fn key(secret: &str) -> HmacKey {
    HmacKey::new("xfer.example", HmacAlgorithm::Sha256, secret).unwrap()
}

fn message(id: u16) -> Vec<u8> {
    let question = Question::of(DomainName::parse("example.com").unwrap(), TypeCode::AXFR);
    MessageBuilder::new(Header::asking(id, Opcode::QUERY), Some(&question)).finish()
}

fn checked(bytes: &[u8], secret: &str, now: u64) -> Checked {
    check_request(bytes, |_| Some(key(secret)), now).unwrap()
}

fn fault(error: VerifyError) -> SignatureFault {
    match error {
        VerifyError::Fault(fault) => fault,
        VerifyError::Malformed(why) => panic!("{why}"),
    }
}

#[test]
fn a_request_is_believed_by_who_has_the_key_and_so_is_every_message_of_its_answer() {
    let (sent, mut asking) = sign_request(message(7), &key("c2VjcmV0"), NOW);
    assert_eq!(sent.len(), message(7).len() + signature_width(&key("c2VjcmV0")));

    let Checked::Verified(read, mut answering) = checked(&sent, "c2VjcmV0", NOW + 5) else { panic!("not verified") };
    assert_eq!(read, message(7));

    for _ in 0..3 {
        let answer = answering.sign(message(7), NOW + 5);
        assert_eq!(asking.verify(&answer, NOW + 6), Ok(message(7)));
    }
    assert!(asking.is_sealed());
}

#[test]
fn messages_without_a_signature_count_once_the_next_one_holds() {
    let (sent, mut asking) = sign_request(message(7), &key("c2VjcmV0"), NOW);
    let Checked::Verified(_, mut answering) = checked(&sent, "c2VjcmV0", NOW) else { panic!("not verified") };
    assert_eq!(fault(asking.clone().verify(&message(7), NOW).unwrap_err()), SignatureFault::Unsigned);
    asking.verify(&answering.sign(message(7), NOW), NOW).unwrap();

    asking.verify(&message(7), NOW).unwrap();
    assert!(!asking.is_sealed());
    let over_both = {
        let mut record = unsigned_record(&answering.key, NOW, 7);
        record.signature =
            answering.key.sign(&[&prefixed(&answering.previous), &message(7), &message(7), &record.timers()]);
        let mut bytes = message(7);
        record.append_to(&mut bytes);
        bytes
    };
    asking.verify(&over_both, NOW).unwrap();

    assert!(asking.is_sealed());
    for _ in 0..UNSIGNED_AT_MOST {
        asking.verify(&message(7), NOW).unwrap();
    }
    assert_eq!(fault(asking.verify(&message(7), NOW).unwrap_err()), SignatureFault::Unsigned);
}

#[test]
fn what_is_wrong_with_a_signature_reaches_who_signed() {
    let told = |with: &str, known: bool, now| {
        let (sent, mut asking) = sign_request(message(7), &key("c2VjcmV0"), NOW);
        let found = |_: &DomainName| known.then(|| key(with));
        let Checked::Refused(rejection) = check_request(&sent, found, now).unwrap() else { panic!("taken") };
        fault(asking.verify(&rejection.seal(message(7)), NOW).unwrap_err())
    };

    let name = DomainName::parse("xfer.example").unwrap();
    assert_eq!(told("c2VjcmV0", false, NOW), SignatureFault::BadKey(name.clone()));
    assert_eq!(told("b3RoZXI=", true, NOW), SignatureFault::BadSignature(name));
    assert_eq!(told("c2VjcmV0", true, NOW + 600), SignatureFault::BadTime { server: NOW + 600, ours: NOW });
}

#[test]
fn an_answer_of_another_time_key_or_question_is_not_believed() {
    let (sent, asking) = sign_request(message(7), &key("c2VjcmV0"), NOW);
    let Checked::Verified(_, answering) = checked(&sent, "c2VjcmV0", NOW) else { panic!("not verified") };
    let answer = answering.clone().sign(message(7), NOW);

    let late = asking.clone().verify(&answer, NOW + 301).unwrap_err();
    assert_eq!(fault(late), SignatureFault::BadTime { server: NOW, ours: NOW + 301 });
    let (_, mut another) = sign_request(message(8), &key("c2VjcmV0"), NOW);
    assert_eq!(fault(another.verify(&answer, NOW).unwrap_err()), SignatureFault::Forged);
    let mut again = asking.clone();
    again.verify(&answer, NOW).unwrap();
    assert_eq!(fault(again.verify(&answer, NOW).unwrap_err()), SignatureFault::Forged);
}

#[test]
fn a_signature_that_does_not_stand_last_is_refused() {
    let (mut twice, _) = sign_request(message(7), &key("c2VjcmV0"), NOW);
    let record = split(&twice).unwrap().1.unwrap();
    record.append_to(&mut twice);

    assert!(matches!(split(&twice), Err(MalformedMessage::Value(_))));
}

proptest! {
    #[test]
    fn no_changed_byte_goes_unnoticed(at in 0_usize..200, flip in 1_u8..) {
        let (mut sent, _) = sign_request(message(7), &key("c2VjcmV0"), NOW);
        let at = at % sent.len();
        sent[at] ^= flip;
        // The id is not signed but repeated in the record, and the case of names does not count.
        let taken = matches!(check_request(&sent, |_| Some(key("c2VjcmV0")), NOW), Ok(Checked::Verified(..)));
        prop_assert!(!taken || at < 2 || flip == 0x20);
    }

    #[test]
    fn any_bytes_are_checked_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = check_request(&bytes, |_| Some(key("c2VjcmV0")), NOW);
        let _ = DnsMessage::read(&bytes);
    }
}
