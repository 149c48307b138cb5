//! `metadata.managedFields` ↔ [`Managed`]: who owns which fields since when.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::ssa::fields_v1;
use crate::ssa::scalar;
use crate::ssa::set::FieldSet;
use crate::ssa::time::Time;

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "Apply" => Some(Self::Apply),
            "Update" => Some(Self::Update),
            _ => None,
        }
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One owner and what it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManagedEntry {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: Option<Time>,
    pub(crate) set: FieldSet,
}

impl ManagedEntry {
    /// An owner of nothing yet.
    pub(crate) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            time: None,
            set: FieldSet::default(),
        }
    }

    /// What makes two entries the same owner. An applier is one owner in all versions.
    pub(crate) fn identifier(&self) -> String {
        let api_version = if self.operation == Operation::Apply { "" } else { self.api_version.as_str() };
        let parts = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", api_version),
            ("subresource", self.subresource.as_str()),
        ];
        let fields: Vec<(&str, Value)> =
            parts.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (*name, json!(text))).collect();
        let mut out = String::new();
        scalar::write_json_object(fields.iter().map(|(name, value)| (*name, value)), &mut out);
        out
    }

    fn decode(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        if text(fields, "fieldsType")? != "FieldsV1" {
            return None;
        }
        let api_version = text(fields, "apiVersion").filter(|version| !version.is_empty())?;
        let time = match fields.get("time") {
            None | Some(Value::Null) => None,
            Some(time) => Some(Time::parse(time.as_str()?)?),
        };
        Some(Self {
            manager: text(fields, "manager")?.to_owned(),
            operation: Operation::parse(text(fields, "operation")?)?,
            api_version: api_version.to_owned(),
            subresource: text(fields, "subresource")?.to_owned(),
            time,
            set: fields_v1::decode(fields.get("fieldsV1").unwrap_or(&Value::Null)).ok()?,
        })
    }

    fn encode(&self) -> Value {
        let mut fields = Map::new();
        for (name, text) in [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", self.api_version.as_str()),
            ("subresource", self.subresource.as_str()),
            ("fieldsType", "FieldsV1"),
            ("time", self.time.as_ref().map_or("", Time::text)),
        ] {
            if !text.is_empty() {
                fields.insert(name.to_owned(), Value::String(text.to_owned()));
            }
        }
        fields.insert("fieldsV1".to_owned(), fields_v1::encode(&self.set));
        Value::Object(fields)
    }

    fn seconds(&self) -> i64 {
        self.time.as_ref().map_or(0, Time::seconds)
    }
}

/// A text field; absent is empty, anything else than text is malformed.
fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    match fields.get(name) {
        None | Some(Value::Null) => Some(""),
        Some(Value::String(text)) => Some(text),
        Some(_) => None,
    }
}

/// The owners of one object, by [`ManagedEntry::identifier`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    pub(crate) entries: BTreeMap<String, ManagedEntry>,
}

/// `managedFields` that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Managed {
    /// Reads an object's `managedFields`; none where there are none.
    pub(crate) fn of(object: &Value) -> Result<Self, Malformed> {
        match object.pointer("/metadata/managedFields") {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(list) => Self::decode(list),
        }
    }

    fn decode(list: &Value) -> Result<Self, Malformed> {
        let mut managed = Self::default();
        for value in list.as_array().ok_or(Malformed)? {
            managed.insert(ManagedEntry::decode(value).ok_or(Malformed)?);
        }
        Ok(managed)
    }

    /// Adds or replaces an owner.
    pub(crate) fn insert(&mut self, entry: ManagedEntry) {
        self.entries.insert(entry.identifier(), entry);
    }

    /// Whether nobody owns anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The list as it is stored: appliers first, then by time and name.
    pub(crate) fn encode(&self) -> Option<Value> {
        if self.is_empty() {
            return None;
        }
        Some(Value::Array(encode(self.entries.values().collect())))
    }

    /// Writes the owners into an object, or takes the field away when there are none.
    pub(crate) fn write(&self, object: &mut Value) {
        match self.encode() {
            None => strip(object),
            Some(list) => {
                let Some(object) = object.as_object_mut() else { return };
                let metadata = object.entry("metadata").or_insert_with(|| json!({}));
                if let Some(metadata) = metadata.as_object_mut() {
                    metadata.insert("managedFields".to_owned(), list);
                }
            }
        }
    }

    /// Folds the oldest updaters of each version into one, so that at most ten stay.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<(i64, String)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.operation == Operation::Update)
            .map(|(identifier, entry)| (entry.seconds(), identifier.clone()))
            .collect();
        updaters.sort();
        let mut excess = updaters.len().saturating_sub(MAX_UPDATERS);
        let mut first_of_version: BTreeMap<String, String> = BTreeMap::new();
        for (_, identifier) in updaters {
            if excess == 0 {
                return;
            }
            let version = self.entries[&identifier].api_version.clone();
            match first_of_version.get(&version) {
                None => drop(first_of_version.insert(version, identifier)),
                Some(first) => {
                    self.fold(&identifier, first);
                    excess -= 1;
                }
            }
        }
    }

    /// Moves one updater's fields into the bucket of its version, which starts as the version's first updater.
    fn fold(&mut self, identifier: &str, first: &str) {
        let Some(entry) = self.entries.remove(identifier) else {
            return;
        };
        let mut bucket = ManagedEntry::new(OLD_UPDATERS, Operation::Update, &entry.api_version, "");
        let key = bucket.identifier();
        let known = self.entries.remove(&key).or_else(|| self.entries.remove(first));
        bucket.set = known.map(|known| entry.set.union(&known.set)).unwrap_or(entry.set);
        bucket.time = entry.time;
        self.entries.insert(key, bucket);
    }
}

/// Entries as they are stored.
pub(crate) fn encode(mut entries: Vec<&ManagedEntry>) -> Vec<Value> {
    entries.sort_by(|left, right| {
        let order = left.operation.cmp(&right.operation).then_with(|| left.seconds().cmp(&right.seconds()));
        order
            .then_with(|| left.manager.cmp(&right.manager))
            .then_with(|| left.api_version.cmp(&right.api_version))
            .then_with(|| left.subresource.cmp(&right.subresource))
    });
    entries.into_iter().map(ManagedEntry::encode).collect()
}

/// Takes the entries of versions that are not served any more out of an object. To be called on the live and on the
/// new object before any write, where versions have come and gone.
pub fn keep_versions(object: &mut Value, served: &[&str]) {
    let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) else {
        return;
    };
    let is_served = |entry: &Value| match entry.get("apiVersion") {
        Some(Value::String(version)) => served.contains(&version.as_str()),
        _ => true,
    };
    entries.retain(is_served);
}

const MAX_UPDATERS: usize = 10;
const OLD_UPDATERS: &str = "ancient-changes";

/// Takes `managedFields` out of an object.
pub(crate) fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Whether the list asks to forget all owners: it is one empty entry, or empty.
pub(crate) fn is_reset(list: &Value) -> bool {
    let is_empty = |entry: &Value| {
        let blank = |value: &Value| value.is_null() || value.as_str() == Some("");
        entry.as_object().is_some_and(|fields| fields.values().all(blank))
    };
    match list.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => is_empty(only),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
