//! `portolan doctor`: a cluster and its tokens → what is wrong, and what to do next.
//!
//! ```text
//! gather (reads) ─► Facts ─► judge (pure, by the table of checks) ─► Report ─► render
//! ```

pub(crate) mod check;
mod definition;
mod facts;
mod finding;
pub(crate) mod gather;
mod judge;
#[cfg(test)]
mod page;
mod permission;
mod render;
mod rights;
#[cfg(test)]
mod tests;

pub(crate) use facts::{Account, AskedOf, Facts, NameFacts, Secret, TokenNeeds};
pub(crate) use judge::judge;
pub(crate) use render::{explain, render};
pub(crate) use rights::RightsSubject;
