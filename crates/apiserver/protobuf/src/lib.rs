//! Kubernetes' protocol buffers → the JSON that they stand for.
//!
//! Go clients send built-in kinds as protocol buffers: four bytes, an envelope that names the kind ([`Envelope`]), and
//! the kind's message in it. The messages are data (`data/messages.json`, generated from Kubernetes' Go types), and so are
//! the rules when an empty value is written: [`Envelope::object`] is what Go's JSON encoder writes for the same object.

mod budget;
mod complete;
mod envelope;
mod error;
mod form;
mod messages;
mod parse;
mod wire;

pub use envelope::Envelope;
pub use error::ProtobufError;
