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
//! [`Client`] (one per credential, from [`Clients`]), [`Remote`] (a collection's snapshot and writer) and [`Document`]; [`Reader`] is
//! a client that cannot write.

pub mod audit;
mod batch;
mod client;
mod clients;
mod collection;
pub mod collections;
mod commit;
mod credential;
pub mod document;
pub mod envelope;
pub mod error;
pub mod governor;
mod headers;
mod item;
mod lately;
mod limiter;
mod limits;
mod listing;
mod looked;
mod manner;
mod metrics;
pub mod objects;
mod quota;
mod rarely;
mod reader;
mod redact;
mod remote;
mod request;
mod retry;
pub mod rotation;
mod schedule;
mod sender;
mod settings;
mod snapshot;
mod store;
#[cfg(test)]
mod testing;
mod transport;
mod urgency;

pub use client::Client;
pub use clients::{Clients, Readers};
pub use collection::{Batch, Collection, Page, Paging, Scope, TypedCollection, Verb};
pub use credential::{Credential, Identity};
pub use document::Document;
pub use error::{ApiError, Effect, ErrorClass};
pub use governor::{Budget, Lane, Limit};
pub use headers::BudgetHeaders;
pub use item::{Entry, Item, Op, Written};
pub use limits::{Limits, is_near};
pub use looked::Looked;
pub use metrics::{METRICS, Metrics};
pub use portolan_commit::PendingWrite as Expected;
pub use quota::NearlyFull;
pub use rarely::{ACCESS_ORGANIZATION, Single, ZONE};
pub use reader::{ReadDocument, ReadRecords, Reader};
pub use remote::{Created, Remote};
pub use request::Request;
pub use retry::{Jitter, RetryPolicy};
pub use rotation::DriftShare;
pub use schedule::{DriftSchedule, DriftScope};
pub use settings::{DEFAULT_BASE_URL, Settings, base_url};
pub use snapshot::Snapshot;
pub use store::Freshness;
pub use transport::{HttpTransport, Transport, TransportError};
