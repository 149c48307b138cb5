//! Ports of Services and who serves them → sockets that are listened on, and what passes through them.
//!
//! ```text
//! ServedPort ─► an open port: a task that listens ─► Balancer ─► backend
//! ```
//!
//! A port closes when its Service goes, and all that passes through it ends. A backend that goes is asked no more; what
//! passes to it goes on to its own end.

mod tcp;
mod udp;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use super::service::{ServiceName, Transport};
use super::table::ServedPort;

/// When a port is tried again that could not be listened on.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// A port by what it speaks and where it is.
type PortKey = (Transport, SocketAddrV4);

/// Who serves a port, as its task is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PortBackends {
    backends: Vec<SocketAddrV4>,
    affinity: Option<Duration>,
}

/// What all open ports share.
#[derive(Debug)]
struct ForwardContext {
    /// One for each descriptor's worth of connections.
    places: Arc<Semaphore>,
    /// Ports that cannot be listened on, and why.
    troubles: Mutex<BTreeMap<PortKey, String>>,
}

/// A port that is open, or is being tried.
#[derive(Debug)]
struct OpenPort {
    owner: ServiceName,
    backends: watch::Sender<PortBackends>,
    _task: AbortOnDropHandle<()>,
}

/// All ports that are listened on.
#[derive(Debug)]
pub struct Forwards {
    context: Arc<ForwardContext>,
    ports: Mutex<HashMap<PortKey, OpenPort>>,
}

impl Forwards {
    /// None yet; at most so many connections will pass at a time.
    pub fn new(places: usize) -> Self {
        let context = ForwardContext { places: Arc::new(Semaphore::new(places)), troubles: Mutex::default() };
        Self { context: Arc::new(context), ports: Mutex::default() }
    }

    /// From now on these are a Service's ports; what it had beside them closes. Must be called inside a tokio runtime.
    pub fn serve(&self, service: &ServiceName, wanted: Vec<ServedPort>) {
        let mut ports = self.ports.lock().expect("nobody panics with it");
        let keys: Vec<PortKey> = wanted.iter().map(key).collect();
        ports.retain(|key, open| open.owner != *service || keys.contains(key));
        self.context.forget_all_but(|key| ports.contains_key(key));
        for port in wanted {
            let key = key(&port);
            let backends = PortBackends { backends: port.backends, affinity: port.affinity };
            match ports.get(&key) {
                Some(open) if open.owner == *service => {
                    open.backends.send_if_modified(|now| std::mem::replace(now, backends.clone()) != backends);
                }
                // Two Services cannot have one port: who had it first keeps it.
                Some(open) => {
                    let (namespace, name) = (&open.owner.namespace, &open.owner.name);
                    tracing::warn!(port = %key.1, service = %service.name, "Service {namespace}/{name} has the port already");
                }
                None => {
                    ports.insert(key, self.open(key, service, backends));
                }
            }
        }
    }

    fn open(&self, (transport, listen): PortKey, owner: &ServiceName, backends: PortBackends) -> OpenPort {
        let (backends, told) = watch::channel(backends);
        let context = self.context.clone();
        let task = match transport {
            Transport::Tcp => tokio::spawn(tcp::forward(listen, told, context)),
            Transport::Udp => tokio::spawn(udp::forward(listen, told, context)),
        };
        OpenPort { owner: owner.clone(), backends, _task: AbortOnDropHandle::new(task) }
    }

    /// Closes all.
    pub fn close(&self) {
        self.ports.lock().expect("nobody panics with it").clear();
        self.context.forget_all_but(|_| false);
    }

    /// Ports that cannot be listened on, each with why.
    pub fn troubles(&self) -> Vec<String> {
        self.context.troubles.lock().expect("nobody panics with it").values().cloned().collect()
    }
}

fn key(port: &ServedPort) -> PortKey {
    (port.transport, port.listen)
}

impl ForwardContext {
    /// A port could not be listened on. It is told once.
    fn trouble(&self, key: PortKey, error: &std::io::Error) {
        let (transport, listen) = (key.0.label(), key.1);
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => "another program has it: end that, or give the Service another clusterIP",
            std::io::ErrorKind::PermissionDenied => {
                "ports below 1024 need a privilege: `portolan doctor` names the command"
            }
            _ => "it is tried again",
        };
        let text = format!("listening on {transport} {listen}: {error}: {hint}");
        let mut troubles = self.troubles.lock().expect("nobody panics with it");
        if troubles.get(&key) != Some(&text) {
            tracing::warn!("A port of a Service is not served: {text}");
            troubles.insert(key, text);
        }
    }

    fn is_well(&self, key: PortKey) {
        self.troubles.lock().expect("nobody panics with it").remove(&key);
    }

    fn forget_all_but(&self, kept: impl Fn(&PortKey) -> bool) {
        self.troubles.lock().expect("nobody panics with it").retain(|key, _| kept(key));
    }
}
