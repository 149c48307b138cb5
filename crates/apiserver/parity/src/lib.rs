//! Cases → the same requests on two API servers → the differences between their answers.
//!
//! A server is a URL, a CA and a token, so that any two can be compared. The real one is built by
//! `tools/controlplane` and started by [`ControlPlane`]; the other is the embedded one, [`Embedded`].

mod all;
mod answer;
mod audit;
mod bundle;
mod case;
mod client;
mod clients;
mod compare;
mod controlplane;
mod embedded;
mod histories;
mod kinds;
mod known_differences;
mod kubectl;
mod mask;
mod names;
mod options;
mod passes;
mod peers;
mod rbac;
mod report;
mod run;
mod script;
mod server;
mod sound;
mod suite;
mod workloads;

pub use all::run;
pub use audit::Audited;
pub use bundle::{BundleError, gateway_api};
pub use controlplane::{ControlPlane, Controllers, Durability, NotAvailable, binaries};
pub use embedded::{Embedded, EmbeddedError};
pub use peers::{Peers, PeersError};
pub use server::{PeerServer, ServerError};
