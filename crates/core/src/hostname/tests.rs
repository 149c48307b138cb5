use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn zone(text: &str) -> ZoneName {
    ZoneName::parse(text).unwrap()
}

fn refusal(text: &str) -> String {
    Hostname::parse(text).unwrap_err().to_string()
}

#[test]
fn case_trailing_dot_and_punycode_are_one_spelling() {
    assert_eq!(name("WWW.Example.COM.").as_str(), "www.example.com");
    assert_eq!(name("bücher.example").as_str(), "xn--bcher-kva.example");
    assert_eq!(name("BÜCHER.example"), name("XN--BCHER-KVA.example"));
    assert_eq!(name("bücher。example").as_str(), "xn--bcher-kva.example");
    assert_eq!(zone("Straße.DE.").as_str(), "xn--strae-oqa.de");
}

#[test]
fn underscores_hyphens_and_digits_are_names() {
    for text in
        ["_acme-challenge.example.com", "_sip._tcp.example.com", "r3---sn.example.com", "7.example.com", "a_b.c"]
    {
        assert_eq!(name(text).as_str(), text);
    }
}

#[test]
fn a_wildcard_is_only_the_whole_first_label() {
    assert!(name("*.example.com").is_wildcard());
    assert!(!name("www.example.com").is_wildcard());
    for text in ["*", "*.", "a.*.example.com", "*a.example.com", "*.*.example.com"] {
        assert!(Hostname::parse(text).is_err(), "{text}");
    }
    assert!(ZoneName::parse("*.example.com").is_err());
}

#[test]
fn a_name_is_in_a_zone_at_label_boundaries_only() {
    let example = zone("Example.com");

    for text in ["example.com", "www.example.com", "a.b.EXAMPLE.com.", "*.example.com"] {
        assert!(name(text).is_in(&example), "{text}");
    }
    for text in ["badexample.com", "com", "example.com.org", "ample.com"] {
        assert!(!name(text).is_in(&example), "{text}");
    }
    assert!(zone("eu.example.com").is_in(&example) && !example.is_in(&zone("eu.example.com")));
    assert!(example.apex().is_in(&example));
}

#[test]
fn labels_come_from_left_to_right() {
    assert_eq!(name("*.a.example.com").labels().collect::<Vec<_>>(), ["*", "a", "example", "com"]);
    assert_eq!(zone("example.com").labels().next_back(), Some("com"));
}

#[test]
fn the_refusal_says_what_to_change() {
    assert_eq!(refusal("@"), "hostname \"@\" is not valid: write the zone's name itself instead of @");
    assert!(refusal("").contains("it is empty"));
    assert!(refusal("a..example.com").contains("nothing between two dots"));
    assert!(refusal("a b.example.com").contains("the part \"a b\" holds something else"));
    assert!(refusal("-a.example.com").contains("begins or ends with a hyphen"));
    assert!(refusal("a-.example.com").contains("begins or ends with a hyphen"));
    assert!(refusal("http://example.com").contains("holds something else"));
    assert!(refusal("xn--a.example").contains("not a valid international name"));
    assert!(refusal(&format!("{}.com", "a".repeat(64))).contains("longer than 63"));
    assert!(refusal(&format!("{}com", "abcdefg.".repeat(40))).contains("longer than 253"));
    assert!(refusal(&format!("*.{}", "a.".repeat(127))).contains("longer than 253"));
    assert!(refusal("a.*.b").contains("* may only be the whole first label"));
}

#[test]
fn a_stored_name_is_checked_when_read() {
    assert!(serde_json::from_str::<Hostname>(r#""a b""#).is_err());
    assert_eq!(serde_json::from_str::<ZoneName>(r#""A.B""#).unwrap(), zone("a.b"));
    assert_eq!(serde_json::to_string(&name("A.b")).unwrap(), r#""a.b""#);
}

proptest! {
    #[test]
    fn any_text_is_refused_or_read_in_a_spelling_that_reads_as_itself(text in "\\PC{0,30}(\\.\\PC{0,10}){0,3}") {
        if let Ok(parsed) = Hostname::parse(&text) {
            prop_assert_eq!(&Hostname::parse(parsed.as_str()).unwrap(), &parsed);
            prop_assert!(parsed.as_str().len() <= LONGEST_NAME && parsed.labels().all(|l| !l.is_empty()));
            prop_assert!(!parsed.as_str().ends_with('.') && parsed.as_str().is_ascii());
        }
    }

    #[test]
    fn ordinary_names_are_read_in_any_case(text in "[a-zA-Z0-9_]{1,20}(\\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?){0,4}") {
        prop_assume!(!text.to_ascii_lowercase().contains("xn--"));

        prop_assert_eq!(name(&text), name(&text.to_ascii_uppercase()));
        prop_assert_eq!(name(&format!("{text}.")).to_string(), text.to_ascii_lowercase());
    }

    #[test]
    fn a_name_put_before_a_zone_is_in_it(label in "[a-z0-9]{1,10}", apex in "[a-z]{1,10}\\.[a-z]{2,6}") {
        let (below, beside) = (name(&format!("{label}.{apex}")), name(&format!("{label}{apex}")));

        prop_assert!(below.is_in(&zone(&apex)) && !beside.is_in(&zone(&apex)));
    }
}
