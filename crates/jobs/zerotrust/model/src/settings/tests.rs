use proptest::prelude::*;
use proptest::sample::select as one_of;
use serde_json::Map;

use super::*;
use crate::annotations::ValueSyntax;
use crate::fixture::{Shelf, TUNNEL, reason, route};

/// A value that fits a shape; different for different `variant`s where the shape has enough values.
fn sample(shape: ValueSyntax, variant: usize) -> (String, Value) {
    let text = |text: String| (text.clone(), json!(text));
    match shape {
        ValueSyntax::Flag => (variant.is_multiple_of(2).to_string(), json!(variant.is_multiple_of(2))),
        ValueSyntax::Text => text(format!("text-{variant}")),
        ValueSyntax::Url => text(format!("http://origin-{variant}:80")),
        ValueSyntax::List => (format!("a{variant}, b{variant}"), json!([format!("a{variant}"), format!("b{variant}")])),
        ValueSyntax::Seconds => ((variant + 11).to_string(), json!(variant + 11)),
        ValueSyntax::Ttl => ((variant + 200).to_string(), json!(variant + 200)),
        ValueSyntax::Duration | ValueSyntax::Lifetime => text(format!("{}h", variant + 1)),
        ValueSyntax::Choice(words) => text(words[variant % words.len()].to_owned()),
        ValueSyntax::Uuid => text(format!("{variant:08}-0000-0000-0000-000000000000")),
        ValueSyntax::Service => (String::new(), json!({ "name": format!("service-{variant}") })),
    }
}

/// `{"a": {"b": value}}` for `/a/b`.
fn at(pointer: &str, value: Value) -> Value {
    pointer
        .rsplit('/')
        .filter(|part| !part.is_empty())
        .fold(value, |inner, part| Value::Object(Map::from_iter([(part.to_owned(), inner)])))
}

/// A setting that each of the asked layers says, with another value on each.
fn layered(setting: &Setting, said: [bool; 5]) -> Result<Sourced, Problem> {
    let value = |layer: usize| sample(setting.shape, layer);
    let mut annotations = Vec::new();
    let (first, second) = (value(0).0, value(1).0);
    if said[0] && setting.shape != ValueSyntax::Service {
        annotations.push((setting.name, first.as_str()));
    }
    if let (true, Some(alias)) = (said[1], setting.aliases.first()) {
        annotations.push((*alias, second.as_str()));
    }
    let spec = |layer: usize, place: &str| {
        if said[layer] && !place.is_empty() { at(place, value(layer).1) } else { json!({}) }
    };
    let shelf = Shelf::with_tenant(spec(4, setting.tenant))
        .and_template("default/default", spec(2, setting.template))
        .and_template("default/base-prod", spec(3, setting.template));
    shelf.settings(&route(&annotations)).map(|settings| settings.field(setting).clone())
}

/// The layer that has to win, and its value.
fn expected(setting: &Setting, said: [bool; 5]) -> Sourced {
    let key = |name: &str| ObjectKey::namespaced("default", name);
    let value = |layer: usize| sample(setting.shape, layer).1;
    if said[0] && setting.shape != ValueSyntax::Service {
        return Sourced { value: value(0), layer: Layer::Annotation };
    }
    if let (true, Some(alias)) = (said[1], setting.aliases.first()) {
        return Sourced { value: value(1), layer: Layer::Alias(alias) };
    }
    if said[2] && !setting.template.is_empty() {
        return Sourced { value: value(2), layer: Layer::Template(key("default")) };
    }
    if said[3] && !setting.template.is_empty() {
        return Sourced { value: value(3), layer: Layer::Base(key("base-prod")) };
    }
    if said[4] && !setting.tenant.is_empty() {
        return Sourced { value: value(4), layer: Layer::Tenant(key("prod")) };
    }
    match setting.tenant {
        "/tunnelId" => Sourced { value: json!(TUNNEL), layer: Layer::Tenant(key("prod")) },
        _ => Sourced { value: setting.built_in.value(), layer: Layer::BuiltIn },
    }
}

proptest! {
    #[test]
    fn scenario_09_every_field_takes_the_highest_layer_that_says_it(setting in one_of(SETTINGS), said in any::<[bool; 5]>()) {
        prop_assert_eq!(layered(&setting, said).unwrap(), expected(&setting, said), "{}", setting.name);
    }
}

#[test]
fn scenario_09_all_layers_at_once() {
    for setting in SETTINGS {
        for layer in 0..5 {
            let said = std::array::from_fn(|index| index >= layer);
            assert_eq!(layered(setting, said).unwrap(), expected(setting, said), "{} from layer {layer}", setting.name);
        }
    }
}

#[test]
fn scenario_10_a_template_that_sets_one_thing_leaves_the_others_to_the_base() {
    let tls = |tls: Value| json!({ "originService": { "originTLS": tls } });
    let shelf = Shelf::with_tenant(json!({}))
        .and_template("default/base-prod", tls(json!({ "noTLSVerify": true })))
        .and_template("default/web", tls(json!({ "tlsTimeout": 15 })));

    let settings = shelf.settings(&route(&[("template", "web")])).unwrap();

    assert!(settings.flag(&NO_TLS_VERIFY));
    assert_eq!(settings.number(&TLS_TIMEOUT), Some(15));
    assert_eq!(settings.field(&NO_TLS_VERIFY).layer.to_string(), "base template default/base-prod");
}

#[test]
fn lists_replace_and_an_empty_annotation_clears_them() {
    let access = |emails: Value| json!({ "accessApplication": { "allowEmails": emails } });
    let shelf = Shelf::with_tenant(json!({}))
        .and_template("default/base-prod", access(json!(["base@x"])))
        .and_template("default/web", access(json!(["web@x"])));
    let emails = |annotations: &[(&str, &str)]| shelf.settings(&route(annotations)).unwrap().list(&ALLOW_EMAILS);

    assert_eq!(emails(&[]), ["base@x"]);
    assert_eq!(emails(&[("template", "web")]), ["web@x"]);
    assert_eq!(emails(&[("access.allowEmails", "a@x , ,b@x")]), ["a@x", "b@x"]);
    assert_eq!(emails(&[("access.allowEmails", " ")]), Vec::<String>::new());
}

#[test]
fn texts_that_older_definitions_filled_in_say_nothing() {
    let shelf = Shelf::with_tenant(json!({ "defaults": { "originService": "http://traefik:80" } })).and_template(
        "default/default",
        json!({ "originService": { "url": "", "originTLS": { "originServerName": "" } } }),
    );

    assert_eq!(shelf.settings(&route(&[])).unwrap().text(&ORIGIN_URL), Some("http://traefik:80"));
}

#[test]
fn booleans_are_read_in_all_their_words_and_no_other() {
    let shelf = Shelf::with_tenant(json!({}));
    let access = |value: &str| shelf.settings(&route(&[("access.enabled", value)])).map(|found| found.flag(&ACCESS));

    for word in ["true", "1", "Yes", "ON"] {
        assert_eq!(access(word), Ok(true), "{word}");
    }
    for word in ["false", "0", "no", "Off"] {
        assert_eq!(access(word), Ok(false), "{word}");
    }
    for word in ["", "ja", "enabled", "truee"] {
        assert_eq!(reason(access(word)), "InvalidAnnotation", "{word}");
    }
}

#[test]
fn every_wrong_annotation_is_named_with_what_to_write() {
    let shelf = Shelf::with_tenant(json!({}));
    let wrong = route(&[
        ("accessApp", "maybe"),
        ("origin.tlsTimeout", "301"),
        ("dnsOnly.ttl", "30"),
        ("access.sessionDuration", "one day"),
        ("access.sameSiteCookieAttribute", "sometimes"),
        ("tunnelId", "mine"),
        ("serviceToken.rotateOverlap", "later"),
        ("adopt", "perhaps"),
    ]);

    let problem = shelf.settings(&wrong).unwrap_err();

    assert_eq!(problem.reason, "InvalidAnnotation");
    for told in [
        "cfzt.cloudflare.com/accessApp is \"maybe\": write \"true\" or \"false\"",
        "origin.tlsTimeout is \"301\": write 1 to 300 seconds",
        "dnsOnly.ttl is \"30\": write 1 (automatic), or 60 to 86400 seconds",
        "as 24h or 1h30m",
        "write none, lax or strict",
        "write the tunnel's UUID",
        "rotateOverlap",
        "adopt",
    ] {
        assert!(problem.message.contains(told), "{told}\n{}", problem.message);
    }
}

#[test]
fn scenario_14_the_address_is_the_annotations_then_the_templates_then_the_services() {
    let dns = |rest: Value| {
        let mut all = json!({ "enabled": true, "ingressServiceRef": { "name": "traefik" } });
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Shelf::with_tenant(json!({})).and_template("default/default", json!({ "dnsOnly": all }))
    };
    let target = |shelf: &Shelf, annotations: &[(&str, &str)]| shelf.settings(&route(annotations)).unwrap().target();
    let fixed = dns(json!({ "staticIp": "10.0.0.1" }));
    let elsewhere = dns(json!({ "ingressServiceRef": { "name": "traefik", "namespace": "edge" } }));

    assert_eq!(target(&fixed, &[("dnsIp", "10.0.0.2")]), Ok(AddressSource::Static([10, 0, 0, 2].into())));
    assert_eq!(target(&fixed, &[]), Ok(AddressSource::Static([10, 0, 0, 1].into())));
    assert_eq!(target(&dns(json!({})), &[]), Ok(AddressSource::Service(ObjectKey::namespaced("default", "traefik"))));
    assert_eq!(target(&elsewhere, &[]), Ok(AddressSource::Service(ObjectKey::namespaced("edge", "traefik"))));
    assert_eq!(target(&fixed, &[("dnsOnly.enabled", "false")]), Ok(AddressSource::None));
    assert_eq!(reason(target(&fixed, &[("dnsIp", "fd00::1")])), "InvalidTargetIP");
    let nowhere = Shelf::with_tenant(json!({}));
    assert_eq!(reason(target(&nowhere, &[("dnsOnly.enabled", "true")])), "InvalidTargetIP");
}

#[test]
fn the_merge_can_be_read() {
    let shelf = Shelf::with_tenant(json!({ "defaults": { "originService": "http://a:80" } }));

    let lines = shelf.settings(&route(&[("accessApp", "true")])).unwrap().lines();

    assert!(lines.contains(&"origin.url = \"http://a:80\" (tenant default/prod)".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"access.enabled = true (annotation accessApp)".to_owned()));
    assert!(lines.contains(&"access.sessionDuration = \"24h\" (built in)".to_owned()));
    assert!(!lines.iter().any(|line| line.starts_with("access.allowEmails")));
}

#[test]
fn no_two_annotations_share_a_name() {
    let mut names: Vec<&str> =
        crate::annotations::inputs().flat_map(|input| [&[input.suffix], input.aliases].concat()).collect();
    names.extend(crate::annotations::OUTPUTS.iter().map(|(name, _)| *name));
    let all = names.len();
    names.sort_unstable();
    names.dedup();

    assert_eq!(names.len(), all);
}

/// Whether Access is on for a template, a base template and annotations.
fn access(template: Value, base: Value, annotations: &[(&str, &str)]) -> bool {
    let shelf = Shelf::with_tenant(json!({ "defaults": { "sessionDuration": "8h" } }))
        .and_template("default/default", template)
        .and_template("default/base-prod", base);
    shelf.settings(&route(annotations)).unwrap().asks_for_access()
}

#[test]
fn ux_c2_each_layer_asks_for_access_unless_it_says_itself_that_it_is_off() {
    let lists = json!({ "accessApplication": { "allowEmails": ["a@x"] } });
    let off = json!({ "accessApplication": { "enabled": false } });
    let both = json!({ "accessApplication": { "enabled": false, "allowEmails": ["a@x"], "sessionDuration": "24h" } });
    let token = json!({ "serviceToken": { "enabled": true } });
    let emails = [("access.allowEmails", "a@x")];

    assert!(!access(json!({}), json!({}), &[]), "a tenant's session does not ask");
    assert!(access(lists.clone(), json!({}), &[]) && access(json!({}), lists.clone(), &[]));
    assert!(access(token.clone(), json!({}), &[]) && access(json!({}), token.clone(), &[]));
    assert!(!access(both.clone(), json!({}), &[]), "older definitions wrote that into templates");
    assert!(access(both.clone(), json!({}), &emails), "the route says who may pass");
    assert!(access(lists.clone(), off.clone(), &[]), "a layer below has no say");
    assert!(!access(off.clone(), lists.clone(), &[]));
    assert!(!access(json!({ "serviceToken": { "enabled": false } }), json!({}), &[]));
    assert!(access(token, json!({}), &[("serviceToken.enabled", "false")]), "only access.enabled takes it off");
    for off in ["access.enabled", "accessApp"] {
        assert!(!access(lists.clone(), json!({}), &[(off, "false"), emails[0]]));
    }
}

#[test]
fn ux_c2_every_access_annotation_asks_for_access() {
    let names = crate::annotations::inputs().flat_map(|input| [&[input.suffix], input.aliases].concat());
    let aliases = ["allowEmails", "allowGroups", "sessionDuration"];
    for name in names.filter(|name| name.starts_with("access.") || aliases.contains(name)) {
        let shape = SETTINGS.iter().find(|one| one.name == name || one.aliases.contains(&name)).unwrap().shape;
        if name != ACCESS.name {
            assert!(access(json!({}), json!({}), &[(name, &sample(shape, 1).0)]), "{name}");
        }
    }
}
