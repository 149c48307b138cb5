//! Pods, Services and slices of the API → addresses that pods have, ports that are forwarded, and names that are found.
//!
//! ```text
//! pod ─► AddressPool ─► PodAddress, carried by the loopback interface where that is allowed
//! Service, slices ─► ServiceTable ─┬─► ServedPort ─► Forwards: sockets, a Balancer for each
//!                                  ├─► the resolver's answers
//!                                  └─► variables of containers
//! ```
//!
//! What is decided (`address_pool`, `balancer`, `dns`, `service`, `table`, `variables`) is pure. Only IPv4 is known here.

pub mod address_pool;
pub mod balancer;
pub mod dns;
mod following;
pub mod forward;
pub mod loopback;
mod pod_addresses;
mod resolver;
pub mod round_trip;
pub mod service;
pub mod table;
#[cfg(test)]
mod testing;
pub mod variables;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::pod::containers::{namespace, uid};
use dns::answer::address_of_name;
use dns::resolv_conf::ResolvConf;
use following::{Follower, KnownLists};
use forward::Forwards;
use loopback::Loopback;
use pod_addresses::PodAddresses;
pub use pod_addresses::{Carried, PodAddress};
use resolver::Resolver;
use table::ServiceTable;
use variables::{ServiceLinks, service_variables};

/// The variable that tells every process of a pod the pod's address.
pub const ADDRESS_VARIABLE: &str = "PORTOLAN_POD_ADDRESS";

/// The address of the node, and of pods on the node's network.
pub const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Open files that this process wants to be allowed, and how many of them are for other things than forwarding.
const WANTED_FILES: u64 = 65_536;
const OTHER_FILES: u64 = 512;
/// How long a start waits until Services are known.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// Whether the loopback interface may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterfaceUse {
    /// Where this process has the right.
    #[default]
    Allowed,
    /// Never.
    Untouched,
}

/// How a network is set up.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// Whether the loopback interface may be changed.
    pub interface: InterfaceUse,
    /// Where pods find the API server, if it listens.
    pub api_server: Option<SocketAddr>,
}

/// What a network can do, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkReport {
    /// Whether the loopback interface carries pods' addresses.
    pub can_add_addresses: bool,
    /// The one command that lets it, where it does not.
    pub command_that_helps: Option<String>,
    /// Where names of Services are found.
    pub resolver: Option<SocketAddr>,
    /// Ports of Services that cannot be listened on, each with why.
    pub not_served: Vec<String>,
}

/// The network of a runner's pods. All of it goes with its last clone, or at [`shutdown`](Self::shutdown).
#[derive(Clone, Debug)]
pub struct Network {
    inner: Arc<NetworkInner>,
}

#[derive(Debug)]
struct NetworkInner {
    settings: NetworkSettings,
    executable: PathBuf,
    table: Arc<RwLock<ServiceTable>>,
    forwards: Arc<Forwards>,
    pods: PodAddresses,
    resolver: Mutex<Option<Resolver>>,
    follower: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Network {
    /// Takes away what runners left that are gone, remembers the addresses of the node's pods, and forwards from now on.
    /// `executable` is this program, for the command that gives it privileges.
    pub async fn start(
        client: kube::Client,
        node: &str,
        executable: PathBuf,
        settings: NetworkSettings,
    ) -> Result<Self, kube::Error> {
        let pods = PodAddresses::new(usable_loopback(settings.interface), first_number());
        match pods.drop_leftovers() {
            Ok(0) => {}
            Ok(dropped) => tracing::info!(dropped, "Took addresses away that an earlier runner left"),
            Err(error) => tracing::warn!(%error, "Could not look for addresses that an earlier runner left"),
        }
        remember(&client, node, &pods).await?;
        let table = Arc::new(RwLock::new(ServiceTable::of_node(node)));
        let forwards = Arc::new(Forwards::new(places()));
        let resolver = match Resolver::listen(table.clone(), resolver::MACHINE.into()).await {
            Ok(resolver) => Some(resolver),
            Err(error) => {
                tracing::warn!(%error, "Names of Services are not served: no address of 127.78.0.0/24 could be listened on");
                None
            }
        };
        let (known, is_known) = watch::channel(KnownLists::default());
        let follower = Follower::new(table.clone(), forwards.clone(), known).run(client);
        let follower = Mutex::new(Some(AbortOnDropHandle::new(tokio::spawn(follower))));
        let resolver = Mutex::new(resolver);
        let inner = NetworkInner { settings, executable, table, forwards, pods, resolver, follower };
        wait_until_known(is_known).await;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Gives a pod an address: the node's own where it is on the node's network, the one that it had, or a free one. None where
    /// all are taken.
    pub fn take_address(&self, pod: &Pod) -> Option<PodAddress> {
        if is_on_node(pod) {
            return Some(PodAddress { address: NODE_ADDRESS, carried: Carried::Yes });
        }
        let taken = self.inner.pods.take(uid(pod))?;
        self.inner.table.write().expect("nobody panics with it").arrives(taken.address);
        Some(taken)
    }

    /// The pod needs its address no more.
    pub fn give_back_address(&self, pod: &Pod) {
        self.inner.pods.give_back(uid(pod));
    }

    /// The pod is being ended: no new request goes to it, whatever the API still says.
    pub fn leaves(&self, address: Ipv4Addr) {
        if address == NODE_ADDRESS {
            return;
        }
        let concerned = self.inner.table.write().expect("nobody panics with it").leaves(address);
        for service in concerned {
            let served = self.inner.table.read().expect("nobody panics with it").served(&service);
            self.inner.forwards.serve(&service, served);
        }
    }

    /// The variables by which a pod's containers find Services.
    pub fn variables(&self, pod: &Pod) -> BTreeMap<String, String> {
        let wants_all = pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false);
        let links = if wants_all { ServiceLinks::All } else { ServiceLinks::ApiServer };
        let api_server = self.inner.settings.api_server.and_then(|address| match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Some(SocketAddrV4::new(NODE_ADDRESS, address.port())),
            IpAddr::V4(ip) => Some(SocketAddrV4::new(ip, address.port())),
            IpAddr::V6(_) => None,
        });
        let table = self.inner.table.read().expect("nobody panics with it");
        service_variables(&table, namespace(pod), links, api_server)
    }

    /// What a pod's `resolv.conf` says.
    pub fn resolv_conf(&self, pod: &Pod) -> String {
        let machine = std::fs::read_to_string(resolver::MACHINE).unwrap_or_default();
        let resolver = self.inner.resolver.lock().expect("nobody panics with it");
        let usual = resolver.as_ref().and_then(Resolver::usual_address);
        ResolvConf::of_pod(pod, usual, &ResolvConf::read(&machine)).text()
    }

    /// The address of a Service, or of an endpoint, by its name: `web.shop`, `web.shop.svc`, `web-0.web.shop.svc.cluster.local`.
    pub fn address_of_name(&self, name: &str) -> Option<Ipv4Addr> {
        address_of_name(&self.inner.table.read().expect("nobody panics with it"), name)
    }

    /// Why a pod's address is not carried, with the command that helps.
    pub fn why_not_carried(&self) -> String {
        let command = self.command_that_helps().unwrap_or_default();
        format!(
            "the loopback interface does not carry the pod's address, so programs that listen on addresses of interfaces only (named) \
             do not find it: run `{command}` and start again"
        )
    }

    /// What it can do now.
    pub fn report(&self) -> NetworkReport {
        let resolver = self.inner.resolver.lock().expect("nobody panics with it");
        NetworkReport {
            can_add_addresses: self.inner.pods.are_carried() == Carried::Yes,
            command_that_helps: self.command_that_helps(),
            resolver: resolver.as_ref().map(|resolver| SocketAddr::V4(resolver.address())),
            not_served: self.inner.forwards.troubles(),
        }
    }

    fn command_that_helps(&self) -> Option<String> {
        command_that_helps(self.inner.pods.are_carried(), &self.inner.executable)
    }

    /// Closes all ports and takes all addresses away.
    pub fn shutdown(&self) {
        self.inner.follower.lock().expect("nobody panics with it").take();
        self.inner.forwards.close();
        self.inner.resolver.lock().expect("nobody panics with it").take();
        self.inner.pods.give_back_all();
    }
}

/// The command that lets a program add addresses and listen on low ports, where it may not.
fn command_that_helps(carried: Carried, executable: &std::path::Path) -> Option<String> {
    let command = || format!("sudo setcap cap_net_admin,cap_net_bind_service+ep {}", executable.display());
    (carried == Carried::No).then(command)
}

/// What the network of a runner that this process would start could do, without starting one: for `portolan doctor`.
pub fn look(executable: &std::path::Path) -> NetworkReport {
    let can_add_addresses = usable_loopback(InterfaceUse::Allowed).is_some();
    let carried = if can_add_addresses { Carried::Yes } else { Carried::No };
    NetworkReport {
        can_add_addresses,
        command_that_helps: command_that_helps(carried, executable),
        resolver: None,
        not_served: Vec::new(),
    }
}

/// The loopback interface, where this process may change it.
fn usable_loopback(interface: InterfaceUse) -> Option<Loopback> {
    if interface == InterfaceUse::Untouched {
        return None;
    }
    let found = Loopback::open().and_then(|loopback| Ok(loopback.may_change()?.then_some(loopback)));
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "The loopback interface cannot be asked for its addresses");
        None
    })
}

/// Where the search for free addresses begins: two runners of one machine hardly ever begin at one place.
fn first_number() -> u16 {
    let [high, low, ..] = uuid::Uuid::new_v4().into_bytes();
    u16::from_be_bytes([high, low])
}

/// The addresses that pods of the node have already are theirs before any new pod gets one.
async fn remember(client: &kube::Client, node: &str, pods: &PodAddresses) -> Result<(), kube::Error> {
    let all: Api<Pod> = Api::all(client.clone());
    for pod in all.list(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await? {
        let status = pod.status.as_ref();
        let is_over = matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"));
        let address = status.and_then(|status| status.pod_ip.as_ref()?.parse().ok());
        if let Some(address) = address.filter(|_| !is_over) {
            pods.remember(uid(&pod), address);
        }
    }
    Ok(())
}

/// Containers are told where Services are, so those must be known before any is started.
async fn wait_until_known(mut known: watch::Receiver<KnownLists>) {
    let whole = known.wait_for(|known| known.is_whole());
    if tokio::time::timeout(KNOWN_WITHIN, whole).await.is_err() {
        tracing::warn!("Services are not known yet; pods begin without them");
    }
}

/// How many connections may pass at a time, by how many files this process may have open. It asks for more first.
fn places() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(WANTED_FILES, |most| most.min(WANTED_FILES));
    let now = limit.current.unwrap_or(WANTED_FILES);
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    let allowed = if now >= wanted || setrlimit(Resource::Nofile, raised).is_err() { now } else { wanted };
    usize::try_from(allowed.saturating_sub(OTHER_FILES) / 2).unwrap_or(usize::MAX).clamp(64, 32_768)
}

/// Whether a pod has the node's network and no address of its own.
fn is_on_node(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_helps_names_this_program_and_is_told_only_where_it_helps() {
        let program = std::path::Path::new("/opt/portolan");

        let command = command_that_helps(Carried::No, program);

        assert_eq!(command.as_deref(), Some("sudo setcap cap_net_admin,cap_net_bind_service+ep /opt/portolan"));
        assert_eq!(command_that_helps(Carried::Yes, program), None);
    }
}
