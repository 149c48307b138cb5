//! The generated table of messages: kinds → messages → fields by number.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

/// What is written for a field without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emit {
    /// Nothing: zero, `false`, `""`, empty lists and maps vanish.
    Omitted,
    /// The zero value.
    Always,
    /// Nothing where absent; zero values stay.
    Pointer,
    /// `null` where absent; zero values stay.
    Null,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Flag,
    Int32,
    Int64,
    Double,
    Bytes,
    /// Bytes that are JSON.
    Json,
    Message(&'static str),
    List(&'static Type),
    Map(&'static Type),
}

/// Types whose JSON is not the object of their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpecialForm {
    Object,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON, in the first field.
    Raw,
    /// A list that is a message.
    Items,
    SchemaOrSchemas,
    SchemaOrBool,
    SchemaOrStrings,
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// The name in JSON; empty where its own fields stand in the parent.
    pub(crate) name: &'static str,
    pub(crate) emit: Emit,
    pub(crate) kind: Type,
    /// The name in Go where it is not the name in JSON with a capital.
    go: Option<&'static str>,
}

impl Field {
    /// The name in Go, which errors have.
    pub(crate) fn go_name(&self) -> String {
        self.go.map_or_else(|| self.name[..1].to_ascii_uppercase() + &self.name[1..], str::to_owned)
    }
}

/// One message.
#[derive(Debug)]
pub(crate) struct Message {
    /// The name without the package.
    pub(crate) short: &'static str,
    pub(crate) form: SpecialForm,
    pub(crate) fields: BTreeMap<u32, Field>,
}

struct Table {
    kinds: HashMap<&'static str, &'static str>,
    messages: HashMap<&'static str, Message>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // It is read once and lives as long as the program: names are borrowed from it.
    let data: &'static Value = Box::leak(Box::new(
        serde_json::from_str(include_str!("../data/messages.json")).expect("the generated data is JSON"),
    ));
    Table {
        kinds: rows(&data["kinds"]).map(|(kind, message)| (kind, text(message))).collect(),
        messages: rows(&data["messages"]).map(|(name, row)| (name, message(name, row))).collect(),
    }
});

/// The message of a kind. Kinds of the API machinery, as `DeleteOptions`, are in every version.
pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    let found = TABLE.kinds.get(format!("{api_version}/{kind}").as_str()).or_else(|| TABLE.kinds.get(kind))?;
    Some(named(found))
}

/// The message of a name that stands in the table.
pub(crate) fn named(name: &str) -> &'static Message {
    TABLE.messages.get(name).expect("the generated data has every message that it names")
}

fn rows(value: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    value.as_object().into_iter().flatten().map(|(name, row)| (name.as_str(), row))
}

fn text(value: &'static Value) -> &'static str {
    value.as_str().unwrap_or_default()
}

fn message(name: &'static str, row: &'static Value) -> Message {
    let form = match text(&row["form"]) {
        "time" => SpecialForm::Time,
        "microTime" => SpecialForm::MicroTime,
        "quantity" => SpecialForm::Quantity,
        "intOrString" => SpecialForm::IntOrString,
        "raw" => SpecialForm::Raw,
        "items" => SpecialForm::Items,
        "schemaOrSchemas" => SpecialForm::SchemaOrSchemas,
        "schemaOrBool" => SpecialForm::SchemaOrBool,
        "schemaOrStrings" => SpecialForm::SchemaOrStrings,
        _ => SpecialForm::Object,
    };
    let fields = rows(&row["fields"])
        .map(|(number, row)| (number.parse().expect("the generated data has numbers as keys"), field(row)));
    Message { short: name.rsplit('.').next().unwrap_or(name), form, fields: fields.collect() }
}

fn field(row: &'static Value) -> Field {
    let emit = match text(&row[1]) {
        "o" => Emit::Omitted,
        "a" => Emit::Always,
        "n" => Emit::Null,
        _ => Emit::Pointer,
    };
    Field { name: text(&row[0]), emit, kind: type_of(text(&row[2])), go: row.get(3).map(text) }
}

fn type_of(text: &'static str) -> Type {
    if let Some(element) = text.strip_prefix("[]") {
        return Type::List(Box::leak(Box::new(type_of(element))));
    }
    if let Some(element) = text.strip_prefix("{}") {
        return Type::Map(Box::leak(Box::new(type_of(element))));
    }
    match text {
        "string" => Type::Text,
        "bool" => Type::Flag,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "json" => Type::Json,
        other => Type::Message(other.strip_prefix('@').expect("the generated data names a message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(kind: Type) -> Option<&'static str> {
        match kind {
            Type::Message(name) => Some(name),
            Type::List(item) | Type::Map(item) => held(*item),
            Type::Text | Type::Flag | Type::Int32 | Type::Int64 | Type::Double | Type::Bytes | Type::Json => None,
        }
    }

    #[test]
    fn every_message_that_is_named_is_there() {
        for field in TABLE.messages.values().flat_map(|message| message.fields.values()) {
            assert!(held(field.kind).is_none_or(|name| TABLE.messages.contains_key(name)), "{field:?}");
        }
        assert!(TABLE.kinds.values().all(|name| TABLE.messages.contains_key(name)));
    }

    #[test]
    fn every_built_in_kind_has_a_message() {
        for kind in portolan_builtin::KINDS {
            assert!(of_kind(&kind.api_version(), kind.kind).is_some(), "{} {}", kind.api_version(), kind.kind);
        }
    }

    #[test]
    fn options_are_in_every_version() {
        assert_eq!(of_kind("apps/v1", "DeleteOptions").unwrap().short, "DeleteOptions");
        assert!(of_kind("apps/v1", "Pod").is_none());
    }

    #[test]
    fn only_inlined_messages_have_no_name() {
        for field in TABLE.messages.values().flat_map(|message| message.fields.values()) {
            assert!(!field.name.is_empty() || matches!(field.kind, Type::Message(_)) && field.go.is_some());
            assert!(!field.go_name().is_empty());
        }
    }
}
