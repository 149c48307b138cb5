use portolan_core::{OwnerId, Severity};
use portolan_publication::{Desired, Record};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{ACCOUNT, Shelf, TUNNEL, ZONE, http_route, reason, route};

/// The tenant of the worked examples.
fn examples() -> Shelf {
    Shelf::with_tenant(json!({ "defaults": { "originService": "http://traefik.traefik.svc:80" } }))
}

fn owner() -> OwnerId {
    OwnerId::derive("test")
}

/// What Cloudflare is asked for.
fn asked(shelf: &Shelf, annotations: &[(&str, &str)]) -> Desired {
    shelf.wanted(&route(annotations)).unwrap().spec.desired(&owner()).unwrap()
}

fn notices(shelf: &Shelf, annotations: &[(&str, &str)], zone: Option<&str>) -> Vec<&'static str> {
    let wanted = shelf.wanted_in(&route(annotations), zone).unwrap();
    assert!(wanted.notices.iter().all(|notice| notice.severity == Severity::Warning));
    wanted.notices.iter().map(|notice| notice.reason).collect()
}

#[test]
fn scenario_01_a_plain_route_asks_for_a_rule_and_a_cname_and_nothing_else() {
    let desired = asked(&examples(), &[]);

    let rule = desired.rule.unwrap();
    assert_eq!((rule.tunnel_id.as_str(), rule.service.as_str()), (TUNNEL, "http://traefik.traefik.svc:80"));
    assert!(rule.origin_request.is_empty());
    let target = format!("{TUNNEL}.cfargotunnel.com");
    assert_eq!(desired.record, Some(Record::Cname { zone_id: ZONE.to_owned(), target }));
    assert_eq!((desired.access, desired.token, desired.redirect, desired.adopt), (None, None, false, false));
    assert_eq!((desired.hostname.as_str(), desired.account_id.as_str()), ("app.example.com", ACCOUNT));
    assert_eq!(desired.mark.write("", 100), format!("[managed:HTTPRoute/default/app#{}]", owner()));
}

#[test]
fn scenario_02_older_annotations_ask_for_an_application_with_two_addresses() {
    let emails = "admin@example.com,manager@example.com";
    let desired = asked(&examples(), &[("accessApp", "true"), ("allowEmails", emails), ("sessionDuration", "8h")]);

    let access = desired.access.unwrap();
    assert_eq!((access.name.as_str(), access.policy_name.as_str()), ("app", "app-allow-policy"));
    assert_eq!(access.emails, ["admin@example.com", "manager@example.com"]);
    assert_eq!(
        Value::from(access.settings),
        json!({
            "session_duration": "8h", "auto_redirect_to_identity": false, "enable_binding_cookie": false,
            "http_only_cookie_attribute": true, "same_site_cookie_attribute": "lax", "skip_interstitial": false,
            "app_launcher_visible": true, "service_auth_401_redirect": false,
        })
    );
    assert!(access.groups.is_empty() && access.policy_ids.is_empty() && access.policy_names.is_empty());
}

#[test]
fn scenario_03_a_group_and_a_token_ask_for_both() {
    let asked = asked(&examples(), &[("accessApp", "true"), ("allowGroups", "Engineering"), ("serviceToken", "true")]);

    let (access, token) = (asked.access.unwrap(), asked.token.unwrap());
    assert_eq!(
        (access.groups, access.service_policy_name.as_str()),
        (vec!["Engineering".to_owned()], "app-service-auth")
    );
    assert_eq!((token.name.as_str(), token.duration.as_str(), token.rotate), ("app-service-token", "8760h", None));
}

#[test]
fn every_setting_of_an_application_reaches_cloudflare_under_its_name() {
    let access = json!({ "accessApplication": {
        "enabled": true, "sessionDuration": "1h30m", "existingPolicyNames": ["Staff"], "existingPolicyIds": ["p1"],
        "autoRedirectToIdentity": true, "enableBindingCookie": true, "httpOnlyCookieAttribute": false,
        "sameSiteCookieAttribute": "strict", "logoUrl": "https://x/logo.png", "skipInterstitial": true,
        "appLauncherVisible": false, "serviceAuth401Redirect": true, "customDenyMessage": "no",
        "customDenyUrl": "https://x/no", "customNonIdentityDenyUrl": "https://x/machines" } });
    let access = asked(&examples().and_template("default/default", access), &[]).access.unwrap();

    assert_eq!((access.policy_ids, access.policy_names), (vec!["p1".to_owned()], vec!["Staff".to_owned()]));
    assert_eq!(
        Value::from(access.settings),
        json!({
            "session_duration": "1h30m", "auto_redirect_to_identity": true, "enable_binding_cookie": true,
            "http_only_cookie_attribute": false, "same_site_cookie_attribute": "strict",
            "logo_url": "https://x/logo.png", "skip_interstitial": true, "app_launcher_visible": false,
            "service_auth_401_redirect": true, "custom_deny_message": "no", "custom_deny_url": "https://x/no",
            "custom_non_identity_deny_url": "https://x/machines",
        })
    );
}

#[test]
fn scenario_12_the_hostname_stands_where_the_template_says_so() {
    let origin = json!({ "originService": { "url": "https://traefik:443", "httpHostHeader": "{{hostname}}",
        "originTLS": { "originServerName": "{{ hostname }}" } } });
    let rule = asked(&examples().and_template("default/default", origin), &[]).rule.unwrap();

    assert_eq!(rule.origin_request["originServerName"], "app.example.com");
    assert_eq!(rule.origin_request["httpHostHeader"], "app.example.com");
}

#[test]
fn scenario_13_a_backend_that_changes_changes_what_is_asked_for() {
    let shelf = Shelf::with_tenant(json!({}));
    let mut object = http_route(&[("enabled", "true"), ("hostname", "app.example.com")]);
    let before = shelf.wanted(&RouteInput::read(&object)).unwrap();
    object.spec.rules[0].backend_refs[0].namespace = Some("shop".to_owned());
    let after = shelf.wanted(&RouteInput::read(&object)).unwrap();

    let origin = |wanted: &WantedRoute| wanted.spec.desired(&owner()).unwrap().rule.unwrap().service;
    assert_eq!(origin(&before), "http://web.default.svc.cluster.local:8080");
    assert_eq!(origin(&after), "http://web.shop.svc.cluster.local:8080");
    assert_ne!(before.hash, after.hash);
}

#[test]
fn scenario_14_a_name_without_a_tunnel_asks_for_an_a_record_alone() {
    let shelf =
        examples().and_template("default/default", json!({ "dnsOnly": { "enabled": true, "staticIp": "192.0.2.7" } }));

    let desired = asked(&shelf, &[]);

    let record = Record::Address { zone_id: ZONE.to_owned(), ip: [192, 0, 2, 7].into(), ttl: 120, proxied: false };
    assert_eq!((desired.rule, desired.record), (None, Some(record)));
    let proxied = asked(&shelf, &[("dnsOnly.proxied", "true"), ("dnsOnly.ttl", "300")]);
    assert!(matches!(proxied.record, Some(Record::Address { ttl: 1, proxied: true, .. })));
}

#[test]
fn scenario_23_without_a_zone_an_open_name_goes_on_and_what_needs_one_waits() {
    let route = route(&[]);
    let wanted = examples().wanted_in(&route, None).unwrap();
    let shelf =
        examples().and_template("default/default", json!({ "dnsOnly": { "enabled": true, "staticIp": "10.0.0.7" } }));

    assert_eq!(wanted.spec.desired(&owner()).unwrap().record, None);
    assert_eq!(wanted.spec.operations.unwrap().cname_dns.unwrap().enabled, Some(false));
    assert_eq!(notices(&examples(), &[], None), ["DNSSkipped"]);
    assert_eq!(reason(shelf.wanted_in(&route, None)), "ZoneNotFound");
    let protected = self::route(&[("access.enabled", "true"), ("access.allowEmails", "a@example.com")]);
    let refused = examples().wanted_in(&protected, None).unwrap_err();
    assert_eq!((refused.class, refused.reason), (portolan_core::Class::Waiting, "ZoneNotFound"));
    assert!(examples().wanted_in(&protected, Some(ZONE)).is_ok());
}

#[test]
fn scenario_26_a_public_address_cannot_be_protected() {
    let dns = |ip: &str| {
        examples().and_template("default/default", json!({ "dnsOnly": { "enabled": true, "staticIp": ip } }))
    };
    let protected = [("access.enabled", "true"), ("access.allowEmails", "a@x")];

    assert_eq!(reason(dns("8.8.8.8").wanted(&route(&protected))), "ProtectionImpossible");
    for private in ["10.1.1.1", "172.16.0.1", "192.168.1.1", "100.64.1.1"] {
        let desired = asked(&dns(private), &protected);
        assert_eq!((desired.access, desired.token), (None, None), "{private}");
    }
    assert_eq!(notices(&dns("10.1.1.1"), &protected, Some(ZONE)), ["ProtectionIgnored"]);
}

#[test]
fn scenario_28_access_that_lets_nobody_pass_is_told() {
    assert_eq!(notices(&examples(), &[("access.enabled", "true")], Some(ZONE)), ["NoAccessPolicy"]);
    assert_eq!(notices(&examples(), &[("access.enabled", "true"), ("allowGroups", "everyone")], Some(ZONE)), [""; 0]);
    let desired = asked(&examples(), &[("access.enabled", "true")]).access.unwrap();
    assert!(desired.emails.is_empty() && desired.groups.is_empty());
}

#[test]
fn what_looks_like_protection_and_is_none_is_told() {
    let open = ("access.enabled", "false");
    assert_eq!(notices(&examples(), &[("allowEmails", "a@x"), open], Some(ZONE)), ["AccessNotEnabled"]);
    assert_eq!(notices(&examples(), &[("serviceToken", "true"), open], Some(ZONE)), ["AccessNotEnabled"]);
    assert_eq!(notices(&examples(), &[("allowEmails", "a@x")], Some(ZONE)), [""; 0]);
    assert_eq!(notices(&examples(), &[], Some(ZONE)), [""; 0]);
}

#[test]
fn ux_c2_whoever_says_who_may_pass_asks_for_access() {
    let access = asked(&examples(), &[("access.allowEmails", "a@x")]).access.unwrap();
    assert_eq!(access.emails, ["a@x"]);
    assert!(asked(&examples(), &[("allowGroups", "Engineering")]).access.is_some());
    assert!(asked(&examples(), &[("access.allowEmails", "a@x"), ("access.enabled", "false")]).access.is_none());
    assert!(asked(&examples(), &[]).access.is_none());
}

#[test]
fn ux_c3_a_service_token_asks_for_access() {
    let desired = asked(&examples(), &[("serviceToken.enabled", "true")]);

    assert!(desired.access.is_some() && desired.token.is_some());
    assert!(asked(&examples(), &[("serviceToken.enabled", "false")]).access.is_none());
    let open = asked(&examples(), &[("serviceToken.enabled", "true"), ("access.enabled", "false")]);
    assert!(open.access.is_none() && open.token.is_some());
}

#[test]
fn ux_c2_a_misspelt_key_is_an_error_that_names_the_right_one() {
    for (misspelt, meant) in [
        ("access.enable", "access.enabled"),
        ("accessEnabled", "access.enabled"),
        ("accessapp", "accessApp"),
        ("access.Enabled", "access.enabled"),
        ("acess.allowEmails", "access.allowEmails"),
        ("servicetoken.enabled", "serviceToken.enabled"),
    ] {
        let problem = examples().wanted(&route(&[(misspelt, "true")])).unwrap_err();
        assert_eq!((problem.class, problem.reason), (portolan_core::Class::Invalid, "UnknownAnnotation"), "{misspelt}");
        assert!(problem.message.contains(&format!("did you mean {meant}?")), "{}", problem.message);
    }
    let strange = examples().wanted(&route(&[("zzzzzzzzzzz", "true")])).unwrap_err();
    assert!(!strange.message.contains("did you mean"), "{}", strange.message);
}

#[test]
fn what_was_left_open_for_want_of_access_enabled_is_carried_out_anew() {
    let hash = |annotations: &[(&str, &str)]| examples().wanted(&route(annotations)).unwrap().hash;
    let settings = examples().settings(&route(&[("allowEmails", "a@x")])).unwrap();

    assert_eq!(
        settings.field(&crate::settings::ACCESS).layer.to_string(),
        "asked for by access.allowEmails, annotation allowEmails"
    );
    let said = [("allowEmails", "a@x"), ("access.enabled", "true")];
    assert_ne!(hash(&[("allowEmails", "a@x")]), hash(&said));
    assert!(examples().wanted(&route(&[])).unwrap().is_open() && !examples().wanted(&route(&said)).unwrap().is_open());
}

#[test]
fn an_address_of_the_inside_is_not_open() {
    let dns = |ip: &str| [("dnsOnly.enabled", "true"), ("dnsIp", ip)].map(|(key, value)| (key, value.to_owned()));
    let open = |ip: &str| {
        let dns = dns(ip);
        let said: Vec<(&str, &str)> = dns.iter().map(|(key, value)| (*key, value.as_str())).collect();
        examples().wanted(&route(&said)).unwrap().is_open()
    };

    assert!(open("192.0.2.1") && !open("10.0.0.1"));
}

#[test]
fn scenario_29_a_route_gets_nothing_of_another_routes_groups() {
    let shelf = examples();
    let first = asked(&shelf, &[("accessApp", "true"), ("allowGroups", "Engineering")]);
    let second = asked(&shelf, &[("accessApp", "true"), ("allowEmails", "a@x")]);

    assert_eq!(first.access.unwrap().groups, ["Engineering"]);
    assert!(second.access.unwrap().groups.is_empty());
}

#[test]
fn a_redirect_is_only_asked_for_where_a_user_asks_for_it() {
    let explicit = Shelf::with_tenant(json!({ "defaults": { "httpRedirect": true } }));

    assert!(!asked(&examples(), &[]).redirect);
    assert!(asked(&examples(), &[("origin.httpRedirect", "true")]).redirect);
    assert!(asked(&explicit, &[]).redirect);
    let materialised = examples().and_template("default/web", json!({ "originService": { "httpRedirect": true } }));
    assert!(!asked(&materialised, &[("template", "web")]).redirect, "older definitions wrote it into every template");
    assert!(!asked(&explicit, &[("origin.httpRedirect", "false")]).redirect);
    let spec = examples().wanted(&route(&[])).unwrap().spec;
    assert_eq!(spec.operations.unwrap().tunnel_route.unwrap().http_redirect, Some(true));
}

#[test]
fn another_tunnel_and_adoption_are_the_routes_choice() {
    let other = "99999999-2222-3333-4444-555555555555";
    let desired = asked(&examples(), &[("tunnelId", &other.to_uppercase()), ("adopt", "true")]);

    assert_eq!(desired.rule.unwrap().tunnel_id, other.to_uppercase().to_lowercase());
    assert!(desired.adopt);
}

#[test]
fn ux_h7_hostnames_that_are_not_published_are_told() {
    let told = |hostnames: &[&str]| {
        let mut object = crate::fixture::http_route(&[("enabled", "true"), ("hostname", "app.example.com")]);
        object.spec.hostnames = hostnames.iter().map(|name| (*name).to_owned()).collect();
        let wanted = examples().wanted(&crate::RouteInput::read(&object)).unwrap();
        wanted.notices.into_iter().find(|notice| notice.reason == "HostnamesDiffer").map(|notice| notice.message)
    };

    assert_eq!(told(&[]), None);
    assert_eq!(told(&["app.example.com"]), None);
    assert_eq!(told(&["*.example.com"]), None);
    assert!(told(&["app.example.com", "www.example.com"]).unwrap().contains("not www.example.com"));
    assert!(told(&["www.example.com"]).unwrap().contains("do not hold it"));
}

#[test]
fn a_rotation_is_asked_for_once_with_its_overlap() {
    let rotation = |annotations: &[(&str, &str)]| asked(&examples(), annotations).token.and_then(|token| token.rotate);
    let first = rotation(&[("serviceToken", "true"), ("serviceToken.rotate", "1")]).unwrap();
    let longer = [("serviceToken", "true"), ("serviceToken.rotate", "2"), ("serviceToken.rotateOverlap", "30m")];

    assert_eq!((first.request.as_str(), first.overlap.as_secs()), ("1", 3600));
    assert_eq!(rotation(&longer).unwrap().overlap.as_secs(), 1800);
    assert_eq!(rotation(&[("serviceToken.rotate", "1")]), None);
}

#[test]
fn the_task_of_a_plain_route_is_as_specified() {
    let spec = examples().wanted(&route(&[])).unwrap().spec;

    insta::assert_json_snapshot!(spec);
}
