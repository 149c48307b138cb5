//! Every type with parts, as text and as parts.

use super::*;

/// A value of each type that has parts, as zone files have it.
const VALUES: [(RecordType, &str); 13] = [
    (RecordType::Srv, "10 5 5060 sip.example.com"),
    (RecordType::Caa, "0 issue \"letsencrypt.org\""),
    (RecordType::Cert, "1 0 8 TUlJQQ=="),
    (RecordType::Dnskey, "257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0d"),
    (RecordType::Ds, "42 13 2 abcd"),
    (RecordType::Https, "1 . alpn=\"h3,h2\""),
    (RecordType::Loc, "52 22 23.000 N 4 53 32.000 E -2m 1m 10000m 10m"),
    (RecordType::Naptr, "10 100 \"S\" \"SIP+D2U\" \"\" _sip._udp.example.com"),
    (RecordType::Smimea, "3 0 0 abcd"),
    (RecordType::Sshfp, "4 2 abcd"),
    (RecordType::Svcb, "0 svc.example.net"),
    (RecordType::Tlsa, "3 1 1 abcd"),
    (RecordType::Uri, "1 \"https://example.com/a\""),
];

#[test]
fn every_type_with_parts_has_a_value_here() {
    let here: Vec<RecordType> = VALUES.iter().map(|(kind, _)| *kind).collect();

    assert!(RecordType::ALL.into_iter().filter(|kind| kind.has_data()).all(|kind| here.contains(&kind)));
}

#[test]
fn a_value_is_written_as_it_was_read_from_text() {
    for (kind, text) in VALUES {
        let value = Data::read_text(kind, text, None).unwrap_or_else(|| panic!("{kind} {text} is read"));

        assert_eq!(value.to_text(), text, "{kind}");
    }
}

#[test]
fn a_value_is_read_back_from_its_parts() {
    for (kind, text) in VALUES {
        let value = Data::read_text(kind, text, None).unwrap_or_else(|| panic!("{kind} {text} is read"));

        assert_eq!(Data::read(kind, &value.to_json()), Some(value), "{kind}");
    }
}

#[test]
fn values_that_mean_the_same_are_equal() {
    for (kind, one, other) in [
        (RecordType::Srv, "10 5 5060 Sip.Example.COM.", "10 5 5060 sip.example.com"),
        (RecordType::Ds, "42 13 2 AB CD", "42 13 2 abcd"),
        (RecordType::Loc, "52 22 23 N 4 53 32 E -2m", "52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m"),
        (RecordType::Svcb, "1 . ALPN=h3", "1 . alpn=\"h3\""),
    ] {
        assert_eq!(Data::read_text(kind, one, None), Data::read_text(kind, other, None), "{kind}");
        assert!(Data::read_text(kind, one, None).is_some(), "{kind}");
    }
}

#[test]
fn a_priority_may_stand_beside_the_text() {
    let beside = Data::read_text(RecordType::Srv, "5 5060 sip.example.com", Some(10));

    assert_eq!(beside, Data::read_text(RecordType::Srv, "10 5 5060 sip.example.com", None));
}

#[test]
fn what_is_missing_or_out_of_range_is_no_value() {
    for (kind, text) in [
        (RecordType::Srv, "10 5 65536 sip.example.com"),
        (RecordType::Caa, "256 issue \"ca.example\""),
        (RecordType::Tlsa, "3 1"),
        (RecordType::Loc, "91 0 0 N 4 0 0 E 0m"),
        (RecordType::A, "192.0.2.1"),
    ] {
        assert_eq!(Data::read_text(kind, text, None), None, "{kind} {text}");
    }
}
