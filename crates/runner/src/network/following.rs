//! Watches of Services and slices → the table, and the ports that are open.

use std::collections::BTreeSet;
use std::sync::{Arc, RwLock};

use futures::StreamExt as _;
use futures::stream::select;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;

use super::forward::Forwards;
use super::service::{ServiceFacts, ServiceName, SliceFacts};
use super::table::ServiceTable;

/// Keeps the table and the ports true.
pub(super) struct Follower {
    pub(super) table: Arc<RwLock<ServiceTable>>,
    pub(super) forwards: Arc<Forwards>,
    /// Services and slices that were listed anew; whatever is not among them is gone.
    services: Option<BTreeSet<ServiceName>>,
    slices: Option<BTreeSet<(String, String)>>,
    known: watch::Sender<KnownLists>,
}

/// What was listed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownLists {
    services: bool,
    slices: bool,
}

impl KnownLists {
    /// All of it.
    pub(super) fn is_whole(self) -> bool {
        self.services && self.slices
    }
}

enum Seen {
    Service(Box<Event<Service>>),
    Slice(Box<Event<EndpointSlice>>),
}

impl Follower {
    pub(super) fn new(
        table: Arc<RwLock<ServiceTable>>,
        forwards: Arc<Forwards>,
        known: watch::Sender<KnownLists>,
    ) -> Self {
        Self { table, forwards, services: None, slices: None, known }
    }

    /// Follows until it is aborted.
    pub(super) async fn run(mut self, client: kube::Client) {
        let services: Api<Service> = Api::all(client.clone());
        let slices: Api<EndpointSlice> = Api::all(client);
        let services = watcher(services, watcher::Config::default()).default_backoff();
        let slices = watcher(slices, watcher::Config::default()).default_backoff();
        let services = services.map(|event| event.map(|event| Seen::Service(Box::new(event)))).boxed();
        let slices = slices.map(|event| event.map(|event| Seen::Slice(Box::new(event)))).boxed();
        let mut events = select(services, slices);
        while let Some(event) = events.next().await {
            match event {
                Ok(Seen::Service(event)) => self.see_service(*event),
                Ok(Seen::Slice(event)) => self.see_slice(*event),
                Err(error) => tracing::debug!(%error, "A watch of Services or slices broke; it begins anew"),
            }
        }
    }

    fn see_service(&mut self, event: Event<Service>) {
        match event {
            Event::Init => self.services = Some(BTreeSet::new()),
            Event::InitApply(service) => {
                if let (Some(listed), Some(name)) = (&mut self.services, ServiceName::of(&service)) {
                    listed.insert(name);
                }
                self.put_service(&service, ServiceFacts::of(&service));
            }
            Event::InitDone => {
                let listed = self.services.take().unwrap_or_default();
                let gone = self.locked(|table| table.service_names());
                for name in gone.into_iter().filter(|name| !listed.contains(name)) {
                    self.locked(|table| table.put_service(&name, None));
                    self.serve(&name);
                }
                self.known.send_modify(|known| known.services = true);
            }
            Event::Apply(service) => self.put_service(&service, ServiceFacts::of(&service)),
            Event::Delete(service) => self.put_service(&service, None),
        }
    }

    fn put_service(&self, service: &Service, facts: Option<ServiceFacts>) {
        if let Some(name) = ServiceName::of(service) {
            self.locked(|table| table.put_service(&name, facts));
            self.serve(&name);
        }
    }

    fn see_slice(&mut self, event: Event<EndpointSlice>) {
        match event {
            Event::Init => self.slices = Some(BTreeSet::new()),
            Event::InitApply(slice) => {
                if let Some(listed) = &mut self.slices {
                    listed.insert(slice_name(&slice));
                }
                self.put_slice(&slice_name(&slice), facts(&slice));
            }
            Event::InitDone => {
                let listed = self.slices.take().unwrap_or_default();
                let gone = self.locked(|table| table.slice_names());
                for name in gone.into_iter().filter(|name| !listed.contains(name)) {
                    self.put_slice(&name, None);
                }
                self.known.send_modify(|known| known.slices = true);
            }
            Event::Apply(slice) => self.put_slice(&slice_name(&slice), facts(&slice)),
            Event::Delete(slice) => self.put_slice(&slice_name(&slice), None),
        }
    }

    fn put_slice(&self, (namespace, name): &(String, String), facts: Option<(ServiceName, SliceFacts)>) {
        for concerned in self.locked(|table| table.put_slice(namespace, name, facts)) {
            self.serve(&concerned);
        }
    }

    fn serve(&self, service: &ServiceName) {
        let served = self.locked(|table| table.served(service));
        self.forwards.serve(service, served);
    }

    fn locked<T>(&self, work: impl FnOnce(&mut ServiceTable) -> T) -> T {
        work(&mut self.table.write().expect("nobody panics with it"))
    }
}

fn slice_name(slice: &EndpointSlice) -> (String, String) {
    let metadata = &slice.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

fn facts(slice: &EndpointSlice) -> Option<(ServiceName, SliceFacts)> {
    Some((ServiceName::of_slice(slice)?, SliceFacts::of(slice)?))
}
