//! The simulator behind the client, and a record-shaped item.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use portolan_cloudflare_api::{Client, Clients, Credential, Item, Op, Settings, Transport, TransportError};
use portolan_cloudflare_sim::{Dropped, Options, Simulator};
use serde::Deserialize;
use serde_json::json;

/// What is kept of a DNS record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
        let zone = sim.add_zone("example.com", &account, plan).unwrap();
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

/// Makes an A record below example.com.
pub(crate) fn create(name: &str) -> Op {
    Op::Create(json!({"type": "A", "name": format!("{name}.example.com"), "content": "192.0.2.1", "ttl": 300}))
}
