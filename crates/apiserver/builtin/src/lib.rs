//! Kubernetes' built-in kinds as data: what they are called, what their objects get by default, what is refused, and
//! how `kubectl get` shows them. Pure: values in, values and field errors out.

pub mod canonical;
mod check;
mod cron;
mod family;
mod gotypes;
mod ip;
pub mod kinds;
pub mod meta;
pub mod names;
mod paths;
mod pod;
pub mod published;
pub mod quantity;
mod resource;
pub mod selectors;
pub mod strategy;
pub mod table;
mod time;
pub mod types;
pub mod unstructured;
mod validation;
mod value;
mod warning;

pub use check::selects;
pub use family::class;
pub use family::event::{to_core_v1, to_events_v1};
pub use family::service;
pub use kinds::{Generation, KINDS, Kind, SCALE, TOKEN_REQUEST, schema};
pub use meta::NameRule;
pub use pod::{AccountNeed, account_need, admit_account};
pub use pod::{prepare_ephemeral_containers, prepare_resize, validate_ephemeral_containers, validate_resize};
pub use selectors::{field_value, selectable};
pub use strategy::{admit_create, admit_update, prepare_create, prepare_status_update, prepare_update, set_defaults};
pub use table::{TableColumn, age, cells, columns, human_duration, row_conditions};
pub use types::check_types;
pub use validation::{validate_create, validate_status_update, validate_update};
pub use warning::{WriteMoment, warnings};
