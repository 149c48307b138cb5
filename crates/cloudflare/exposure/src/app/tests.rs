use super::*;
use crate::policy::{Grant, PolicyRole};

fn allow(addresses: &[&str]) -> OwnPolicy {
    let grants = addresses.iter().map(|address| Grant::Email((*address).to_owned())).collect();
    OwnPolicy { role: PolicyRole::Allow, name: "web-allow-policy".to_owned(), grants }
}

fn service() -> OwnPolicy {
    OwnPolicy { role: PolicyRole::Service, name: "web-service-auth".to_owned(), grants: vec![Grant::Token] }
}

fn wish(policies: Policies) -> AppWish {
    let settings = json!({"session_duration": "8h", "skip_interstitial": false});
    AppWish {
        hostname: Hostname::parse("web.x.com").unwrap(),
        name: "web".to_owned(),
        settings: settings.as_object().unwrap().clone(),
        policies,
        adopted: false,
    }
}

/// The application as an API would show it that was asked to make it so.
fn shown(wish: &AppWish, made: Made<'_>) -> App {
    let mut raw = wish.create(made);
    for (index, policy) in raw["policies"].as_array_mut().unwrap().iter_mut().enumerate() {
        if policy["id"].is_null() {
            policy["id"] = json!(format!("p{}", index + 1));
        }
        policy["created_at"] = json!("2026-11-16T05:00:00Z");
    }
    raw["id"] = json!("app1");
    raw["aud"] = json!("f00");
    raw["allowed_idps"] = json!(["idp1"]);
    raw["self_hosted_domains"] = json!(["web.x.com"]);
    App(raw)
}

const NONE: Made<'static> = Made { token_id: None, own_ids: &[] };

#[test]
fn what_was_just_made_is_as_wanted() {
    let inline = wish(Policies::Inline(vec![allow(&["a@x.com"]), service()]));
    let made = Made { token_id: Some("t1"), own_ids: &[] };
    let linked = wish(Policies::Linked { theirs: vec!["r1".to_owned()], own: vec![] });

    assert_eq!(inline.difference(&shown(&inline, made), made), AppDifference::None);
    assert_eq!(linked.difference(&shown(&linked, NONE), NONE), AppDifference::None);
}

#[test]
fn one_changed_policy_is_one_write_of_that_policy() {
    let before = wish(Policies::Inline(vec![allow(&["a@x.com"])]));
    let after = wish(Policies::Inline(vec![allow(&["a@x.com", "b@x.com"])]));

    let difference = after.difference(&shown(&before, NONE), NONE);

    let body = allow(&["a@x.com", "b@x.com"]).inline(1, None);
    assert_eq!(difference, AppDifference::Policy { id: "p1".to_owned(), body });
}

#[test]
fn a_changed_member_is_one_write_of_the_application_with_all_its_policies() {
    let before = wish(Policies::Inline(vec![allow(&["a@x.com"])]));
    let mut after = before.clone();
    after.settings.insert("session_duration".to_owned(), json!("24h"));
    let found = shown(&before, NONE);

    assert_eq!(after.difference(&found, NONE), AppDifference::App);
    let body = after.update(&found, NONE);
    assert_eq!(body["policies"][0]["id"], "p1");
    assert_eq!((&body["session_duration"], &body["allowed_idps"]), (&json!("24h"), &json!(["idp1"])));
    assert!(body.get("aud").is_none() && body.get("id").is_none() && body.get("self_hosted_domains").is_none());
}

#[test]
fn the_two_forms_of_policies_never_mix() {
    let inline = wish(Policies::Inline(vec![allow(&["a@x.com"])]));
    let linked = wish(Policies::Linked { theirs: vec!["r1".to_owned()], own: vec![allow(&["a@x.com"])] });
    let own = ["own1".to_owned()];
    let made = Made { token_id: None, own_ids: &own };

    let to_linked = linked.update(&shown(&inline, NONE), made);
    assert_eq!(to_linked["policies"], json!([{"id": "r1", "precedence": 1}, {"id": "own1", "precedence": 2}]));
    let to_inline = inline.update(&shown(&linked, made), NONE);
    assert_eq!(to_inline["policies"], json!([allow(&["a@x.com"]).inline(1, None)]));
}

#[test]
fn pointing_to_another_name_takes_its_domains_along_and_leaves_others() {
    let mut found = shown(&wish(Policies::Inline(vec![])), NONE);
    found.0["domain"] = json!("old.x.com");
    found.0["self_hosted_domains"] = json!(["old.x.com"]);
    found.0["destinations"] = json!([{"type": "public", "uri": "old.x.com"}, {"type": "public", "uri": "extra.x.com"}]);

    let body = wish(Policies::Inline(vec![])).update(&found, NONE);

    assert_eq!(body["domain"], "web.x.com");
    assert!(body.get("self_hosted_domains").is_none());
    assert_eq!(body["destinations"][0]["uri"], "web.x.com");
    assert_eq!(body["destinations"][1]["uri"], "extra.x.com");
}

#[test]
fn an_optional_member_that_is_no_longer_wanted_is_taken_away_unless_it_was_there_before_us() {
    let mut wish = wish(Policies::Inline(vec![]));
    let mut found = shown(&wish, NONE);
    found.0["custom_deny_url"] = json!("https://no.x.com");

    assert_eq!(wish.difference(&found, NONE), AppDifference::App);
    assert!(wish.update(&found, NONE).get("custom_deny_url").is_none());
    wish.adopted = true;
    assert_eq!(wish.difference(&found, NONE), AppDifference::None);
}

#[test]
fn a_policy_that_somebody_added_to_our_application_is_a_difference() {
    let wish = wish(Policies::Inline(vec![allow(&["a@x.com"])]));
    let mut found = shown(&wish, NONE);
    let open =
        json!({"id": "p9", "name": "open", "decision": "bypass", "include": [{"everyone": {}}], "precedence": 9});
    found.0["policies"].as_array_mut().unwrap().push(open);

    assert_eq!(wish.difference(&found, NONE), AppDifference::App);
    assert_eq!(wish.update(&found, NONE)["policies"].as_array().unwrap().len(), 1);
}

#[test]
fn a_policy_under_an_older_name_keeps_its_id() {
    let wish = wish(Policies::Inline(vec![allow(&["a@x.com"]), service()]));
    let mut found = shown(&wish, Made { token_id: Some("t1"), own_ids: &[] });
    found.0["policies"][0]["name"] = json!("cfzt-web.x.com-allow");

    let difference = wish.difference(&found, Made { token_id: Some("t1"), own_ids: &[] });

    assert!(matches!(difference, AppDifference::Policy { id, .. } if id == "p1"));
}

#[test]
fn the_policy_of_a_token_can_be_taken_out() {
    let found = shown(
        &wish(Policies::Inline(vec![allow(&["a@x.com"]), service()])),
        Made { token_id: Some("t1"), own_ids: &[] },
    );

    let body = found.without_token("t1").unwrap();

    assert_eq!(body["policies"].as_array().unwrap().len(), 1);
    assert_eq!(body["policies"][0]["id"], "p1");
    assert_eq!(found.without_token("t2"), None);
}

#[test]
fn a_protected_wildcard_covers_the_deeper_names_too() {
    let wildcard = AppWish { hostname: Hostname::parse("*.x.com").unwrap(), ..wish(Policies::Inline(vec![])) };

    let body = wildcard.create(NONE);

    let uris: Vec<String> = body["destinations"].as_array().unwrap().iter().filter_map(uri).collect();
    assert_eq!(uris, ["*.x.com", "*.*.x.com", "*.*.*.x.com", "*.*.*.*.x.com"]);
    assert_eq!(wildcard.difference(&App(body.clone()), NONE), AppDifference::None);
    let mut shallow = body.clone();
    shallow["destinations"].as_array_mut().unwrap().truncate(1);
    assert_eq!(wildcard.difference(&App(shallow), NONE), AppDifference::App);
    let back = wish(Policies::Inline(vec![])).update(&App(body), NONE);
    assert!(back.get("destinations").is_none(), "nothing of the wildcard is left");
}
