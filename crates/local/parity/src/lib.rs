//! Cases → the same requests on two API servers → the differences between their answers.
//!
//! A server is a URL, a CA and a token, so that any two can be compared. The real one is built by
//! `tools/controlplane` and started by [`ControlPlane`]; the other is the embedded one, [`Embedded`].

mod answer;
mod bundle;
mod case;
mod client;
mod compare;
mod controlplane;
mod histories;
mod kinds;
mod known_differences;
mod mask;
mod report;
mod run;
mod script;
mod server;
mod suite;

pub use bundle::{BundleError, gateway_api};
pub use controlplane::{ControlPlane, Durability, NotAvailable, binaries};
pub use mask::mask_text;
pub use server::{Server, ServerError};
pub use suite::{Options, Peers, run as run_suite};
