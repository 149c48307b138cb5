//! The vocabulary of the DNS: values in, values out.
//!
//! ```text
//! name as written + zone ─► WrittenName ─► core's Hostname
//! parts by name, or text ─► RecordType + Data ─► the same value in one spelling, as parts and as text
//! addresses of a source  ─► select ─► record types and values
//! ```
//!
//! Host names and zone names are [`portolan_core::Hostname`] and [`portolan_core::ZoneName`].

mod address;
mod addresses;
mod data;
mod loc;
mod name;
mod record_type;
pub mod value;

pub use address::{Address, Family};
pub use addresses::{AddressSelection, select};
pub use data::{Data, DataParts, Naptr};
pub use loc::Location;
pub use name::WrittenName;
pub use record_type::RecordType;
