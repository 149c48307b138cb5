//! An object and one of its appliers → the configuration that it applied last, as far as it still owns it.

use portolan_schema::Cursor;
use serde_json::Value;

use crate::ssa::managed::{Managed, Operation};
use crate::ssa::typed::{self, Shape};

/// What a manager applied at an endpoint; `None` where it owns nothing there.
pub fn extract(object: &Value, manager: &str, subresource: &str, schema: Cursor<'_>) -> Option<Value> {
    let managed = Managed::of(object).ok()?;
    let entry = managed.entries.values().find(|entry| {
        entry.operation == Operation::Apply && entry.manager == manager && entry.subresource == subresource
    })?;
    let mut config = typed::extract(object, &entry.set.leaves(), Shape::resource(schema));
    let fields = config.as_object_mut()?;
    for name in ["apiVersion", "kind"] {
        fields.insert(name.to_owned(), object.get(name)?.clone());
    }
    Some(config)
}
