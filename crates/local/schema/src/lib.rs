//! Structural schemas of Kubernetes objects: what a JSON value may hold, and what it becomes.
//!
//! A [`Schema`] comes from a CRD's `openAPIV3Schema` or from the generated data of the built-in kinds. Everything
//! here is pure: values in, values and [`FieldError`]s out.

pub mod default;
pub mod field;
pub mod node;
pub mod object_meta;
pub mod prune;
#[cfg(test)]
mod testing;

pub use default::default;
pub use field::{ErrorKind, FieldError, Path};
pub use node::{Additional, Cursor, ListType, MapType, Node, NodeId, Schema, SchemaError, Type};
pub use prune::{Root, prune};
