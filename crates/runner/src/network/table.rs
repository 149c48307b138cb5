//! What is known of all Services and slices → who serves a port, and whose an address is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use super::service::{
    EndpointFacts, EndpointState, ServiceFacts, ServiceName, ServicePort, ServiceSort, SliceFacts, TrafficScope,
    Transport,
};

/// The address at which ports of the node are listened on.
const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A port that is listened on for a Service, and who serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedPort {
    /// Where clients ask.
    pub listen: SocketAddrV4,
    /// What they speak.
    pub transport: Transport,
    /// Who serves it, each once.
    pub backends: Vec<SocketAddrV4>,
    /// How long a client stays with one of them.
    pub affinity: Option<Duration>,
}

/// All Services with their slices.
#[derive(Clone, Debug, Default)]
pub struct ServiceTable {
    /// The node that local traffic stays on.
    node: String,
    services: BTreeMap<ServiceName, KnownService>,
    /// Which Service a slice was of, by its namespace and name.
    owners: HashMap<(String, String), ServiceName>,
    by_address: BTreeMap<Ipv4Addr, ServiceName>,
    /// Addresses of pods that are being ended, whatever slices still say.
    leaving: BTreeSet<Ipv4Addr>,
}

#[derive(Clone, Debug, Default)]
struct KnownService {
    facts: Option<ServiceFacts>,
    slices: BTreeMap<String, SliceFacts>,
}

impl ServiceTable {
    /// An empty one, for a node.
    pub fn of_node(node: &str) -> Self {
        Self { node: node.to_owned(), ..Self::default() }
    }

    /// A Service is as these facts say; without facts it is gone, or not ours.
    pub fn put_service(&mut self, name: &ServiceName, facts: Option<ServiceFacts>) {
        self.by_address.retain(|_, of| of != name);
        let address = facts.as_ref().and_then(|facts| match facts.sort {
            ServiceSort::Addressed { address } => Some(address),
            ServiceSort::Headless | ServiceSort::Alias { .. } => None,
        });
        self.by_address.extend(address.map(|address| (address, name.clone())));
        self.services.entry(name.clone()).or_default().facts = facts;
        self.forget_if_empty(name);
    }

    /// A slice is as these facts say, and of that Service; gives back whom that concerns.
    pub fn put_slice(
        &mut self,
        namespace: &str,
        slice: &str,
        facts: Option<(ServiceName, SliceFacts)>,
    ) -> Vec<ServiceName> {
        let key = (namespace.to_owned(), slice.to_owned());
        let mut concerned = Vec::new();
        if let Some(before) = self.owners.remove(&key) {
            if let Some(known) = self.services.get_mut(&before) {
                known.slices.remove(slice);
            }
            self.forget_if_empty(&before);
            concerned.push(before);
        }
        if let Some((service, facts)) = facts {
            self.services.entry(service.clone()).or_default().slices.insert(slice.to_owned(), facts);
            self.owners.insert(key, service.clone());
            concerned.retain(|before| *before != service);
            concerned.push(service);
        }
        concerned
    }

    fn forget_if_empty(&mut self, name: &ServiceName) {
        let is_empty = |known: &KnownService| known.facts.is_none() && known.slices.is_empty();
        if self.services.get(name).is_some_and(is_empty) {
            self.services.remove(name);
        }
    }

    /// The Services that are known.
    pub fn service_names(&self) -> Vec<ServiceName> {
        let known = self.services.iter().filter(|(_, known)| known.facts.is_some());
        known.map(|(name, _)| name.clone()).collect()
    }

    /// The slices that are known, by namespace and name.
    pub fn slice_names(&self) -> Vec<(String, String)> {
        self.owners.keys().cloned().collect()
    }

    /// The pod at this address is being ended; gives back whom that concerns.
    pub fn leaves(&mut self, address: Ipv4Addr) -> Vec<ServiceName> {
        self.leaving.insert(address);
        let has = |known: &KnownService| {
            known.slices.values().flat_map(|slice| &slice.endpoints).any(|one| one.addresses.contains(&address))
        };
        self.services.iter().filter(|(_, known)| has(known)).map(|(name, _)| name.clone()).collect()
    }

    /// The address is a new pod's.
    pub fn arrives(&mut self, address: Ipv4Addr) {
        self.leaving.remove(&address);
    }

    /// What is listened on for a Service.
    pub fn served(&self, name: &ServiceName) -> Vec<ServedPort> {
        let Some((known, facts)) = self.services.get(name).and_then(|known| Some((known, known.facts.as_ref()?)))
        else {
            return Vec::new();
        };
        let ServiceSort::Addressed { address } = facts.sort else { return Vec::new() };
        let mut served = Vec::new();
        for port in &facts.ports {
            let inside = self.backends(known, port, facts.inside);
            let outside = self.backends(known, port, facts.outside);
            let with = |address, number, backends: &Vec<SocketAddrV4>| ServedPort {
                listen: SocketAddrV4::new(address, number),
                transport: port.transport,
                backends: backends.clone(),
                affinity: facts.affinity,
            };
            served.push(with(address, port.port, &inside));
            served.extend(facts.more_addresses.iter().map(|more| with(*more, port.port, &outside)));
            served.extend(port.node_port.map(|node_port| with(NODE_ADDRESS, node_port, &outside)));
        }
        served
    }

    /// Who serves a port: all that are ready, or else those that end and still answer (`pkg/proxy/topology.go`,
    /// `CategorizeEndpoints`).
    fn backends(&self, known: &KnownService, port: &ServicePort, scope: TrafficScope) -> Vec<SocketAddrV4> {
        let in_state = |wanted: EndpointState| -> Vec<SocketAddrV4> {
            let mut found = BTreeSet::new();
            for slice in known.slices.values() {
                let numbers = slice.ports.iter().filter(|one| one.name == port.name && one.transport == port.transport);
                let numbers: Vec<u16> = numbers.map(|one| one.port).collect();
                for endpoint in slice.endpoints.iter().filter(|one| self.is_reached(one, scope)) {
                    let usable = endpoint.addresses.iter().filter(|address| self.state(endpoint, **address) == wanted);
                    for address in usable {
                        found.extend(numbers.iter().map(|number| SocketAddrV4::new(*address, *number)));
                    }
                }
            }
            found.into_iter().collect()
        };
        let ready = in_state(EndpointState::Ready);
        if ready.is_empty() { in_state(EndpointState::Leaving) } else { ready }
    }

    fn is_reached(&self, endpoint: &EndpointFacts, scope: TrafficScope) -> bool {
        match scope {
            TrafficScope::Cluster => true,
            TrafficScope::Node => endpoint.node.as_deref() == Some(&self.node),
        }
    }

    fn state(&self, endpoint: &EndpointFacts, address: Ipv4Addr) -> EndpointState {
        match endpoint.state {
            EndpointState::Ready if self.leaving.contains(&address) => EndpointState::Leaving,
            state => state,
        }
    }

    /// What is known of a Service.
    pub fn facts(&self, name: &ServiceName) -> Option<&ServiceFacts> {
        self.services.get(name)?.facts.as_ref()
    }

    /// Whether a Service is in the namespace.
    pub fn has_namespace(&self, namespace: &str) -> bool {
        let first = ServiceName { namespace: namespace.to_owned(), name: String::new() };
        self.services.range(first..).next().is_some_and(|(name, _)| name.namespace == namespace)
    }

    /// The Services of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a str, &'a ServiceFacts)> {
        let first = ServiceName { namespace: namespace.to_owned(), name: String::new() };
        let here = self.services.range(first..).take_while(move |(name, _)| name.namespace == namespace);
        here.filter_map(|(name, known)| Some((name.name.as_str(), known.facts.as_ref()?)))
    }

    /// The endpoints that the DNS tells of a Service, each with the slice that it is of: those that are ready. (Slices of a
    /// Service that publishes others call them so.)
    pub fn named_endpoints<'a>(
        &'a self,
        name: &ServiceName,
    ) -> impl Iterator<Item = (&'a EndpointFacts, &'a SliceFacts)> {
        let slices = self.services.get(name).into_iter().flat_map(|known| known.slices.values());
        let all = slices.flat_map(|slice| slice.endpoints.iter().map(move |endpoint| (endpoint, slice)));
        all.filter(|(endpoint, _)| endpoint.state == EndpointState::Ready)
    }

    /// The Service whose cluster address it is.
    pub fn service_at(&self, address: Ipv4Addr) -> Option<&ServiceName> {
        self.by_address.get(&address)
    }

    /// The endpoints of headless Services at an address, each with its Service.
    pub fn headless_at(&self, address: Ipv4Addr) -> Vec<(&ServiceName, &EndpointFacts)> {
        let mut found = Vec::new();
        for (name, known) in &self.services {
            if known.facts.as_ref().is_none_or(|facts| facts.sort != ServiceSort::Headless) {
                continue;
            }
            let endpoints = known.slices.values().flat_map(|slice| &slice.endpoints);
            found.extend(endpoints.filter(|one| one.addresses.contains(&address)).map(|endpoint| (name, endpoint)));
        }
        found
    }
}

#[cfg(test)]
mod tests;
