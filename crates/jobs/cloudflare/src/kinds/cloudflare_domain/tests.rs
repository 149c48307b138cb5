use serde_json::{from_value, json};

use super::*;

fn domain(name: &str, zone: Option<&str>, is_default: bool) -> CloudflareDomain {
    from_value(json!({
        "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareDomain",
        "metadata": { "name": name.replace('.', "-") },
        "spec": { "domain": name, "isDefault": is_default },
        "status": { "zoneId": zone, "plan": "pro" },
    }))
    .unwrap()
}

fn resolved(domains: &[CloudflareDomain], name: &str) -> Option<String> {
    let found = resolve_zone(domains.iter(), &Hostname::parse(name).unwrap())?;
    Some(found.spec.domain.clone())
}

fn hint(domain: Option<&str>, name: &str) -> ZoneHint {
    ZoneHint { id: None, domain: domain.map(str::to_owned), name: name.to_owned() }
}

#[test]
fn the_longest_domain_wins_at_a_label_boundary() {
    let domains = [domain("example.com", Some("z1"), false), domain("eu.example.com", Some("z2"), false)];

    assert_eq!(resolved(&domains, "a.eu.example.com").as_deref(), Some("eu.example.com"));
    assert_eq!(resolved(&domains, "xeu.example.com").as_deref(), Some("example.com"));
    assert_eq!(resolved(&domains, "eu.example.com").as_deref(), Some("eu.example.com"));
    assert_eq!(resolved(&domains, "example.org"), None);
}

#[test]
fn case_trailing_dot_and_punycode_do_not_matter() {
    let domains = [domain("Example.COM", Some("z1"), false), domain("bücher.example", Some("z2"), false)];

    assert_eq!(resolved(&domains, "WWW.Example.COM.").as_deref(), Some("Example.COM"));
    assert_eq!(resolved(&domains, "www.xn--bcher-kva.example").as_deref(), Some("bücher.example"));
}

#[test]
fn a_domain_without_zone_is_passed_by_and_the_default_takes_what_is_left() {
    let domains = [domain("eu.example.com", None, false), domain("example.com", Some("z1"), true)];

    assert_eq!(resolved(&domains, "a.eu.example.com").as_deref(), Some("example.com"));
    assert_eq!(resolved(&domains, "elsewhere.net").as_deref(), Some("example.com"));
}

#[test]
fn the_zone_comes_with_its_name_and_what_its_plan_allows() {
    let domains = [domain("example.com", Some("z1"), false)];

    let zone = zone_of(domains.iter(), &hint(None, "www.example.com")).unwrap();

    assert_eq!((zone.id.as_str(), zone.name.unwrap().as_str(), zone.comment_limit), ("z1", "example.com", 500));
}

#[test]
fn a_missing_zone_says_what_to_do() {
    let domains = [domain("example.com", None, false)];

    let pending = zone_of(domains.iter(), &hint(Some("example.com"), "www.example.com")).unwrap_err();
    let unknown = zone_of(domains.iter(), &hint(None, "www.example.org")).unwrap_err();

    assert_eq!(pending.message, "CloudflareDomain example-com has no zone id yet; its own conditions say why");
    assert_eq!(
        unknown.message,
        "no CloudflareDomain covers www.example.org; create one for its zone, or say spec.cloudflare.zoneId"
    );
}

fn zone_entry() -> Entry<Zone> {
    Entry::read(json!({
        "id": "z1", "name": "example.com", "status": "active", "account": { "id": "a1", "name": "Acme" },
        "plan": { "legacy_id": "free", "name": "Free Website" }, "name_servers": ["a.ns.example", "b.ns.example"],
    }))
    .unwrap()
}

#[test]
fn a_found_zone_fills_the_status() {
    let present = [zone_entry()];
    let view =
        StatusView { resolved: None, present: &present, problem: None, checked_at: Some("2026-01-01T00:00:00Z") };

    assert_eq!(
        domain("example.com", None, false).status(&view),
        json!({
            "state": "Ready", "message": "the zone example.com is there", "zoneId": "z1", "zoneName": "example.com",
            "zoneStatus": "active", "plan": "free", "accountId": "a1", "nameServers": ["a.ns.example", "b.ns.example"],
            "lastVerifiedTime": "2026-01-01T00:00:00Z",
        })
    );
}

#[test]
fn a_zone_that_is_not_there_yet_is_pending_and_keeps_what_was_known() {
    let known = domain("example.com", Some("z1"), false);
    let missing = known.missing();

    let status = known.status(&StatusView { resolved: None, present: &[], problem: Some(&missing), checked_at: None });

    assert_eq!((&status["state"], &status["zoneId"]), (&json!("Pending"), &json!("z1")));
}

#[test]
fn settings_that_are_not_applied_are_said_to_be_unknown() {
    let mut with_settings = domain("example.com", None, false);
    with_settings.spec.ssl = Some(Box::new(from_value(json!({ "mode": "full_strict" })).unwrap()));
    let present = [zone_entry()];

    let status =
        with_settings.status(&StatusView { resolved: None, present: &present, problem: None, checked_at: None });

    assert_eq!(status["configSyncStatus"], json!({ "ssl": "Unknown" }));
    assert_eq!(status["state"], json!("Ready"));
}

#[test]
fn a_zone_of_another_name_is_refused() {
    let problem = domain("example.org", None, false).observed(&zone_entry(), &Resolved::default()).unwrap_err();

    assert_eq!(problem.message, "zone z1 is example.com, not example.org; correct domain or zoneId");
}

#[test]
fn a_zone_that_is_not_delegated_yet_says_where_to() {
    let mut zone = zone_entry();
    zone.item.status = Some("pending".into());

    let status = domain("example.com", None, false).status(&StatusView {
        resolved: None,
        present: &[zone],
        problem: None,
        checked_at: None,
    });

    assert_eq!(status["state"], json!("Ready"));
    assert_eq!(
        status["message"],
        json!(
            "the zone example.com is pending at Cloudflare: its records count once it is delegated to a.ns.example and \
             b.ns.example"
        )
    );
}
