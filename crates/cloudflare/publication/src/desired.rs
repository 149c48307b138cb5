//! What a name should look like at Cloudflare: already validated, nothing left to resolve but names of policies and groups.

use std::net::Ipv4Addr;
use std::time::Duration;

use portolan_core::{Hostname, Mark};
use serde_json::{Map, Value};

/// "Make this name reachable, protected so."
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Whose it is.
    pub mark: Mark,
    /// The name.
    pub hostname: Hostname,
    /// Account that everything is in.
    pub account_id: String,
    /// The tunnel's rule.
    pub rule: Option<Rule>,
    /// The DNS record. None beside a rule means that the zone is not known: a CNAME that stands is left alone.
    pub record: Option<Record>,
    /// The Access application.
    pub access: Option<Access>,
    /// The service token.
    pub token: Option<Token>,
    /// Whether requests over plain HTTP are sent to HTTPS.
    pub redirect: bool,
    /// Whether things of others at this name may be taken over.
    pub adopt: bool,
}

/// A rule of a tunnel's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The tunnel.
    pub tunnel_id: String,
    /// Where requests go, as `http://web.shop.svc.cluster.local:80`.
    pub service: String,
    /// Fields of the rule's `originRequest`, under the API's names; empty for none.
    pub origin_request: Map<String, Value>,
}

/// A DNS record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A name that is reached through a tunnel.
    Cname {
        /// Zone of the name.
        zone_id: String,
        /// The tunnel's own name.
        target: String,
    },
    /// A name that is only resolved.
    Address {
        /// Zone of the name.
        zone_id: String,
        /// Where it leads.
        ip: Ipv4Addr,
        /// Seconds that it may be kept; 1 lets Cloudflare choose.
        ttl: u32,
        /// Whether Cloudflare stands in front of it.
        proxied: bool,
    },
}

impl Record {
    /// Zone of the name.
    pub fn zone_id(&self) -> &str {
        match self {
            Self::Cname { zone_id, .. } | Self::Address { zone_id, .. } => zone_id,
        }
    }
}

/// An Access application and who may pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The application's name.
    pub name: String,
    /// Fields of the application under the API's names; not `name`, `domain`, `type` and `policies`.
    pub settings: Map<String, Value>,
    /// Addresses that may pass.
    pub emails: Vec<String>,
    /// Groups that may pass: names, ids, or `everyone`.
    pub groups: Vec<String>,
    /// Reusable policies by id; they come first.
    pub policy_ids: Vec<String>,
    /// Reusable policies by name.
    pub policy_names: Vec<String>,
    /// Name of our policy for addresses and groups.
    pub policy_name: String,
    /// Name of our policy for the service token.
    pub service_policy_name: String,
}

/// A service token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// How long it lives, as `8760h`, or `forever`.
    pub duration: String,
    /// A request for a new secret.
    pub rotate: Option<Rotate>,
}

/// A request for a new secret of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// Tells one request from another: a request that was carried out is not carried out again.
    pub request: String,
    /// How long the old secret still opens.
    pub overlap: Duration,
}
