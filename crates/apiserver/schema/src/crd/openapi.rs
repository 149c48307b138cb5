//! The `openAPIV3Schema` of a definition: structural, with fitting defaults, allowed keywords and rules that compile.

use serde_json::{Map, Value, json};

use super::{defaults, flag, internal, list, structural, text};
use crate::field::{ErrorKind, FieldError, Path};
use crate::format::StringFormat;
use crate::go;
use crate::json_path;
use crate::node::{Cursor, Schema};
use crate::prune::is_meta_field;
use crate::rules::check;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Keywords that the root may have beside a status subresource, in the server's names.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Checks one schema; `path` is that of its holder.
pub(super) fn validate(schema: &Value, path: &Path<'_>, status: bool, errors: &mut Vec<FieldError>) {
    let path = path.field("openAPIV3Schema");
    if status {
        root_keywords(schema, &path, errors);
    }
    if flag(schema.get("nullable")) {
        errors.push(FieldError::forbidden(&path.field("nullable"), "nullable cannot be true at the root"));
    }
    let before = errors.len();
    let unsupported = unsupported(schema);
    if unsupported.is_none() {
        let mut found = structural::validate(schema, &path);
        if found.is_empty() {
            found = defaults::validate(schema, &path);
        }
        errors.append(&mut found);
    }
    let parsed = Schema::parse(schema).ok().filter(|_| unsupported.is_none() && errors.len() == before);
    let mut walk = Walk { keywords: Vec::new(), rules: Vec::new() };
    let place = Inherited { cursor: parsed.as_ref().map(Schema::root), root: true, ..Inherited::default() };
    walk.schema(schema, &place, &path);
    errors.append(&mut walk.keywords);
    errors.append(&mut walk.rules);
    if let Some(why) = unsupported.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(&path, &json!(""), why));
    }
}

fn root_keywords(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let type_ = text(schema.get("type"));
    if !type_.is_empty() && type_ != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(&path.field("type"), &json!(type_), detail));
        return;
    }
    let keywords = schema.as_object().into_iter().flatten();
    let set = keywords.filter(|(_, value)| !value.is_null() && **value != json!(false) && **value != json!(""));
    if set.map(|(name, _)| name).any(|name| !AT_ROOT.iter().any(|(known, _)| known == name)) {
        let allowed: Vec<&str> = AT_ROOT.iter().map(|(_, shown)| *shown).collect();
        let allowed = allowed.join(" ");
        let detail = format!(
            "only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
        );
        let value = Some(internal::schema(schema));
        errors.push(FieldError { kind: ErrorKind::Invalid, field: path.to_string(), value, detail });
    }
}

/// The first keyword that no structural schema can have.
fn unsupported(schema: &Value) -> Option<String> {
    let own = schema.as_object().into_iter().flatten().find_map(|(name, value)| {
        let shown = match name.as_str() {
            "id" | "$ref" | "patternProperties" | "dependencies" | "additionalItems" | "definitions" => name.as_str(),
            "$schema" => "schema",
            "items" if value.is_array() => {
                return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
            }
            "x-kubernetes-preserve-unknown-fields" if *value == json!(false) => {
                return Some(
                    "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
                );
            }
            _ => return None,
        };
        (!value.is_null()).then(|| format!("OpenAPIV3Schema '{shown}' is not supported"))
    });
    own.or_else(|| children(schema).into_iter().find_map(unsupported))
}

/// Every schema directly below one.
fn children(schema: &Value) -> Vec<&Value> {
    let one = |name: &str| schema.get(name).filter(|s| s.is_object());
    let mut found: Vec<&Value> = ["items", "additionalProperties", "not"].iter().filter_map(|name| one(name)).collect();
    found.extend(["allOf", "anyOf", "oneOf"].iter().flat_map(|name| list(schema.get(*name))));
    found.extend(schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values));
    found
}

/// The formats of a schema that are not checked, each time they stand in it.
pub(super) fn unrecognised_formats(schema: &Value) -> Vec<String> {
    let (format, type_) = (text(schema.get("format")), text(schema.get("type")));
    let known = match type_ {
        "" | "string" => StringFormat::named(format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    let mut found = Vec::new();
    if !format.is_empty() && !known {
        found.push(format!("unrecognized format {}", go::quote(format)));
    }
    found.extend(children(schema).into_iter().flat_map(unrecognised_formats));
    found
}

/// What holds at one place because of the places above it.
#[derive(Clone, Default)]
struct Inherited<'s> {
    /// The parsed schema, where rules are to be compiled.
    cursor: Option<Cursor<'s>>,
    root: bool,
    inside_meta: bool,
    /// Why there may be no default.
    no_default: Option<String>,
    /// The list above whose items cannot be told apart.
    uncorrelatable: Option<String>,
}

impl<'s> Inherited<'s> {
    fn below(&self, cursor: Option<Cursor<'s>>) -> Self {
        Self { cursor, root: false, ..self.clone() }
    }
}

struct Walk {
    keywords: Vec<FieldError>,
    rules: Vec<FieldError>,
}

impl Walk {
    fn schema(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let before = self.keywords.len();
        self.standard(schema, place, path);
        self.additional(schema, place, path);
        self.properties(schema, place, path);
        self.junctors(schema, place, path);
        self.items(schema, place, path);
        self.lists_and_maps(schema, path);
        self.list_map(schema, path);
        self.list_keys(schema, path);
        self.rule_texts(schema, place, path);
        if self.keywords.len() == before {
            self.rule_programs(schema, place, path);
        }
    }

    fn forbid(&mut self, path: &Path<'_>, name: &str, detail: impl Into<String>) {
        self.keywords.push(FieldError::forbidden(&path.field(name), detail));
    }

    fn invalid(&mut self, path: &Path<'_>, name: &str, value: &Value, detail: &str) {
        self.keywords.push(FieldError::invalid(&path.field(name), value, detail));
    }

    fn require(&mut self, path: &Path<'_>, name: &str, detail: &str) {
        self.keywords.push(FieldError::required(&path.field(name), detail));
    }

    fn standard(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let type_ = text(schema.get("type"));
        if !type_.is_empty() && !TYPES.contains(&type_) {
            self.keywords.push(FieldError::not_supported(&path.field("type"), &json!(type_), &TYPES));
        }
        let set = |name: &str| schema.get(name).is_some_and(|value| !value.is_null());
        if let Some(reason) = place.no_default.as_ref().filter(|_| set("default")) {
            self.forbid(path, "default", format!("must not be set {reason}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if set(name) {
                self.forbid(path, name, format!("{name} is not supported"));
            }
        }
        if type_ == "null" {
            self.forbid(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if schema.get("items").is_some_and(Value::is_array) {
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if place.inside_meta && flag(schema.get("x-kubernetes-embedded-resource")) {
            self.forbid(path, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
        if flag(schema.get("uniqueItems")) {
            self.forbid(
                path,
                "uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
    }

    fn additional(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let Some(additional) = schema.get("additionalProperties").filter(|a| !a.is_null()) else {
            return;
        };
        let has_properties = schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
        if has_properties && *additional != json!(true) {
            self.forbid(path, "additionalProperties", "additionalProperties and properties are mutual exclusive");
        }
        if additional.is_object() {
            let mut below = place.below(place.cursor.and_then(Cursor::values));
            if place.inside_meta {
                below.no_default = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            self.schema(additional, &below, &path.field("additionalProperties"));
        }
    }

    fn properties(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let embedded = flag(schema.get("x-kubernetes-embedded-resource"));
        let properties_path = path.field("properties");
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut below = place.below(place.cursor.and_then(|cursor| cursor.property(name)));
            if (place.root || embedded) && is_meta_field(name) {
                below.inside_meta = true;
                if place.root {
                    below.no_default = Some(format!("in top-level {name}"));
                }
            }
            self.schema(property, &below, &properties_path.key(name));
        }
    }

    fn junctors(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let below = place.below(None);
        if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
            self.schema(not, &below, &path.field("not"));
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            let path = path.field(keyword);
            for (index, junctor) in list(schema.get(keyword)).iter().enumerate() {
                self.schema(junctor, &below, &path.index(index));
            }
        }
    }

    fn items(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
            return;
        };
        let mut below = place.below(place.cursor.and_then(Cursor::items));
        if text(schema.get("x-kubernetes-list-type")) != "map" {
            below.uncorrelatable = below.uncorrelatable.or_else(|| Some(path.to_string()));
        }
        self.schema(items, &below, &path.field("items"));
    }

    fn lists_and_maps(&mut self, schema: &Value, path: &Path<'_>) {
        let type_ = text(schema.get("type"));
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
            self.invalid(path, "x-kubernetes-preserve-unknown-fields", &json!(false), "must be true or undefined");
        }
        let map_type = schema.get("x-kubernetes-map-type").and_then(Value::as_str);
        if map_type.is_some() && type_ != "object" {
            self.wrong_type(type_, "must be object if x-kubernetes-map-type is specified", path);
        }
        if let Some(map_type) = map_type.filter(|t| !["atomic", "granular"].contains(t)) {
            let path = path.field("x-kubernetes-map-type");
            self.keywords.push(FieldError::not_supported(&path, &json!(map_type), &["atomic", "granular"]));
        }
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        if list_type.is_some() && type_ != "array" {
            self.wrong_type(type_, "must be array if x-kubernetes-list-type is specified", path);
        } else if list_type == Some("set") {
            self.set_items(schema.get("items").unwrap_or(&Value::Null), path);
        }
        if let Some(list_type) = list_type.filter(|t| !["atomic", "set", "map"].contains(t)) {
            let path = path.field("x-kubernetes-list-type");
            self.keywords.push(FieldError::not_supported(&path, &json!(list_type), &["atomic", "set", "map"]));
        }
    }

    fn wrong_type(&mut self, type_: &str, detail: &str, path: &Path<'_>) {
        match type_ {
            "" => self.require(path, "type", detail),
            other => self.invalid(path, "type", &json!(other), detail),
        }
    }

    fn set_items(&mut self, items: &Value, path: &Path<'_>) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let list_type = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
        let path = path.field("items");
        match text(items.get("type")) {
            "array" if !list_type.is_null() && list_type != "atomic" => {
                self.invalid(&path, "x-kubernetes-list-type", list_type, detail);
            }
            "object" if text(items.get("x-kubernetes-map-type")) != "atomic" => {
                self.invalid(&path, "x-kubernetes-map-type", list_type, detail);
            }
            _ => {}
        }
    }

    fn list_map(&mut self, schema: &Value, path: &Path<'_>) {
        let keys = list(schema.get("x-kubernetes-list-map-keys"));
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None if !keys.is_empty() => self.require(path, "x-kubernetes-list-type", detail),
            Some(other) if !keys.is_empty() && other != "map" => {
                self.invalid(path, "x-kubernetes-list-type", &json!(other), detail);
            }
            _ => {}
        }
        if list_type != Some("map") {
            return;
        }
        if keys.is_empty() {
            self.require(path, "x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map");
        }
        match schema.get("items").filter(|items| items.is_object()) {
            None => self.require(path, "items", "must have a schema if x-kubernetes-list-type is map"),
            Some(items) if text(items.get("type")) == "object" => self.map_keys(keys, items, path),
            Some(items) => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                self.invalid(&path.field("items"), "type", &json!(text(items.get("type"))), detail);
            }
        }
    }

    fn map_keys(&mut self, keys: &[Value], items: &Value, path: &Path<'_>) {
        let shown = Value::from(keys.to_vec());
        for (index, key) in keys.iter().enumerate() {
            let name = text(Some(key));
            match items.get("properties").and_then(|p| p.get(name)) {
                Some(property) if matches!(text(property.get("type")), "array" | "object") => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let path = path.field("items");
                    let path = path.field("properties");
                    self.invalid(&path.key(name), "type", &json!("object"), detail);
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.invalid(path, "x-kubernetes-list-map-keys", &shown, detail);
                }
            }
            if keys[..index].contains(key) {
                self.invalid(path, "x-kubernetes-list-map-keys", &shown, "must not contain duplicate entries");
            }
        }
    }

    /// Items of sets and maps are never null, and the keys of a map are always there.
    fn list_keys(&mut self, schema: &Value, path: &Path<'_>) {
        let list_type = text(schema.get("x-kubernetes-list-type"));
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
            return;
        };
        if !matches!(list_type, "set" | "map") {
            return;
        }
        let path = path.field("items");
        if flag(items.get("nullable")) {
            self.forbid(&path, "nullable", format!("cannot be nullable when x-kubernetes-list-type is {list_type}"));
        }
        if list_type != "map" {
            return;
        }
        let required = list(items.get("required"));
        let properties = path.field("properties");
        for key in list(schema.get("x-kubernetes-list-map-keys")) {
            let name = text(Some(key));
            let Some(property) = items.get("properties").and_then(|p| p.get(name)) else {
                continue;
            };
            if !required.contains(key) && property.get("default").is_none_or(Value::is_null) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.require(&properties.key(name), "default", detail);
            }
            if flag(property.get("nullable")) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&properties.key(name), "nullable", detail);
            }
        }
    }

    fn rule_texts(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let rules = path.field("x-kubernetes-validations");
        for (index, rule) in list(schema.get("x-kubernetes-validations")).iter().enumerate() {
            self.rule_text(rule, schema, place, &rules.index(index));
        }
    }

    fn rule_text(&mut self, rule: &Value, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let (source, message) = (text(rule.get("rule")).trim(), text(rule.get("message")));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        if source.is_empty() {
            self.require(path, "rule", "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            self.invalid(path, "message", &json!(message), "must be non-empty if specified");
        } else if breaks(message.trim()) {
            self.invalid(path, "message", &json!(message), "must not contain line breaks");
        } else if breaks(source) && message.trim().is_empty() {
            self.require(path, "message", "message must be specified if rule contains line breaks");
        }
        let expression = text(rule.get("messageExpression"));
        if !expression.is_empty() && expression.trim().is_empty() {
            self.require(path, "messageExpression", "messageExpression must be non-empty if specified");
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|r| !REASONS.contains(r)) {
            self.keywords.push(FieldError::not_supported(&path.field("reason"), &json!(reason), &REASONS));
        }
        self.field_path(text(rule.get("fieldPath")), schema, place, path);
    }

    fn field_path(&mut self, field_path: &str, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        if field_path.is_empty() {
            return;
        }
        let value = json!(field_path);
        if field_path.trim().is_empty() {
            self.invalid(path, "fieldPath", &value, "must be non-empty if specified");
        }
        if field_path.contains(['\n', '\r']) {
            self.invalid(path, "fieldPath", &value, "must not contain line breaks");
        }
        let leads_somewhere = match place.cursor {
            Some(cursor) => json_path::resolve(field_path, cursor).is_ok(),
            None => Schema::parse(schema).is_ok_and(|schema| json_path::resolve(field_path, schema.root()).is_ok()),
        };
        if !leads_somewhere {
            self.invalid(path, "fieldPath", &value, "must be a valid path");
        }
    }

    fn rule_programs(&mut self, schema: &Value, place: &Inherited<'_>, path: &Path<'_>) {
        let Some(cursor) = place.cursor else { return };
        let resource = place.root || cursor.node().embedded_resource;
        let rules_path = path.field("x-kubernetes-validations");
        let sources = list(schema.get("x-kubernetes-validations"));
        for (index, (rule, source)) in cursor.node().rules.iter().zip(sources).enumerate() {
            let path = rules_path.index(index);
            if let Err(why) = check::rule(rule, cursor, resource) {
                self.rules.push(rule_error(&path.field("rule"), source, why));
            } else if let Err(why) = check::message(rule, cursor, resource) {
                self.rules.push(rule_error(&path.field("messageExpression"), source, why));
            }
            if rule.uses_old_self {
                if let Some(list) = &place.uncorrelatable {
                    let detail =
                        format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                    self.rules.push(FieldError::invalid(&path.field("rule"), &json!(rule.source), detail));
                }
            } else if let Some(set) = source.get("optionalOldSelf").filter(|set| set.is_boolean()) {
                let detail = "may not be set if oldSelf is not used in rule";
                self.rules.push(FieldError::invalid(&path.field("optionalOldSelf"), set, detail));
            }
        }
    }
}

/// An error about a rule shows all of it.
fn rule_error(path: &Path<'_>, rule: &Value, detail: String) -> FieldError {
    let value = Some(internal::rule(rule));
    FieldError { kind: ErrorKind::Invalid, field: path.to_string(), value, detail }
}
