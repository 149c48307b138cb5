//! The simulator behind the client, a scripted API, and a record-shaped item.

#![allow(dead_code, reason = "each test program uses its part")]

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use portolan_cloudflare_api::{
    Batch, Client, Clients, Collection, Credential, Item, Op, Settings, Transport, TransportError, TypedCollection,
};
use portolan_cloudflare_sim::{Dropped, Options, Simulator};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What is kept of a DNS record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) comment: Option<String>,
    pub(crate) ttl: u32,
    #[serde(default)]
    pub(crate) proxied: bool,
}

/// The records of a zone, as these tests keep them.
pub(crate) static RECORDS: TypedCollection<Record> = TypedCollection::of(Collection {
    per_page: 5_000,
    batch: Some(Batch { template: "/zones/{zone_id}/dns_records/batch", max: 200 }),
    ..portolan_cloudflare_api::collection!(Zone, "dns_records", "dns_records")
});

impl Item for Record {
    fn natural_key(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    fn owner_key(&self) -> Option<String> {
        self.comment.clone()
    }
}

/// A simulator, one zone, and a client of it.
pub(crate) struct World {
    pub(crate) sim: Simulator,
    pub(crate) zone: String,
    pub(crate) client: Client,
    // Dropped last, with every handle's writer.
    _clients: Arc<Clients>,
}

impl World {
    pub(crate) fn new(options: Options, plan: &str) -> Self {
        let sim = Simulator::new(options);
        let account = sim.add_account("Test");
        let zone = sim.add_zone("example.com", &account, plan).expect("a new simulator has no such zone");
        let settings = Settings { base_url: "http://sim/client/v4".to_owned(), ..Settings::default() };
        let clients =
            Arc::new(Clients::new(settings, Arc::new(Simulated(sim.clone())), Arc::new(jiff::Timestamp::now)));
        let client = clients.client(&Credential::token("t0ken-canary"));
        Self { sim, zone, client, _clients: clients }
    }
}

struct Simulated(Simulator);

impl Transport for Simulated {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            self.0
                .answer(request)
                .await
                .map_err(|dropped| TransportError { sent: dropped != Dropped::Refused, message: dropped.to_string() })
        })
    }
}

/// An API that a closure plays: address → body.
pub(crate) struct Scripted<F>(F);

impl<F: Fn(&str) -> String + Send + Sync + 'static> Scripted<F> {
    pub(crate) fn clients(script: F) -> Clients {
        let settings = Settings { base_url: "http://api".to_owned(), ..Settings::default() };
        Clients::new(settings, Arc::new(Self(script)), Arc::new(jiff::Timestamp::now))
    }
}

impl<F: Fn(&str) -> String + Send + Sync + 'static> Transport for Scripted<F> {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let body = (self.0)(&request.uri().to_string());
        Box::pin(async move { Ok(http::Response::new(Bytes::from(body))) })
    }
}

/// Makes an A record below example.com.
pub(crate) fn create(name: &str) -> Op {
    Op::Create(json!({"type": "A", "name": format!("{name}.example.com"), "content": "192.0.2.1", "ttl": 300}))
}
