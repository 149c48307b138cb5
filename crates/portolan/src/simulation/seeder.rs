//! The embedded server's objects → the simulator, just before a request needs them there.
//!
//! Controllers ask Cloudflare only about objects that are stored already, so a look at the store before each request
//! is always in time.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use portolan_apiserver::ApiServer;
use portolan_apiserver::encode::{TypeMeta, object_of};
use portolan_apiserver::store::{Range, StoredObject};
use portolan_cloudflare_api::{HttpTransport, Transport, TransportError};
use portolan_cloudflare_sim::Simulator;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::seeding::seed;
use super::tenants::is_published_route;
use super::wanted::WantedAtCloudflare;
use crate::definitions;

/// Keeps the simulator in step with what objects take for granted.
pub(crate) struct Seeder {
    api: ApiServer,
    simulator: Simulator,
    collections: Vec<SeededCollection>,
    state: Mutex<SeederState>,
    tell: Tell,
}

/// Takes a phrase for each thing that was made.
type Tell = Box<dyn Fn(&[String]) + Send + Sync>;

/// A collection that may name accounts, zones or tokens.
struct SeededCollection {
    name: String,
    type_meta: TypeMeta,
    is_few: bool,
}

#[derive(Default)]
struct SeederState {
    /// The store's version at the last look.
    version: u64,
    /// Objects of large collections that name something.
    naming: BTreeMap<String, Value>,
    /// What was told already; what the simulator refuses would be told again and again.
    told: BTreeSet<String>,
    /// Fingerprints of credentials that are registered.
    registered: BTreeSet<u64>,
}

impl Seeder {
    /// A seeder that tells what it made.
    pub(crate) fn new(api: ApiServer, simulator: Simulator, tell: impl Fn(&[String]) + Send + Sync + 'static) -> Self {
        Self { api, simulator, collections: collections(), state: Mutex::default(), tell: Box::new(tell) }
    }

    /// Makes what is missing.
    pub(crate) fn look(&self) {
        let mut state = self.state.lock().expect("nothing panics while it is held");
        let version = self.api.store().version();
        if version == state.version {
            return;
        }
        let mut objects = Vec::new();
        for collection in &self.collections {
            self.read(collection, &mut state, &mut objects);
        }
        objects.extend(state.naming.values().cloned());
        state.version = version;
        let mut wanted = WantedAtCloudflare::by(&objects);
        wanted.tokens.retain(|token| state.registered.insert(fingerprint("", token)));
        wanted.keys.retain(|(email, key)| state.registered.insert(fingerprint(email, key)));
        let mut made = seed(&self.simulator, &wanted);
        made.retain(|phrase| state.told.insert(phrase.clone()));
        if !made.is_empty() {
            (self.tell)(&made);
        }
    }

    fn read(&self, collection: &SeededCollection, state: &mut SeederState, objects: &mut Vec<Value>) {
        let range = Range { collection: &collection.name, prefix: "", after: "", at: None };
        let Ok(listing) = self.api.store().list(&range) else { return };
        for stored in &listing.objects {
            if collection.is_few {
                objects.push(object_of(stored, &collection.type_meta));
            } else if stored.version > state.version {
                notice(collection, state, stored);
            }
        }
    }
}

/// Remembers an object of a large collection if it names something itself.
fn notice(collection: &SeededCollection, state: &mut SeederState, stored: &Arc<StoredObject>) {
    let object = object_of(stored, &collection.type_meta);
    let details = &object["spec"]["cloudflare"];
    let names = ["secret", "accountId", "domain", "zoneId"].iter().any(|field| details[field].is_string())
        || object["spec"]["existingTunnel"].is_object()
        || is_published_route(&object);
    let place = format!("{}/{}", collection.name, stored.key.path);
    if names {
        state.naming.insert(place, shortened(object));
    } else {
        state.naming.remove(&place);
    }
}

/// Of routes, of which there may be many, the annotations say everything.
fn shortened(mut object: Value) -> Value {
    if is_published_route(&object) {
        object["spec"] = Value::Null;
        object["status"] = Value::Null;
    }
    object
}

fn collections() -> Vec<SeededCollection> {
    let secrets = SeededCollection {
        name: "secrets".to_owned(),
        type_meta: TypeMeta { kind: "Secret".to_owned(), api_version: "v1".to_owned() },
        is_few: true,
    };
    let ours = definitions::objects().into_iter().map(|definition| {
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        SeededCollection {
            name: format!("{}.{group}", text("/spec/names/plural")),
            is_few: matches!(
                kind.as_str(),
                "CloudflareCredentials"
                    | "CloudflareDomain"
                    | "CloudflareZeroTrustTenant"
                    | "CloudflareZeroTrustTemplate"
            ),
            type_meta: TypeMeta { api_version: format!("{group}/{}", text("/spec/versions/0/name")), kind },
        }
    });
    let routes = SeededCollection {
        name: "httproutes.gateway.networking.k8s.io".to_owned(),
        type_meta: TypeMeta { kind: "HTTPRoute".to_owned(), api_version: "gateway.networking.k8s.io/v1".to_owned() },
        is_few: false,
    };
    [secrets, routes].into_iter().chain(ours).collect()
}

fn fingerprint(email: &str, secret: &SecretString) -> u64 {
    let mut hasher = DefaultHasher::new();
    (email, secret.expose_secret()).hash(&mut hasher);
    hasher.finish()
}

/// Sends requests to the simulator after a look at the objects.
pub(crate) struct SeedingTransport {
    pub(crate) inner: HttpTransport,
    pub(crate) seeder: Arc<Seeder>,
}

impl Transport for SeedingTransport {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        self.seeder.look();
        self.inner.send(request)
    }
}
