use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::annotations::{OUTPUTS, name};
use crate::fixture::{Shelf, TUNNEL, http_route};
use crate::gateway::HttpRoute;

const ASKED: [(&str, &str); 3] = [("enabled", "true"), ("hostname", "app.example.com"), ("access.enabled", "true")];

fn hash_of(object: &HttpRoute, shelf: &Shelf) -> String {
    shelf.wanted(&RouteInput::read(object)).unwrap().hash
}

fn plain(shelf: &Shelf) -> String {
    hash_of(&http_route(&ASKED), shelf)
}

fn shelf() -> Shelf {
    Shelf::with_tenant(json!({}))
}

proptest! {
    #[test]
    fn scenario_06_nothing_that_is_written_back_or_foreign_changes_the_hash(
        output in 0..OUTPUTS.len(), value in "\\PC{0,20}", foreign in "[a-z]{1,8}(\\.[a-z]{1,5})?/[a-z]{1,8}", generation in 1i64..1000,
    ) {
        let mut object = http_route(&ASKED);
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(name(OUTPUTS[output].0), value.clone());
        annotations.insert(format!("kopf.cfzt.cloudflare.com/{output}"), value.clone());
        if !foreign.starts_with("cfzt.cloudflare.com/") {
            annotations.insert(foreign, value.clone());
        }
        object.metadata.generation = Some(generation);
        object.metadata.resource_version = Some(generation.to_string());
        object.metadata.finalizers = Some(vec![crate::FINALIZER.to_owned()]);
        object.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());

        prop_assert_eq!(hash_of(&object, &shelf()), plain(&shelf()));
    }
}

#[test]
fn bug_1_a_name_under_our_prefix_that_nobody_reads_does_not_change_the_hash() {
    let object = http_route(&[&ASKED[..], &[("futureOutput", "x")]].concat());

    let hash_of = |object: &HttpRoute| {
        let input = RouteInput::read(object);
        HashedInputs::of(&input, &shelf().select(&input).unwrap(), None, false).hash(None, None)
    };

    assert_eq!(hash_of(&object), hash_of(&http_route(&ASKED)));
}

#[test]
fn only_a_change_of_meaning_counts() {
    let other = http_route(&[("enabled", "TRUE"), ("hostname", "App.example.com."), ("accessApp", "yes")]);
    let spelt = http_route(&[("enabled", "true "), ("hostname", "app.example.com"), ("access.enabled", "1")]);

    assert_eq!(hash_of(&spelt, &shelf()), plain(&shelf()));
    assert_eq!(hash_of(&other, &shelf()), plain(&shelf()));
}

#[test]
fn bug_32_everything_that_is_asked_for_counts() {
    let before = plain(&shelf());
    let mut recreated = http_route(&ASKED);
    recreated.metadata.uid = Some("u2".to_owned());
    let mut moved = http_route(&ASKED);
    moved.spec.rules[0].backend_refs[0].port = Some(9090);
    let with = |more: (&str, &str)| http_route(&[&ASKED[..], &[more]].concat());

    let mut all = vec![before];
    for object in [
        recreated,
        moved,
        with(("access.allowEmails", "a@x")),
        with(("serviceToken.rotate", "1")),
        with(("adopt", "true")),
    ] {
        all.push(hash_of(&object, &shelf()));
    }
    for tenant in [
        json!({ "accountId": "ffffffffffffffffffffffffffffffff" }),
        json!({ "tunnelId": "99999999-2222-3333-4444-555555555555" }),
        json!({ "zoneId": "ffffffffffffffffffffffffffffffff" }),
        json!({ "credentialRef": { "name": "other" } }),
        json!({ "credentialRef": { "name": "token", "key": "other" } }),
        json!({ "defaults": { "sessionDuration": "1h" } }),
    ] {
        all.push(plain(&Shelf::with_tenant(tenant)));
    }
    all.push(plain(&shelf().and_template("default/default", json!({}))));
    all.push(plain(&shelf().and_template("default/default", json!({ "serviceToken": { "enabled": true } }))));
    all.push(plain(&shelf().and_template("default/base-prod", json!({ "serviceToken": { "enabled": true } }))));
    // In no zone a name cannot be protected.
    let open = http_route(&ASKED[..2]);
    all.push(hash_of(&open, &shelf()));
    all.push(shelf().wanted_in(&RouteInput::read(&open), None).unwrap().hash);
    let count = all.len();
    all.sort();
    all.dedup();

    assert_eq!(all.len(), count, "two different inputs have one hash");
}

#[test]
fn scenario_26_another_address_of_the_service_counts() {
    let route = RouteInput::read(&http_route(&ASKED));
    let selected = shelf().select(&route).unwrap();
    let at = |last| HashedInputs::of(&route, &selected, None, false).hash(None, Some([10, 0, 0, last].into()));

    assert_ne!(at(1), at(2));
}

#[test]
fn what_is_no_wish_of_the_route_does_not_count() {
    let quiet = Shelf::with_tenant(json!({ "logLevel": "DEBUG", "allowedNamespaces": ["x"] }));
    let explicit =
        Shelf::with_tenant(json!({ "credentialRef": { "name": "token", "key": "token" }, "tunnelId": TUNNEL }));

    assert_eq!(plain(&quiet), plain(&shelf()));
    assert_eq!(plain(&explicit), plain(&shelf()));
}

#[test]
fn the_hash_is_sixty_four_hexadecimal_digits() {
    let hash = plain(&shelf());

    assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
}
