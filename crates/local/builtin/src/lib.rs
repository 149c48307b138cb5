//! Kubernetes' built-in kinds as data: what they are called, what their objects get by default, what is refused, and
//! how `kubectl get` shows them. Pure: values in, values and field errors out.

pub mod kinds;
pub mod meta;
pub mod names;
mod value;

pub use kinds::{Generation, KINDS, Kind, schema};
pub use meta::NameRule;
