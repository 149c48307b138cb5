//! Structural schemas of Kubernetes objects: what a JSON value may hold, and what it becomes.
//!
//! A [`Schema`] comes from a CRD's `openAPIV3Schema` or from the generated data of the built-in kinds. Everything
//! here is pure: values in, values and [`FieldError`]s out.

pub mod constraints;
mod correlate;
pub mod crd;
pub mod default;
pub mod duration;
pub mod field;
pub mod format;
pub mod go;
pub mod json_path;
pub mod names;
pub mod node;
pub mod object_meta;
pub mod prune;
pub mod quantity;
pub mod re2;
pub mod rules;
#[cfg(test)]
mod testing;
pub mod url;
pub mod validate;

pub use default::{default, fill_defaults};
pub use field::{ErrorKind, FieldError, Path};
pub use node::{Additional, Cursor, ListType, MapType, Node, NodeId, Schema, SchemaError, Type};
pub use prune::{Root, prune};
pub use rules::{check_rules, find_rule_errors};
pub use validate::{blocks_rules, validate, validate_status_update, validate_update};
