//! The Cloudflare API as values, and a client that treats calls as a scarce resource.
//!
//! ```text
//! Collection → Request ─┐                                   ┌→ Snapshot → by id, natural key, owner
//!                       ├→ Client (governor → transport) ───┤
//! Op (many callers) → group commit → batch ─────────────────┴→ Written, or one source's ApiError
//! ```
//!
//! Pure, without I/O: [`Request`], [`Collection`] and its [`collections`], envelope and [`error`] classes, the
//! [`governor`]'s decisions, [`RetryPolicy`], [`Snapshot`], the assembly of batches. Around them: [`Transport`] (sockets),
//! [`Client`] (one per credential, from [`Clients`]), [`CollectionHandle`] (a collection's snapshot and writer) and [`Document`]; [`Reader`] is
//! a client that cannot write.

mod budget;
mod cache;
mod call;
mod client;
mod clients;
mod collection;
pub mod collections;
mod credential;
pub mod document;
mod handle;
mod item;
mod metrics;
pub mod objects;
mod reader;
mod settings;
#[cfg(test)]
mod testing;

pub use budget::governor::{Budget, Lane, Limit};
pub use budget::limits::{Limits, is_near};
pub use budget::quota::NearlyFull;
pub use budget::rotation::DriftShare;
pub use budget::schedule::{DriftSchedule, DriftScope};
pub use budget::{audit, governor, rotation};
pub use cache::shared_look::SharedLook;
pub use cache::single::{ACCESS_ORGANIZATION, Single, ZONE};
pub use cache::snapshot::Snapshot;
pub use cache::snapshot_store::Freshness;
pub use call::error::{ApiError, Effect, ErrorClass};
pub use call::headers::BudgetHeaders;
pub use call::request::Request;
pub use call::retry::{Jitter, RetryPolicy};
pub use call::transport::{HttpTransport, Transport, TransportError};
pub use call::{envelope, error};
pub use client::Client;
pub use clients::{Clients, Readers};
pub use collection::{Batch, Collection, Page, Paging, Scope, TokenPermission, TypedCollection, Verb};
pub use credential::{Credential, Identity};
pub use document::Document;
pub use handle::{CollectionHandle, Created};
pub use item::{Op, Written};
pub use metrics::{METRICS, Metrics};
pub use portolan_commit::PendingWrite;
pub use portolan_core::{Entry, Item};
pub use reader::{ReadDocument, ReadRecords, Reader};
pub use settings::{DEFAULT_BASE_URL, Settings, base_url};
