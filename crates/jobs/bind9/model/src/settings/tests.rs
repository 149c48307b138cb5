use proptest::prelude::*;
use serde_json::{from_value, json};

use super::*;
use crate::kinds::dnssec::DNSSECConfig;

fn instance(more: Value) -> Bind9InstanceSpec {
    let mut spec = json!({"clusterRef": "c", "role": "primary"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    from_value(spec).unwrap()
}

fn cluster(spec: Value) -> CommonClusterSpec {
    from_value(spec).unwrap()
}

/// What each layer says of a field, and what is to hold then.
struct Row {
    field: &'static str,
    instance: fn(Value) -> Value,
    role: Option<fn(Value) -> Value>,
    common: Option<fn(Value) -> Value>,
    shown: fn(&ServerSettings) -> Value,
    values: [Value; 5],
}

fn rows() -> Vec<Row> {
    let words = || ["a", "b", "c", "d", "e"].map(|word| json!(word));
    let lists = || ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5"].map(|word| json!([word]));
    vec![
        Row {
            field: "version",
            instance: |value| json!({ "version": value }),
            role: None,
            common: Some(|value| json!({ "version": value })),
            shown: |settings| json!(settings.version),
            values: words(),
        },
        Row {
            field: "image.image",
            instance: |value| json!({ "image": { "image": value } }),
            role: None,
            common: Some(|value| json!({ "image": { "image": value } })),
            shown: |settings| json!(settings.image.image),
            values: words(),
        },
        Row {
            field: "image.imagePullPolicy",
            instance: |value| json!({ "image": { "imagePullPolicy": value } }),
            role: None,
            common: Some(|value| json!({ "image": { "imagePullPolicy": value } })),
            shown: |settings| json!(settings.image.image_pull_policy),
            values: words(),
        },
        Row {
            field: "configMapRefs.namedConf",
            instance: |value| json!({ "configMapRefs": { "namedConf": value } }),
            role: None,
            common: Some(|value| json!({ "configMapRefs": { "namedConf": value } })),
            shown: |settings| json!(settings.files.named_conf),
            values: words(),
        },
        Row {
            field: "config.allowTransfer",
            instance: |value| json!({ "config": { "allowTransfer": value } }),
            role: Some(|value| json!({ "primary": { "allowTransfer": value } })),
            common: Some(|value| json!({ "global": { "allowTransfer": value } })),
            shown: |settings| json!(settings.config.allow_transfer),
            values: lists(),
        },
        Row {
            field: "config.allowQuery",
            instance: |value| json!({ "config": { "allowQuery": value } }),
            role: None,
            common: Some(|value| json!({ "global": { "allowQuery": value } })),
            shown: |settings| json!(settings.config.allow_query),
            values: lists(),
        },
        Row {
            field: "config.forwarders",
            instance: |value| json!({ "config": { "forwarders": value } }),
            role: None,
            common: Some(|value| json!({ "global": { "forwarders": value } })),
            shown: |settings| json!(settings.config.forwarders),
            values: lists(),
        },
        Row {
            field: "config.dnssec.signing.policy",
            instance: |value| json!({ "config": { "dnssec": { "signing": { "policy": value } } } }),
            role: None,
            common: Some(|value| json!({ "global": { "dnssec": { "signing": { "policy": value } } } })),
            shown: |settings| json!(settings.config.dnssec.as_ref().and_then(|one| one.signing.clone()?.policy)),
            values: words(),
        },
        Row {
            field: "rndcKey.rotateAfter",
            instance: |value| json!({ "rndcKey": { "rotateAfter": value } }),
            role: Some(|value| json!({ "primary": { "rndcKey": { "rotateAfter": value } } })),
            common: None,
            shown: |settings| json!(settings.keys.rotate_after),
            values: words(),
        },
        Row {
            field: "rndcSecretRef",
            instance: |value| json!({ "rndcSecretRef": { "name": value } }),
            role: Some(|value| json!({ "primary": { "rndcSecretRef": { "name": value } } })),
            common: Some(|value| json!({ "global": { "rndcSecretRef": { "name": value } } })),
            shown: |settings| json!(settings.keys.secret_ref.as_ref().map(|one| one.name.clone())),
            values: words(),
        },
        Row {
            field: "volumes",
            instance: |value| json!({ "volumes": [{ "name": value }] }),
            role: None,
            common: Some(|value| json!({ "volumes": [{ "name": value }] })),
            shown: |settings| settings.volumes.first().map_or(Value::Null, |one| one["name"].clone()),
            values: words(),
        },
    ]
}

fn merged(parts: &[Option<Value>]) -> Value {
    let mut all = serde_json::Map::new();
    for part in parts.iter().flatten() {
        all.extend(part.as_object().unwrap().clone());
    }
    Value::Object(all)
}

/// Which layers speak: instance, role and rest of the cluster, role and rest of the provider.
fn settled(row: &Row, says: [bool; 5]) -> ServerSettings {
    let said = |which: usize, of: Option<fn(Value) -> Value>| {
        of.filter(|_| says[which]).map(|of| of(row.values[which].clone()))
    };
    let own = merged(&[said(0, Some(row.instance))]);
    let near = merged(&[said(1, row.role), said(2, row.common)]);
    let far = merged(&[said(3, row.role), said(4, row.common)]);
    settings(&instance(own), Some(&cluster(near)), Some(&cluster(far)))
}

#[test]
fn the_nearest_that_speaks_is_heard_for_every_field_and_every_choice_of_speakers() {
    for row in rows() {
        for choice in 0..32_u8 {
            let says = [0, 1, 2, 3, 4].map(|bit| choice & (1 << bit) != 0);
            let can = [true, row.role.is_some(), row.common.is_some(), row.role.is_some(), row.common.is_some()];
            let nearest = (0..5).find(|layer| says[*layer] && can[*layer]);
            let expected = nearest.map_or(Value::Null, |layer| row.values[layer].clone());

            assert_eq!((row.shown)(&settled(&row, says)), expected, "{} with {says:?}", row.field);
        }
    }
}

#[test]
fn a_key_that_is_asked_for_in_the_present_way_goes_before_every_deprecated_reference() {
    let own = instance(json!({"rndcSecretRef": {"name": "old"}, "config": {"rndcSecretRef": {"name": "older"}}}));
    let near = cluster(json!({"primary": {"rndcKey": {"secretRef": {"name": "new"}}}}));

    assert_eq!(settings(&own, Some(&near), None).keys.secret_ref.unwrap().name, "new");
    assert_eq!(settings(&own, None, None).keys.secret_ref.unwrap().name, "old");
}

#[test]
fn a_role_is_asked_for_its_own_servers_alone() {
    let near = cluster(json!({"primary": {"allowTransfer": ["1.1.1.1"]}, "secondary": {"allowTransfer": ["2.2.2.2"]}}));
    let of = |role| settings(&instance(json!({ "role": role })), Some(&near), None).config.allow_transfer.unwrap();

    assert_eq!((of("primary"), of("secondary")), (vec!["1.1.1.1".to_owned()], vec!["2.2.2.2".to_owned()]));
}

#[test]
fn what_is_said_to_be_empty_is_said() {
    let near = cluster(json!({"global": {"allowTransfer": ["any"], "recursion": true}}));
    let own = instance(json!({"config": {"allowTransfer": [], "recursion": false}}));

    let held = settings(&own, Some(&near), None).config;

    assert_eq!((held.allow_transfer, held.recursion), (Some(Vec::new()), Some(false)));
}

#[test]
fn lists_under_names_are_joined_and_the_nearer_of_two_is_taken() {
    let near = cluster(json!({"acls": {"office": ["10.0.0.0/8"]}}));
    let far = cluster(json!({"acls": {"office": ["any"], "home": ["192.168.0.0/16"]}}));

    let acls = settings(&instance(json!({})), Some(&near), Some(&far)).acls;

    assert_eq!(json!(acls), json!({"home": ["192.168.0.0/16"], "office": ["10.0.0.0/8"]}));
}

#[test]
fn a_service_has_the_fields_of_its_role_over_those_of_the_sidecar() {
    let near = cluster(json!({
        "primary": {"service": {"annotations": {"a": "b"}, "spec": {"type": "LoadBalancer"}}},
        "global": {"bindcarConfig": {"serviceSpec": {"type": "NodePort", "sessionAffinity": "ClientIP"}}},
    }));

    let service = settings(&instance(json!({})), Some(&near), None).service;

    assert_eq!(service.spec, Some(json!({"type": "LoadBalancer", "sessionAffinity": "ClientIP"})));
    assert_eq!(json!(service.annotations), json!({"a": "b"}));
}

#[test]
fn an_instance_alone_says_all_there_is() {
    let own = instance(json!({"clusterRef": "", "config": {"dnssec": {"validation": false}}}));

    let held = settings(&own, None, None);

    assert_eq!(held.config.dnssec, Some(DNSSECConfig { validation: Some(false), signing: None }));
    assert_eq!((held.version, held.acls.len(), held.service), (None, 0, ServiceConfig::default()));
}

proptest! {
    #[test]
    fn a_provider_behind_a_cluster_that_says_everything_is_never_heard(version in "[0-9.]{1,5}", other in "[0-9.]{1,5}") {
        let near = cluster(json!({"version": version, "acls": {"a": ["any"]}, "global": {"recursion": true}}));
        let far = cluster(json!({"version": other, "acls": {"a": ["none"]}, "global": {"recursion": false}}));

        prop_assert_eq!(settings(&instance(json!({})), Some(&near), Some(&far)), settings(&instance(json!({})), Some(&near), None));
    }
}
