//! Manifests → what is wrong with them, field by field: the same as the schemas say, and what no schema can say.
//!
//! Nothing here fails: whatever a manifest holds, it has findings or it has none.

mod acl;
mod dnssec;
mod image;
mod keys;
mod lifetime;
mod pod_shape;
mod server;
mod zone;

pub(crate) use acl::is_key_name;
pub use acl::{AclEntry, AclMatch};
pub use dnssec::{SigningPolicy, policy};
pub use image::image;
pub use keys::{rotate_after_hours, rotation_hours, strong_algorithm};
pub use lifetime::{Lifetime, lifetime_seconds};
pub use pod_shape::pod_shape;
pub use server::server;
pub use zone::{zone, zone_name};
