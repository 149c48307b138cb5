//! Whether this process still holds a lease, asked by everybody who writes in its name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::client::Body;
use portolan_core::WriteGate;
use tokio::time::Instant;

/// The right to write that a lease gives, for as long as others surely respect it. Without a lease it is never held.
#[derive(Clone, Default)]
pub struct Leadership(Arc<Mutex<Leading>>);

#[derive(Clone, Copy, Default)]
enum Leading {
    #[default]
    Not,
    Until(Instant),
    /// Nobody else stands for it.
    Always,
}

impl Leadership {
    /// Whether it is held now. Time alone ends it: no task has to run for that.
    pub fn is_held(&self) -> bool {
        match *self.held() {
            Leading::Not => false,
            Leading::Until(end) => Instant::now() < end,
            Leading::Always => true,
        }
    }

    /// Open while it is held.
    pub fn gate(&self) -> WriteGate {
        let held = self.clone();
        WriteGate::new(move || held.is_held())
    }

    /// A client of the same cluster whose writes are sent while it is held.
    pub fn guard(&self, client: &Client) -> Client {
        let (held, inner) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (held, inner) = (held.clone(), inner.clone());
            async move {
                let reads = matches!(*request.method(), http::Method::GET | http::Method::HEAD | http::Method::OPTIONS);
                if reads || held.is_held() {
                    inner.send(request).await
                } else {
                    Err(kube::Error::Service("the lease ran out before the write was sent".into()))
                }
            }
        });
        Client::new(service, client.default_namespace())
    }

    /// A lease holds until then.
    pub(crate) fn until(&self, end: Instant) {
        *self.held() = Leading::Until(end);
    }

    /// There is no lease to lose.
    pub(crate) fn always(&self) {
        *self.held() = Leading::Always;
    }

    /// The lease is lost or given back.
    pub(crate) fn ends(&self) {
        *self.held() = Leading::Not;
    }

    fn held(&self) -> MutexGuard<'_, Leading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
