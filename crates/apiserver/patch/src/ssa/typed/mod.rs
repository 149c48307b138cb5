//! A value beside its [`Shape`]: its fields, what differs between two values, what two values become when merged, and
//! what is left when fields are taken out.

mod compare;
mod field_set;
mod merge;
mod object_meta;
mod reconcile;
mod remove;
mod shape;
mod validate;

pub(crate) use compare::{Comparison, ValueSide, compare};
pub(crate) use field_set::{field_set, with_named_parents};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::{extract, remove};
pub(crate) use shape::Shape;
pub(crate) use validate::{Duplicates, validate};

#[cfg(test)]
mod tests;
