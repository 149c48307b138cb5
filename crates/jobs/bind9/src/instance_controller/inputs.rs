//! What a pass over an instance knows: what is said of it, what is there, and what chance brought.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_bind9_model::conf::{Following, PodAddress};
use portolan_bind9_model::finding::Finding;
use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::keys::{FreshSecrets, KeyPolicy, KeyRing, TsigKey};
use portolan_bind9_model::kinds::reference::ClusterReference;
use portolan_bind9_model::settings::ServerSettings;
use portolan_core::ObjectKey;
use serde_json::Value;

/// What a pass over an instance knows. Of one that goes, nothing needs to be known.
#[derive(Default)]
pub(crate) struct InstanceInputs {
    /// What holds for it.
    pub(crate) settings: ServerSettings,
    /// Its cluster or provider, and which generation of that.
    pub(crate) parent: Option<(ClusterReference, i64)>,
    /// Whether it names a cluster that is not there.
    pub(crate) orphan: bool,
    /// What is wrong with what users' Secrets and `ConfigMaps` hold.
    pub(crate) findings: Vec<Finding>,
    /// How keys are asked for.
    pub(crate) keys: Option<KeyPolicy>,
    /// The keys that are stored.
    pub(crate) stored: Option<KeyRing>,
    /// Further keys that the server knows.
    pub(crate) further: Vec<TsigKey>,
    /// Secrets for new keys, should some be needed.
    pub(crate) fresh: Option<FreshSecrets>,
    /// What the user's own files hold.
    pub(crate) given: BTreeMap<String, String>,
    /// Whom it follows.
    pub(crate) following: Vec<Following>,
    /// Addresses of the servers that follow it.
    pub(crate) followers: Vec<String>,
    /// The objects of its names that are there, by kind and key.
    pub(crate) there: BTreeMap<(String, ObjectKey), Value>,
    /// How its pods are.
    pub(crate) pods: Vec<PodState>,
    /// With which files pods are known to run, by pod and start.
    pub(crate) confirmed: BTreeMap<(String, i64), String>,
    /// Where it listens.
    pub(crate) address: PodAddress,
    /// What time it is.
    pub(crate) now: Option<Timestamp>,
}

impl InstanceInputs {
    /// An object that is there.
    pub(crate) fn found(&self, kind: &str, key: &ObjectKey) -> Option<&Value> {
        self.there.get(&(kind.to_owned(), key.clone()))
    }
}
