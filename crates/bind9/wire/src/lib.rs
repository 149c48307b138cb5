//! What is spoken with BIND 9: commands, updates, transfers, questions for serials; and the responder that seeds zones.
//!
//! ```text
//!                    pure                                        I/O, each with a deadline and a limit per server
//! RndcCommand ─► line, signed frame ─► answer ─► value ─────────  RndcClient   one connection to the control channel
//! ZoneChange ─► batches ─► ZoneUpdate ─► signed message ────────  DnsClient    update, update_all, transfer, soa, query
//! records of a transfer ─► TransferEvent ───────────────────────    "
//! request ─► answer, or a transfer's messages ──────────────────  SeedResponder  SOA and AXFR of zones in its SeedTable
//! ZoneApex, CatalogMember ─► records
//! ```
//!
//! Who decides what a zone shall be needs values only: [`DomainName`], [`ResourceRecord`], [`RecordData`], [`Soa`], [`ZoneUpdate`],
//! [`ZoneApex`], [`CatalogMember`]. Who carries it out has a [`RndcClient`] and a [`DnsClient`] for each server; both are cheap to
//! make, connect when first used, and again when a connection is gone. Errors are classes to decide by: [`RndcRefusal`],
//! [`UpdateRefusal`], [`SignatureFault`], [`TransportFault`]; `class()` of each says when another try makes sense.

mod client;
mod message;
mod responder;
mod rndc;
mod transfer;
mod tsig;
mod update;
mod values;
mod zone;

pub use client::{
    DnsAnswer, DnsClient, DnsError, RndcClient, RndcError, Seeding, SeedingError, ServerLimits, TransferBounds,
    TransportFault, ZoneContents, ZoneTransfer, soa_of_all,
};
pub use message::{
    DomainName, LONGEST_MESSAGE, Labels, MalformedMessage, RecordData, ResourceRecord, ResponseCode, TypeCode,
};
pub use responder::{ResponderLimits, SeedResponder, SeedTable, ZoneSeed};
pub use rndc::{
    DnssecKey, DnssecStatus, JournalFile, KnownKey, RndcCommand, RndcRefusal, ServerStatus, ZoneFiles, ZoneRole,
    ZoneStatus, says_the_same,
};
pub use transfer::{TransferEvent, TransferFault};
pub use tsig::{HmacAlgorithm, HmacKey, SignatureFault};
pub use update::{
    Batches, OversizedGroup, OversizedUpdate, Prerequisite, UpdateRefusal, ZoneChange, ZoneUpdate, batches,
};
pub use values::{DsDigest, InvalidValue, Serial, Soa};
pub use zone::{
    ApexFault, CatalogMember, Nameserver, ZoneApex, catalog_changes, catalog_members, catalog_records, member_id,
};
