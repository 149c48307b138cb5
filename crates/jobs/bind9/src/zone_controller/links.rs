//! Pods of servers and the keys that they may know → clients, made once for each pod and kept while zones use them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::keys::{KeyRing, KeySet, TsigKey};
use portolan_bind9_wire::{DnsClient, HmacKey, RndcClient};

use crate::instance_controller::{algorithm, limits};

/// A server as it is spoken to with one set of its keys.
pub(crate) struct ServerLink {
    /// The pod, at one start of its server.
    pub(crate) start: (String, i64),
    pub(crate) control: RndcClient,
    pub(crate) dns: Arc<DnsClient>,
    /// The key that updates are signed with, and that zones are fetched from us with.
    pub(crate) update: HmacKey,
}

/// Where a pod is, which keys it is spoken to with.
type LinkKey = (String, i64, SocketAddr, SocketAddr, String);

/// The clients of all servers. A server that hangs holds up those who ask it: each has its own.
#[derive(Default)]
pub(crate) struct ServerLinks {
    known: Mutex<BTreeMap<LinkKey, Arc<ServerLink>>>,
}

/// Clients that are kept: far more than servers have keys and starts at a time.
const MOST: usize = 4_096;

impl ServerLinks {
    /// The clients of a pod, by each set of keys that it may know, the current one first; none while it has no address.
    pub(crate) fn of(&self, pod: &PodState, ring: &KeyRing) -> Vec<Arc<ServerLink>> {
        let Some(address) = pod.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok()) else {
            return Vec::new();
        };
        let sets = std::iter::once(&ring.current).chain(&ring.previous);
        sets.filter_map(|keys| self.link(pod, address, keys, &ring.generation())).collect()
    }

    fn link(&self, pod: &PodState, address: IpAddr, keys: &KeySet, generation: &str) -> Option<Arc<ServerLink>> {
        let (control, dns) = (SocketAddr::new(address, pod.control_port), SocketAddr::new(address, pod.dns_port));
        // The generation tells secrets apart that have one name.
        let named = format!("{generation} {} {}", keys.control.name, keys.update.name);
        let key = (pod.uid.clone(), pod.restarts, control, dns, named);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = known.get(&key) {
            return Some(Arc::clone(link));
        }
        if known.len() >= MOST {
            known.clear();
        }
        let update = hmac(&keys.update)?;
        let link = Arc::new(ServerLink {
            start: (pod.uid.clone(), pod.restarts),
            control: RndcClient::new(control, hmac(&keys.control)?, limits()),
            dns: Arc::new(DnsClient::new(dns, Some(update.clone()), limits())),
            update,
        });
        known.insert(key, Arc::clone(&link));
        Some(link)
    }
}

fn hmac(key: &TsigKey) -> Option<HmacKey> {
    HmacKey::new(&key.name, algorithm(key.algorithm), &key.secret).ok()
}
