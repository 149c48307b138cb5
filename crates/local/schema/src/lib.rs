//! Structural schemas of Kubernetes objects: what a JSON value may hold, and what it becomes.
//!
//! A [`Schema`] comes from a CRD's `openAPIV3Schema` or from the generated data of the built-in kinds. Everything
//! here is pure: values in, values and [`FieldError`]s out.

pub mod field;
pub mod node;

pub use field::{ErrorKind, FieldError, Path};
pub use node::{Cursor, ListType, MapType, Node, NodeId, Schema, SchemaError, Type};
