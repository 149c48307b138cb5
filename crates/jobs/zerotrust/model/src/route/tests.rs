use proptest::prelude::*;

use super::*;
use crate::fixture::{http_route, route};

fn name(text: &str) -> Result<String, String> {
    hostname(text).map(|name| name.to_string()).map_err(|problem| problem.message)
}

#[test]
fn scenario_15_what_is_no_hostname_is_refused_with_what_to_write() {
    let long = format!("{}.example.com", ["a".repeat(60).as_str(); 4].join("."));
    for (text, told) in [
        ("https://x.y/", "without a scheme"),
        ("a..b", "nothing between two dots"),
        (long.as_str(), "longer than 253"),
        ("x.y:443", "without a port"),
        ("x.y/path", "without a path"),
        ("a.example.com,b.example.com", "write one name"),
        ("a.example.com b.example.com", "write one name"),
        ("192.0.2.1", "it is an address"),
        ("2001:db8::1", "it is an address"),
        ("localhost", "too few parts"),
        ("*.com", "too few parts"),
        ("*", "too few parts"),
        ("a.*.example.com", "whole first label"),
        ("my_app.example.com", "letters, digits and hyphens"),
        ("-a.example.com", "hyphen"),
        ("bücher.example.com", "punycode, as xn--bcher-kva.example.com"),
        (&format!("{}.example.com", "a".repeat(64)), "longer than 63"),
        (".example.com", "dots"),
    ] {
        let said = name(text).unwrap_err();
        assert!(said.contains(told), "{text}: {said}");
        assert_eq!(hostname(text).unwrap_err().reason, "InvalidHostname");
    }
}

#[test]
fn names_are_read_in_one_spelling() {
    assert_eq!(name(" App.Example.COM. ").unwrap(), "app.example.com");
    assert_eq!(name("*.Example.com").unwrap(), "*.example.com");
    assert_eq!(name("xn--bcher-kva.example.com").unwrap(), "xn--bcher-kva.example.com");
}

#[test]
fn scenario_15_a_name_of_254_characters_is_refused_and_one_of_253_is_not() {
    let labels = |last: usize| format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(last));

    assert_eq!((labels(61).len(), labels(62).len()), (253, 254));
    assert!(name(&labels(61)).is_ok());
    assert!(name(&labels(62)).is_err());
}

#[test]
fn scenario_16_a_route_without_a_hostname_says_so() {
    let input = RouteInput::read(&http_route(&[("enabled", "true"), ("hostname", "  ")]));

    let problem = input.hostname().unwrap_err();

    assert_eq!(problem.reason, "InvalidHostname");
    assert!(problem.message.contains("cfzt.cloudflare.com/hostname is missing"));
}

#[test]
fn a_route_is_published_when_it_says_true_and_left_alone_otherwise() {
    let enabled = |value: &str| RouteInput::read(&http_route(&[("enabled", value)])).enabled();

    assert_eq!((enabled("true"), enabled(" True ")), (Enabled::Yes, Enabled::Yes));
    assert_eq!((enabled("false"), enabled("")), (Enabled::No, Enabled::No));
    assert_eq!(enabled("yes"), Enabled::Unclear("yes".to_owned()));
    assert_eq!(RouteInput::read(&http_route(&[])).enabled(), Enabled::No);
}

#[test]
fn ux_c2_a_misspelt_enabled_neither_publishes_nor_takes_down() {
    let misspelt = RouteInput::read(&http_route(&[("enable", "true")]));
    let said = RouteInput::read(&http_route(&[("enable", "true"), ("enabled", "false")]));

    assert_eq!(misspelt.enabled(), Enabled::Misspelt("enable".to_owned()));
    assert_eq!(misspelt.unclear().unwrap().reason, "UnknownAnnotation");
    assert_eq!((said.enabled(), said.unclear()), (Enabled::No, None));
    assert_eq!(RouteInput::read(&http_route(&[("colour", "red")])).enabled(), Enabled::No);
}

#[test]
fn older_names_count_less_than_the_present_ones() {
    let input = route(&[("accessApp", "TRUE"), ("allowEmails", "a@x, b@x,,"), ("access.allowEmails", "c@x")]);

    assert_eq!(input.input("access.enabled"), Some("true"));
    assert_eq!(input.input("access.allowEmails"), Some("c@x"));
    assert_eq!(input.aliases.get("access.enabled"), Some(&"accessApp"));
    assert_eq!(input.aliases.get("access.allowEmails"), None);
}

#[test]
fn every_older_name_stands_for_its_present_one() {
    for (alias, value, present) in [
        ("accessApp", "true", "access.enabled"),
        ("allowGroups", "g", "access.allowGroups"),
        ("allowEmails", "a@x", "access.allowEmails"),
        ("sessionDuration", "8h", "access.sessionDuration"),
        ("serviceToken", "true", "serviceToken.enabled"),
        ("originService", "http://a:80", "origin.url"),
        ("no-tls-verify", "true", "origin.noTLSVerify"),
        ("tls-timeout", "15", "origin.tlsTimeout"),
        ("origin-server-name", "a", "origin.originServerName"),
        ("ca-pool", "/ca", "origin.caPool"),
        ("http2-origin", "true", "origin.http2Origin"),
        ("match-sni-to-host", "true", "origin.matchSNIToHost"),
    ] {
        let input = route(&[(alias, value)]);
        assert_eq!(input.input(present), Some(value), "{alias}");
        assert!(input.unknown.is_empty(), "{alias}");
    }
}

#[test]
fn outputs_are_no_inputs_and_what_nobody_reads_is_noticed() {
    let mut object = http_route(&[("accessAppId", "a1"), ("lastReconcile", "now"), ("acess.enabled", "true")]);
    object.metadata.annotations.get_or_insert_default().insert("kopf.cfzt.cloudflare.com/last".into(), "x".into());
    object.metadata.annotations.get_or_insert_default().insert("example.com/hostname".into(), "x".into());

    let input = RouteInput::read(&object);

    assert_eq!(input.inputs, BTreeMap::new());
    assert_eq!(input.outputs.keys().collect::<Vec<_>>(), ["accessAppId", "lastReconcile"]);
    assert_eq!(input.unknown, ["acess.enabled"]);
}

#[test]
fn a_route_may_refuse_the_finalizer_and_may_adopt() {
    assert!(route(&[]).allows_finalizer() && !route(&[]).adopts());
    assert!(!route(&[("finalizer", "No")]).allows_finalizer());
    assert!(route(&[("adopt", "yes")]).adopts());
}

proptest! {
    #[test]
    fn any_text_is_a_name_in_one_spelling_or_is_refused(text in "\\PC{0,60}") {
        if let Ok(name) = hostname(&text) {
            prop_assert_eq!(hostname(name.as_str()).unwrap(), name.clone());
            prop_assert!(name.as_str().contains('.') && name.as_str().len() <= 253);
        }
    }
}
