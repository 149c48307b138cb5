//! JSON beside its schema → CEL values. Objects stay JSON until a field is asked for.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::ExecutionError;
use cel::common::traits::{Indexer, Zeroer};
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, MAP_TYPE, Type as CelType,
};
use cel::common::value::{CowVal, Val};
use serde_json::{Map, Value};

use super::environment;
use super::escape::unescape;
use super::keyed_list::KeyedList;
use crate::format::StringFormat;
use crate::node::{Cursor, ListType, Node, Type};
use crate::prune::is_meta_field;

/// A name that no expression can spell, by which an object tells its size.
const SIZE: &str = "@size";

/// The CEL value of some JSON; `resource` where type and metadata are reachable as well.
pub(crate) fn to_cel<'v>(value: &'v Value, schema: Option<Cursor<'v>>, resource: bool) -> Box<dyn Val + 'v> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => to_number(number, schema),
        Value::String(text) => to_text(text, schema),
        Value::Array(items) => {
            let (list, schema) = (schema, schema.and_then(Cursor::items));
            let embedded = schema.is_some_and(|s| s.node().embedded_resource);
            let items: Vec<Box<dyn Val + 'v>> = items.iter().map(|item| to_cel(item, schema, embedded)).collect();
            to_list(items, list)
        }
        Value::Object(fields) => to_object(fields, schema, resource),
    }
}

fn to_list<'v>(items: Vec<Box<dyn Val + 'v>>, schema: Option<Cursor<'v>>) -> Box<dyn Val + 'v> {
    match schema.map(Cursor::node) {
        Some(Node { list_type: Some(ListType::Map), list_map_keys, .. }) => {
            Box::new(KeyedList::new(items, list_map_keys))
        }
        Some(Node { list_type: Some(ListType::Set), .. }) => Box::new(KeyedList::new(items, &[])),
        _ => Box::new(CelList::from(items)),
    }
}

fn to_number<'v>(number: &serde_json::Number, schema: Option<Cursor<'_>>) -> Box<dyn Val + 'v> {
    let wants_float = schema.is_some_and(|s| s.node().type_ == Some(Type::Number));
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) if !wants_float => Box::new(CelInt::from(integer)),
        (_, Some(float)) if !wants_float && schema.is_some_and(|s| s.node().type_ == Some(Type::Integer)) => {
            #[expect(clippy::cast_possible_truncation, reason = "validation let whole numbers pass only")]
            let integer = float as i64;
            Box::new(CelInt::from(integer))
        }
        (_, float) => Box::new(CelDouble::from(float.unwrap_or(0.0))),
    }
}

/// Texts with a format become times, durations and bytes; those that do not parse stay texts.
fn to_text<'v>(text: &'v str, schema: Option<Cursor<'_>>) -> Box<dyn Val + 'v> {
    let format = schema.and_then(|s| s.node().format.as_deref()).and_then(StringFormat::named);
    let typed: Option<Box<dyn Val + 'v>> = match format {
        // Parts of a time are those in UTC.
        Some(StringFormat::DateTime) => {
            let time = text.parse::<jiff::Timestamp>().map_or_else(|_| text.to_owned(), |time| time.to_string());
            environment::call("timestamp", time)
        }
        Some(StringFormat::Date) => environment::call("timestamp", format!("{text}T00:00:00Z")),
        Some(StringFormat::Duration) => crate::duration::parse_lenient(text)
            .and_then(|nanoseconds| environment::call("duration", format!("{nanoseconds}ns"))),
        Some(StringFormat::Byte) => {
            STANDARD.decode(text).ok().map(|bytes| Box::new(CelBytes::from(bytes)) as Box<dyn Val + 'v>)
        }
        _ => None,
    };
    typed.unwrap_or_else(|| Box::new(CelString::from(text)))
}

fn to_object<'v>(fields: &'v Map<String, Value>, schema: Option<Cursor<'v>>, resource: bool) -> Box<dyn Val + 'v> {
    match schema {
        Some(schema) if resource || schema.values().is_none() => {
            let shape = if resource { Reachable::Resource(schema) } else { Reachable::Plain(schema) };
            Box::new(LazyObject { fields, shape })
        }
        _ => Box::new(to_map(fields, schema.and_then(Cursor::values))),
    }
}

fn to_map<'v>(fields: &'v Map<String, Value>, values: Option<Cursor<'v>>) -> CelMap<'v> {
    let embedded = values.is_some_and(|s| s.node().embedded_resource);
    let entries: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> =
        fields.iter().map(|(key, value)| (CelMapKey::from(key.as_str()), to_cel(value, values, embedded))).collect();
    CelMap::from(entries)
}

/// Which fields of an object are reachable.
#[derive(Clone, Copy)]
enum Reachable<'v> {
    /// Those of the schema.
    Plain(Cursor<'v>),
    /// Those of the schema, and `apiVersion`, `kind` and `metadata`.
    Resource(Cursor<'v>),
    /// `name` and `generateName`.
    Metadata,
}

/// An object whose fields are converted when they are asked for.
#[derive(Clone, Copy)]
struct LazyObject<'v> {
    fields: &'v Map<String, Value>,
    shape: Reachable<'v>,
}

impl fmt::Debug for LazyObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields.fmt(f)
    }
}

impl<'v> LazyObject<'v> {
    fn field(&self, name: &str) -> Option<Box<dyn Val + 'v>> {
        // A field that is null counts as absent.
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        match self.shape {
            Reachable::Metadata => matches!(name, "name" | "generateName").then(|| to_cel(value, None, false)),
            Reachable::Resource(_) if name == "metadata" => value
                .as_object()
                .map(|fields| Box::new(LazyObject { fields, shape: Reachable::Metadata }) as Box<dyn Val + 'v>),
            Reachable::Resource(_) if is_meta_field(name) => Some(to_cel(value, None, false)),
            Reachable::Plain(schema) | Reachable::Resource(schema) => {
                let child = schema.property(name)?;
                Some(to_cel(value, Some(child), child.node().embedded_resource))
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &'v str> {
        let shape = self.shape;
        self.fields.keys().map(String::as_str).filter(move |name| match shape {
            Reachable::Metadata => matches!(*name, "name" | "generateName"),
            Reachable::Resource(schema) => is_meta_field(name) || schema.property(name).is_some(),
            Reachable::Plain(schema) => schema.property(name).is_some(),
        })
    }

    fn size(&self) -> i64 {
        i64::try_from(self.names().count()).unwrap_or(i64::MAX)
    }
}

impl Val for LazyObject<'_> {
    fn get_type(&self) -> &CelType {
        &MAP_TYPE
    }

    fn cel_type() -> &'static CelType {
        &MAP_TYPE
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(indexer) = other.as_indexer() else {
            return false;
        };
        let size = match other.as_sizer() {
            Some(sizer) => Some(*sizer.size().inner()),
            None => indexer
                .get(&CelString::from(SIZE))
                .ok()
                .and_then(|size| size.downcast_ref::<CelInt>().map(|n| *n.inner())),
        };
        let same = |name: &str| {
            let other = indexer.get(&CelString::from(name)).ok();
            matches!((self.field(name), other), (Some(own), Some(other)) if own.equals(other.as_ref()))
        };
        size == Some(self.size()) && self.names().all(same)
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(*self)
    }
}

impl Indexer for LazyObject<'_> {
    fn get<'b, 'w>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let Some(name) = index.downcast_ref::<CelString<'_>>().map(CelString::inner) else {
            return Err(ExecutionError::no_such_key("?"));
        };
        if name == SIZE {
            return Ok(CowVal::owned(CelInt::from(self.size())));
        }
        let found = if name.contains("__") { self.field(&unescape(name)) } else { self.field(name) };
        found.map(CowVal::Owned).ok_or_else(|| ExecutionError::no_such_key(name))
    }

    fn steal<'w>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let object = *self;
        let found = object.get(index)?.into_owned();
        Ok(found)
    }
}

impl Zeroer for LazyObject<'_> {
    fn is_zero_value(&self) -> bool {
        self.fields.is_empty()
    }
}
