//! Values that every controller shares: names, conditions, problems, plans, marks, the deletion ledger.
//!
//! Everything here is pure: values in, values out. Nothing reads a clock, logs or does I/O; where time matters, `now` is
//! an argument.

pub mod allow;
mod clock;
pub mod condition;
mod diff;
mod gate;
mod health;
mod hostname;
mod ids;
mod item;
pub mod job;
mod ledger;
mod mark;
pub mod metric;
mod network;
mod notice;
mod object;
mod owner;
pub mod ownership;
mod plan;
mod problem;
pub mod reasons;
mod redact;
mod render;
pub mod rights;
pub mod schema;
pub mod text;
mod waypoint;

pub use clock::{Clock, rfc3339};
pub use condition::{Condition, ConditionStatus, NewCondition, merge, same_ignoring, same_ignoring_times};
pub use diff::{FieldDiff, field_diff};
pub use gate::WriteGate;
pub use health::Rollout;
pub use hostname::{Hostname, InvalidName, ZoneName};
pub use ids::{AccountId, RemoteId, ZoneId};
pub use item::{Entry, Item, MarkField};
pub use ledger::{Ledger, Verdict};
pub use mark::{Claim, Mark, owner_key, user_text};
pub use metric::Metric;
pub use network::Network;
pub use notice::{Notice, Severity};
pub use object::{ObjectId, ObjectKey};
pub use owner::{OwnerId, digest_hex};
pub use plan::{Action, Change, Counts, NameChanges, Plan, Target};
pub use problem::{Class, Problem};
pub use redact::redact;
pub use render::Colour;
#[doc(hidden)]
pub use tracing;
