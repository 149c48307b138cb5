use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{json_values, schemas};

/// A definition with one version and this schema.
fn definition(schema: Value) -> Value {
    let mut definition = json!({
        "metadata": {"name": "ws.t.example.com"},
        "spec": {
            "group": "t.example.com",
            "scope": "Namespaced",
            "names": {"plural": "ws", "kind": "W"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    default_definition(&mut definition);
    definition
}

fn of_spec(spec: Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

fn messages(definition: &Value) -> Vec<String> {
    validate_definition(definition, None).iter().map(ToString::to_string).collect()
}

/// What is wrong with a schema of `spec`, without the path up to it.
fn about(spec: Value) -> Vec<String> {
    let path = "spec.validation.openAPIV3Schema.properties[spec].";
    messages(&definition(of_spec(spec))).into_iter().map(|m| m.replacen(path, "", 1)).collect()
}

#[test]
fn defaults_complete_names_and_conversion() {
    let definition = definition(of_spec(json!({"type": "object"})));

    assert_eq!(definition["spec"]["names"], json!({"plural": "ws", "kind": "W", "singular": "w", "listKind": "WList"}));
    assert_eq!(definition["spec"]["conversion"], json!({"strategy": "None"}));
    assert!(messages(&definition).is_empty());
    assert_eq!(stored_versions(&definition, None), ["v1"]);
}

#[test]
fn names_group_scope_and_versions_are_checked() {
    let mut bad = definition(of_spec(json!({"type": "object"})));
    bad["metadata"]["name"] = json!("other");
    bad["spec"]["group"] = json!("nodots");
    bad["spec"]["scope"] = json!("Everywhere");
    bad["spec"]["names"]["shortNames"] = json!(["A"]);
    bad["spec"]["versions"][0]["storage"] = json!(false);

    let found = messages(&bad);

    assert_eq!(found[0], r#"metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group"#);
    assert_eq!(found[1], r#"spec.group: Invalid value: "nodots": should be a domain with at least one dot"#);
    assert_eq!(found[2], r#"spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced""#);
    assert!(found[3].ends_with("must have exactly one version marked as storage version"));
    assert!(found[4].starts_with(r#"spec.names.shortNames[0]: Invalid value: "A": a DNS-1035 label"#));
    assert_eq!(found[5], "status.storedVersions: Invalid value: null: must have at least one stored version");
}

#[test]
fn a_schema_must_be_structural() {
    assert_eq!(
        about(json!({"properties": {"x": {"type": "array"}}})),
        [
            "properties[x].items: Required value: must be specified",
            "type: Required value: must not be empty for specified object fields",
        ]
    );
    assert_eq!(
        about(json!({"type": "object", "anyOf": [{"type": "object"}]})),
        ["anyOf[0].type: Forbidden: must be empty to be structural"]
    );
    let incomplete = json!({"type": "object", "anyOf": [{"properties": {"y": {"minimum": 1}}}]});
    assert_eq!(
        messages(&definition(incomplete)),
        [
            "spec.validation.openAPIV3Schema.properties[y]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[y]"
        ]
    );
    assert!(
        about(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}))
            .is_empty()
    );
}

#[test]
fn list_maps_need_scalar_keys_that_are_always_there() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}}});
    assert_eq!(
        about(list),
        [
            "items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        ]
    );
    assert_eq!(
        about(json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "string"}})),
        [
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            r#"items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
        ]
    );
}

#[test]
fn defaults_must_fit_their_schema() {
    assert_eq!(
        about(
            json!({"type": "object", "default": {"y": 1}, "properties": {"x": {"type": "integer", "maximum": 3, "default": 4}}})
        ),
        [
            r#"default: Invalid value: {"y":1}: must not have unknown fields"#,
            "properties[x].default: Invalid value: 4:  in body should be less than or equal to 3",
        ]
    );
}

#[test]
fn rules_must_be_usable() {
    let rules = |rules: Value| {
        about(json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string",
        "x-kubernetes-validations": rules}}}}))
    };
    assert_eq!(
        rules(json!([{"rule": "self == oldSelf"}])),
        [
            r#"properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[l]"#
        ]
    );
    assert_eq!(
        rules(json!([{"rule": " "}, {"rule": "true", "message": "a\nb"}])),
        [
            "properties[l].items.x-kubernetes-validations[0].rule: Required value: rule is not specified",
            r#"properties[l].items.x-kubernetes-validations[1].message: Invalid value: "a\nb": must not contain line breaks"#,
        ]
    );
}

#[test]
fn different_schemas_are_named_by_their_version() {
    let mut definition = definition(of_spec(json!({"type": "object"})));
    let other =
        json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "string"}}});
    definition["spec"]["versions"].as_array_mut().unwrap().push(other);

    assert_eq!(
        messages(&definition),
        [r#"spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root"#]
    );
}

#[test]
fn established_kinds_keep_their_scope_and_names() {
    let mut old = definition(of_spec(json!({"type": "object"})));
    old["status"] = json!({"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]});
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["versions"][0]["name"] = json!("v2");

    let found: Vec<String> = validate_definition(&new, Some(&old)).iter().map(ToString::to_string).collect();

    assert_eq!(found[0], r#"spec.scope: Invalid value: "Cluster": field is immutable"#);
    assert!(
        found[1].starts_with(r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was"#)
    );
}

#[test]
fn columns_subresources_and_selectable_fields_are_checked() {
    let mut definition = definition(of_spec(json!({"type": "object", "properties": {"o": {"type": "object"}}})));
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"scale": {"specReplicasPath": ".status.replicas", "statusReplicasPath": "x"}});
    version["additionalPrinterColumns"] = json!([{"name": "A", "type": "text", "jsonPath": "spec"}]);
    version["selectableFields"] = json!([{"jsonPath": ".spec.o"}, {"jsonPath": ".nope"}]);

    assert_eq!(
        messages(&definition),
        [
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec"#,
            r#"spec.subresources.scale.statusReplicasPath: Invalid value: "x": must be a simple json path starting with ."#,
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string"#,
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with ."#,
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".spec.o": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#,
            r#"spec.selectableFields[1].jsonPath: Invalid value: ".nope": is an invalid path: does not refer to a valid field"#,
        ]
    );
}

#[test]
fn community_groups_need_approval() {
    let mut definition = definition(of_spec(json!({"type": "object"})));
    definition["spec"]["group"] = json!("x.k8s.io");
    definition["metadata"]["name"] = json!("ws.x.k8s.io");

    assert!(messages(&definition)[0].starts_with("metadata.annotations[api-approved.kubernetes.io]: Required value"));
    definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a test"});
    assert!(messages(&definition).is_empty());
}

#[test]
fn a_definition_is_read_for_serving() {
    let mut value = definition(of_spec(json!({"type": "object"})));
    let version = &mut value["spec"]["versions"][0];
    version["deprecated"] = json!(true);
    version["subresources"] = json!({"status": {}});
    version["additionalPrinterColumns"] = json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}]);

    let definition = Definition::parse(&value).unwrap();

    let version = definition.storage_version().unwrap();
    assert!(version.subresources.status && version.subresources.scale.is_none());
    assert_eq!(version.columns[0].json_path, ".spec.a");
    assert_eq!(definition.deprecation_warning(version).unwrap(), "t.example.com/v1 W is deprecated");
    assert_eq!((definition.scope, definition.names.list_kind.as_str()), (ObjectScope::Namespaced, "WList"));
}

proptest! {
    #[test]
    fn any_schema_is_either_served_or_refused(schema in schemas(), odd in json_values()) {
        let whole = definition(schema);
        let mut broken = definition(odd.clone());
        broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": odd});

        let served = Definition::parse(&whole).is_ok();

        prop_assert!(served || !validate_definition(&whole, None).is_empty());
        prop_assert!(validate_definition(&broken, Some(&whole)).len() < 1_000);
    }

    #[test]
    fn definitions_of_any_form_are_answered(odd in json_values()) {
        let mut value = json!({"spec": odd, "metadata": odd, "status": odd});
        default_definition(&mut value);

        prop_assert!(!validate_definition(&value, None).is_empty());
    }
}
