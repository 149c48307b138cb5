//! What every request shares: the store, the registry, the clock, the limits.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, RwLock};

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::Config;
use crate::access::{AccessControl, TokenKey};
use crate::encode::{self, TypeMeta};
use crate::pod_logs::PodLogs;
use crate::pod_streams::PodStreams;
use crate::registry::{Registry, Resource};
use crate::store::{Store, StoredObject};

/// Tells the time; tests bring their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a client may ask for at most.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Watches open at once.
    pub watches: usize,
    /// Connections into pods open at once.
    pub streams: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { body_bytes: 3 << 20, watches: 4096, streams: 256 }
    }
}

/// Whether new pods need the account that they run as, and get its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounts {
    /// A pod whose account is not there is refused.
    Required,
    /// They are not looked at: for tests whose pods nobody runs, and worlds without accounts.
    #[default]
    Ignored,
}

pub(crate) struct Api {
    pub(crate) store: Store,
    registry: RwLock<Arc<Registry>>,
    pub(crate) clock: Clock,
    pub(crate) limits: PageLimits,
    pub(crate) accounts: Accounts,
    random: Mutex<StdRng>,
    pub(crate) open_watches: AtomicUsize,
    pub(crate) access: AccessControl,
    pod_logs: RwLock<Option<Arc<dyn PodLogs>>>,
    pod_streams: RwLock<Option<Arc<dyn PodStreams>>>,
    /// Places for connections into pods.
    pub(crate) streams: Arc<Semaphore>,
}

impl Api {
    pub(crate) fn new(store: Store, config: &Config, key: TokenKey) -> Self {
        let random = config.seed.map_or_else(StdRng::from_os_rng, StdRng::seed_from_u64);
        let (clock, limits, accounts) = (config.clock.clone(), config.limits, config.accounts);
        Self {
            store,
            registry: RwLock::new(Arc::new(Registry::new())),
            clock,
            limits,
            accounts,
            random: Mutex::new(random),
            open_watches: AtomicUsize::new(0),
            access: AccessControl::new(key),
            pod_logs: RwLock::new(None),
            pod_streams: RwLock::new(None),
            streams: Arc::new(Semaphore::new(limits.streams)),
        }
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().expect("nothing panics while the registry is swapped").clone()
    }

    /// Serves what another server did.
    pub(crate) fn serve_all(&self, registry: Arc<Registry>) {
        *self.registry.write().expect("nothing panics while the registry is swapped") = registry;
    }

    /// What knows the logs of pods, once something runs them.
    pub(crate) fn pod_logs(&self) -> Option<Arc<dyn PodLogs>> {
        self.pod_logs.read().expect("only swapped").clone()
    }

    pub(crate) fn set_pod_logs(&self, logs: Arc<dyn PodLogs>) {
        *self.pod_logs.write().expect("only swapped") = Some(logs);
    }

    /// What lets others into pods, once something runs them.
    pub(crate) fn pod_streams(&self) -> Option<Arc<dyn PodStreams>> {
        self.pod_streams.read().expect("only swapped").clone()
    }

    pub(crate) fn set_pod_streams(&self, streams: Arc<dyn PodStreams>) {
        *self.pod_streams.write().expect("only swapped") = Some(streams);
    }

    /// Serves a CRD's resources from now on; none takes them away.
    pub(crate) fn serve_custom(&self, definition: &str, resources: Vec<Arc<Resource>>) {
        let mut registry = self.registry.write().expect("nothing panics while the registry is swapped");
        *registry = Arc::new(registry.with_custom(definition, resources));
    }

    /// The time as objects carry it, in whole seconds.
    pub(crate) fn now(&self) -> String {
        timestamp((self.clock)())
    }

    pub(crate) fn new_uid(&self) -> String {
        let bytes: u128 = self.random.lock().expect("nothing panics while drawing").random();
        uuid::Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid().to_string()
    }

    /// The five characters after `generateName`: no vowels, so no words.
    pub(crate) fn name_suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = self.random.lock().expect("nothing panics while drawing");
        (0..5).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect()
    }

    /// A stored object as this resource shows it.
    pub(crate) fn object(&self, resource: &Resource, stored: &StoredObject) -> Value {
        let object = encode::object_of(stored, &resource.type_meta());
        if resource.is_verbatim() { object } else { resource.show(object) }
    }
}

/// RFC 3339 in whole seconds.
pub(crate) fn timestamp(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Writes a stored object's text as this resource shows it.
pub(crate) fn write_shown(out: &mut Vec<u8>, resource: &Resource, stored: &StoredObject, type_meta: Option<&TypeMeta>) {
    if resource.is_verbatim() {
        encode::write_object(out, stored, type_meta);
        return;
    }
    let mut object = resource.show(encode::object_of(stored, &resource.type_meta()));
    if type_meta.is_none()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    serde_json::to_writer(out, &object).expect("JSON values are written to memory");
}
