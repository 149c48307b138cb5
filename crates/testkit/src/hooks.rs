//! Who looks on while the operator asks Cloudflare: called right before and right after each request has its effect.
//!
//! What is called must not wait: between a request's effect and the call nothing else happens.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request};
use portolan_cloudflare_sim::{Simulator, credential_id};
use serde_json::Value;

use crate::failpoints::StopSide;

/// A request on its way.
#[derive(Clone, Debug)]
pub struct HookedCall {
    /// Its method.
    pub method: Method,
    /// Its path, without `/client/v4`.
    pub path: String,
    /// Whose it is, as the log of requests names it.
    pub credential: String,
    body: Bytes,
}

impl HookedCall {
    pub(crate) fn of(request: &Request<Bytes>) -> Self {
        let path = request.uri().path();
        let path = path.strip_prefix("/client/v4").unwrap_or(path).to_owned();
        let token = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let credential = credential_id(token.strip_prefix("Bearer ").unwrap_or(token));
        Self { method: request.method().clone(), path, credential, body: request.body().clone() }
    }

    /// Whether it asks for a change.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// Its body as it was sent; empty where there is none or where it is no text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    /// Its body; `null` where there is none.
    pub fn body(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

type Hook = Box<dyn FnMut(&HookedCall, &Simulator) + Send>;

/// All who look on. Clones share them.
#[derive(Clone, Default)]
pub struct Hooks {
    all: Arc<Mutex<Vec<(StopSide, Hook)>>>,
}

impl Hooks {
    /// Calls `hook` on that side of every request from now on.
    pub fn add(&self, side: StopSide, hook: impl FnMut(&HookedCall, &Simulator) + Send + 'static) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push((side, Box::new(hook)));
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn tell(&self, side: StopSide, call: &HookedCall, simulator: &Simulator) {
        // Taken out, so that a hook may ask the simulator for anything.
        let mut hooks = std::mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, hook) in hooks.iter_mut().filter(|(wanted, _)| *wanted == side) {
            hook(call, simulator);
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        hooks.append(&mut all);
        *all = hooks;
    }
}
