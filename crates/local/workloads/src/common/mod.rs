//! What the controllers share: readings of objects, selectors, pods, owners, and patches.

pub(crate) mod claim;
pub(crate) mod condition;
pub(crate) mod diff;
pub(crate) mod object;
pub(crate) mod pod;
pub(crate) mod selector;
