use proptest::prelude::*;

use super::*;
use crate::TypeCode;

fn data(kind: TypeCode, text: &str) -> RecordData {
    RecordData::parse(kind, text).unwrap_or_else(|why| panic!("{kind} {text}: {why}"))
}

#[test]
fn a_value_is_written_as_it_is_read() {
    for (kind, text) in [
        (TypeCode::A, "192.0.2.1"),
        (TypeCode::AAAA, "2001:db8::1"),
        (TypeCode::NS, "ns1.example.com."),
        (TypeCode::PTR, "host.example.com."),
        (TypeCode::MX, "10 mail.example.com."),
        (TypeCode::MX, "0 ."),
        (TypeCode::TXT, r#""v=spf1 -all""#),
        (TypeCode::TXT, r#""one" "" "say \"hi\" \\ \233;""#),
        (TypeCode::SRV, "10 20 5060 sip.example.com."),
        (TypeCode::CAA, r#"0 issue "ca.example; accounturi=https://ca.example/1""#),
        (TypeCode::CAA, r#"128 issuemail ";""#),
        (TypeCode::SOA, "ns1.example.com. hostmaster.example.com. 4294967295 3600 600 604800 60"),
        (TypeCode::DS, "12345 13 2 0a0b0c"),
        (TypeCode::DNSKEY, "257 3 13 AQID"),
        (TypeCode::CERT, "1 2 3 AQID"),
        (TypeCode::TLSA, "3 1 1 0a0b"),
        (TypeCode::SSHFP, "4 2 0a0b"),
        (TypeCode::URI, r#"10 1 "https://example.com/""#),
        (TypeCode::NAPTR, r#"100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" ."#),
        (TypeCode(65280), r"\# 3 0a0b0c"),
        (TypeCode(65280), r"\# 0"),
        (TypeCode::HTTPS, r"\# 3 000100"),
    ] {
        // The vocabulary of records writes host names without their last dot, so names in it come back with one.
        assert_eq!(data(kind, text).to_text(kind), text, "{kind}");
    }
}

#[test]
fn spellings_of_a_value_have_the_same_canonical_bytes() {
    for (kind, one, other) in [
        (TypeCode::AAAA, "2001:DB8::1", "2001:db8:0:0:0:0:0:1"),
        (TypeCode::CNAME, "Www.Example.COM", "www.example.com."),
        (TypeCode::MX, "10 MAIL.example.com", "10   mail.example.com."),
        (TypeCode::TXT, "word", "\"word\""),
        (TypeCode::SRV, "1 2 3 A.b", "1 2 3 a.b."),
        (TypeCode::A, "192.0.2.1", r"\# 4 C0000201"),
    ] {
        assert_eq!(data(kind, one).canonical(kind), data(kind, other).canonical(kind), "{kind}");
    }
    assert_ne!(
        data(TypeCode::TXT, "Word").canonical(TypeCode::TXT),
        data(TypeCode::TXT, "word").canonical(TypeCode::TXT)
    );
}

#[test]
fn a_value_that_is_none_is_refused_with_what_to_change() {
    for (kind, text, why) in [
        (TypeCode::A, "2001:db8::1", "IPv4"),
        (TypeCode::A, "192.0.2.256", "IPv4"),
        (TypeCode::AAAA, "192.0.2.1", "IPv6"),
        (TypeCode::CNAME, "a..b", "label"),
        (TypeCode::MX, "70000 mail", "65535"),
        (TypeCode::TXT, "\"open", "quote"),
        (TypeCode::TXT, "", "at least one"),
        (TypeCode::CAA, "0 is-sue \"x\"", "letters and digits"),
        (TypeCode::CAA, "0 issue x y", "one value"),
        (TypeCode::SOA, "a b 1 2 3 4", "five numbers"),
        (TypeCode::SRV, "1 2 a.example", "parts"),
        (TypeCode::DS, "1 2 3 xyz", "parts"),
        (TypeCode::HTTPS, "1 . alpn=h2", "\\#"),
        (TypeCode::A, r"\# 3 0a0b0c", "count"),
        (TypeCode(65280), r"\# 2 0a", "count"),
    ] {
        let said = RecordData::parse(kind, text).unwrap_err().to_string();
        assert!(said.contains(why), "{kind} {text}: {said}");
    }
}

#[test]
fn long_texts_are_cut_into_strings_and_keep_their_order() {
    let long = [vec![b'a'; 300], vec![b'b'; 300]].concat();

    let data = RecordData::txt([&long[..]]).unwrap();

    let widths: Vec<usize> = [255, 255, 90].into();
    assert_eq!(data.as_bytes().len(), widths.iter().sum::<usize>() + 3);
    assert_eq!((data.as_bytes()[0], data.as_bytes()[256], data.as_bytes()[512]), (255, 255, 90));
    assert_eq!(RecordData::txt([]), None);
    assert_eq!(RecordData::txt([&vec![0; LONGEST_DATA][..]]), None);
}

proptest! {
    #[test]
    fn any_text_comes_back_byte_for_byte(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..4)) {
        let data = RecordData::txt(texts.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(RecordData::parse(TypeCode::TXT, &data.to_text(TypeCode::TXT)).unwrap(), data);
    }

    #[test]
    fn any_data_that_is_taken_is_read_as_it_is_written(kind in prop::sample::select(vec![
        TypeCode::A, TypeCode::NS, TypeCode::SOA, TypeCode::MX, TypeCode::TXT, TypeCode::SRV, TypeCode::CAA, TypeCode::DS,
        TypeCode::NAPTR, TypeCode::URI, TypeCode::SSHFP, TypeCode(65280),
    ]), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(data) = RecordData::from_bytes(kind, &bytes) {
            let text = data.to_text(kind);
            let again = RecordData::parse(kind, &text);
            prop_assert!(again.is_ok_and(|again| again.canonical(kind) == data.canonical(kind)), "{} {}", kind, text);
        }
    }
}
