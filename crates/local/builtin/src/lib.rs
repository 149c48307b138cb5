//! Kubernetes' built-in kinds as data: what they are called, what their objects get by default, what is refused, and
//! how `kubectl get` shows them. Pure: values in, values and field errors out.

pub mod canonical;
mod check;
mod family;
mod gotypes;
pub mod kinds;
pub mod meta;
pub mod names;
mod pod;
pub mod quantity;
pub mod selectors;
pub mod strategy;
pub mod table;
mod time;
pub mod types;
mod validation;
mod value;

pub use family::event::{to_core_v1, to_events_v1};
pub use kinds::{Generation, KINDS, Kind, schema};
pub use meta::NameRule;
pub use selectors::{field_value, selectable};
pub use strategy::{admit_create, admit_update, prepare_create, prepare_status_update, prepare_update, set_defaults};
pub use table::{Column, age, cells, columns, human_duration, row_conditions};
pub use types::check_types;
pub use validation::{validate_create, validate_status_update, validate_update};
