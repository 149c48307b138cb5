//! What the controllers share: readings of objects, selectors, pods, owners, steps and patches.

pub(crate) mod condition;
pub(crate) mod diff;
pub(crate) mod kind;
pub(crate) mod letters;
pub(crate) mod object;
pub(crate) mod owner;
pub(crate) mod pod;
pub(crate) mod pod_order;
pub(crate) mod selector;
pub(crate) mod step;
