//! Who may do what: roles, bindings and a request in; a decision with the real server's words out.
//!
//! A request is [`Attributes`]: who, which verb, on what. A [`Policy`] holds the roles and bindings of a cluster and
//! decides. What a user may hand on to others is in [`escalation`], whom a user may act as in [`impersonation`].

pub mod aggregation;
mod attributes;
mod binding;
pub mod bootstrap;
mod decision;
pub mod escalation;
pub mod impersonation;
mod policy;
pub mod request;
mod rule;
mod selector;
mod text;
pub mod user;

pub use attributes::{AccessTarget, Attributes, Denial, ResourceTarget};
pub use binding::{Binding, RoleReference, Subject, SubjectKind};
pub use decision::Decision;
pub use policy::{Policy, Rules};
pub use rule::Rule;
pub use user::User;
