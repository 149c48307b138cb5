//! What every zone begins with, and what a catalog of zones says: values → records, and back. Pure.

mod apex;
mod catalog;

pub use apex::{ApexFault, Nameserver, ZoneApex};
pub use catalog::{CatalogMember, catalog_changes, catalog_members, catalog_records, member_id};
