//! Server-side apply: field ownership and merging by schema, as kube-apiserver does it.
//!
//! [`apply()`] merges a configuration into the live object and [`update()`] records who changed what by any other write.
//! Both are pure: objects in, the object with its `managedFields` out. The caller reads and writes the store, sets
//! defaults after the merge and before it records an update, and calls [`keep_times`] before it writes.

mod apply;
mod error;
mod extract;
pub mod fields_v1;
mod last_applied;
mod managed;
mod manager;
mod path;
pub mod reset;
mod scalar;
pub mod scale;
mod set;
mod time;
mod times;
mod typed;
mod update;
mod zero;

pub use apply::{Force, apply};
pub use error::{ApplyError, Cause, Conflict};
pub use extract::extract;
pub use managed::{Operation, keep_versions};
pub use manager::{manager_or_user_agent, validate_field_manager, validate_managed_fields};
pub use path::{PathElement, PathError};
pub use set::FieldSet;
pub use times::keep_times;
pub use update::update;
pub use zero::{complete, is_built_in};

use portolan_schema::Cursor;

/// Who writes what, where and when.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The field manager; empty is taken as `unknown`.
    pub manager: &'a str,
    /// The version of the request, as `apps/v1`.
    pub api_version: &'a str,
    /// `status`, `scale`, …; empty for the main endpoint.
    pub subresource: &'a str,
    /// The time of the request in RFC 3339.
    pub now: &'a str,
    /// The kind's schema in that version.
    pub schema: Cursor<'a>,
    /// The fields that this endpoint does not let through, see [`mod@reset`].
    pub reset: &'a FieldSet,
}
