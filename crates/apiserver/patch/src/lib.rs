//! A live object, a patch and the kind's schema → the patched object, as kube-apiserver merges. Pure.
//!
//! Two ways of merging that know the schema: [`mod@ssa`] is server-side apply, with who owns which field, and [`strategic`] is the
//! strategic merge patch of built-in kinds.

pub mod ssa;
pub mod strategic;
