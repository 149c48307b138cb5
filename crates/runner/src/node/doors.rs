//! Requests to connect into pods → the workers that see these pods through, by the API server's trait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use portolan_apiserver::{ExecOrder, ExecSession, PodPort, PodSocket, PodStreams, StreamRefusal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::commands::SideCommands;
use super::port_forward::dial;
use super::worker::PodFact;

/// The ways into the pods that run.
#[derive(Clone, Default)]
pub struct PodDoors {
    workers: Arc<Mutex<HashMap<String, UnboundedSender<PodFact>>>>,
}

impl PodDoors {
    /// A pod has a worker from now on.
    pub(super) fn open(&self, pod: &str, worker: UnboundedSender<PodFact>) {
        self.workers.lock().expect("nobody panics with it").insert(pod.to_owned(), worker);
    }

    /// And now it has none.
    pub(super) fn close(&self, pod: &str) {
        self.workers.lock().expect("nobody panics with it").remove(pod);
    }

    fn worker(&self, pod: &str) -> Option<UnboundedSender<PodFact>> {
        self.workers.lock().expect("nobody panics with it").get(pod).cloned()
    }

    /// What runs commands beside a container; none where it does not run.
    async fn beside(&self, pod: &str, container: &str) -> Option<SideCommands> {
        let (answer, answered) = oneshot::channel();
        self.worker(pod)?.send(PodFact::Asked { container: container.to_owned(), answer }).ok()?;
        answered.await.ok()?
    }
}

impl PodStreams for PodDoors {
    fn exec(&self, order: ExecOrder) -> BoxFuture<'static, Result<ExecSession, StreamRefusal>> {
        let doors = self.clone();
        Box::pin(async move {
            let beside = doors.beside(&order.uid, &order.container).await.ok_or_else(|| {
                StreamRefusal(format!("container {:?} of pod {:?} does not run", order.container, order.pod))
            })?;
            beside.session(&order).await.map_err(StreamRefusal)
        })
    }

    fn dial(&self, port: PodPort) -> BoxFuture<'static, Result<Box<dyn PodSocket>, StreamRefusal>> {
        let is_here = self.worker(&port.uid).is_some();
        Box::pin(async move {
            if !is_here {
                return Err(StreamRefusal(format!("pod {:?} does not run", port.pod)));
            }
            let socket = dial(&port.address, port.port).await.map_err(StreamRefusal)?;
            Ok(Box::new(socket) as Box<dyn PodSocket>)
        })
    }
}
