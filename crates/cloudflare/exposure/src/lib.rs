//! Makes a name reachable, protected first: rules, records and Access as one ordered plan.
//!
//! ```text
//! Desired + Footprint (what is recorded as ours) ─┐
//! Reader ── gather ──▶ Live ──────────────────────┴─ plan | withdraw ──▶ Exposure ── apply ──▶ Applied (new Footprint)
//! ```
//!
//! [`plan()`] and [`withdraw()`] are pure. The order of their steps is the security of the whole: what protects a name is
//! written before what publishes it, and taken away after it. [`gather()`] reads, [`apply()`] writes; [`carry_out()`] applies a
//! plan, and looks and plans again where the world was other than it seemed. [`expose()`] and [`unexpose()`] are all of it.

mod app;
mod apply;
mod changes;
mod expose;
mod gather;
mod inventory;
mod journal;
mod live;
mod plan;
mod plan_context;
mod policy;
mod quota;
mod record;
mod recover;
mod redirect;
pub mod rules;
mod step;
mod token;
mod tunnel;
mod wall;
mod withdraw;

pub use portolan_publication::{
    Access, Desired, Footprint, Former, Intent, Part, Record, Rotate, Rule, Token, reasons,
};

pub use app::{APPS, App};
pub use apply::apply;
pub use expose::{ExposureGoal, carry_out, expose, unexpose};
pub use gather::{Fresh, gather, gather_with};
pub use journal::{Applied, Failed, Journal, NewCredential, NextRound};
pub use live::Live;
pub use plan::plan;
pub use plan_context::{Elsewhere, PlanContext, intend};
pub use policy::ReusablePolicy;
pub use quota::Counted;
pub use recover::{Conventions, recover, stands};
pub use redirect::Redirects;
pub use step::{Exposure, ExposureStep};
pub use token::ServiceToken;
pub use tunnel::{TunnelState, UNUSABLE_KEPT, Unusable, unusable};
pub use withdraw::withdraw;
