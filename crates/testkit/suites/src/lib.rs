//! What must hold of every kind and every job, played through in worlds: the suites, random histories, and the fixtures of
//! each job.
//!
//! [`lifecycle`] holds what is true of every kind, [`invariants`] and [`zerotrust::invariants`] what must hold whatever
//! happened, [`histories`] and [`zerotrust::histories`] live through what users do in any order. The world itself, which
//! knows no job, is `portolan-testkit`; who uses a suite finds it here too.

pub mod former;
pub mod histories;
pub mod invariants;
pub mod jobs;
pub mod lifecycle;
pub mod manifests;
pub mod sample;
pub mod zerotrust;

pub use jobs::cloudflare_world;
pub use portolan_testkit::*;
