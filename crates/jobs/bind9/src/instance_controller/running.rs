//! Servers that have other files than they run with → told to read them; and which are known to run with which.
//!
//! A server says of its version which files it runs with (`rndc status` shows it), so nothing has to be stored, and nobody guesses how long a
//! node takes to bring a `ConfigMap` into a pod: while a server does not say so it is told to read its files anew, and asked again later.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::keys::{KeyRing, TsigKey};
use portolan_bind9_model::kinds::keys::RndcAlgorithm;
use portolan_bind9_wire::{HmacAlgorithm, HmacKey, RndcClient, RndcCommand, RndcError, ServerLimits};

use crate::instance_controller::plan::InstancePlan;

/// A server that does not answer must not hold up others.
pub(crate) fn limits() -> ServerLimits {
    ServerLimits {
        connect: Duration::from_secs(2),
        answer: Duration::from_secs(5),
        operation: Duration::from_secs(10),
        ..ServerLimits::default()
    }
}

/// A server at one start of its program.
type ServerStart = (String, i64);

/// With which files servers are known to run.
#[derive(Default)]
pub(crate) struct RunningFiles {
    known: Mutex<BTreeMap<ServerStart, String>>,
}

impl RunningFiles {
    /// What is known of these pods.
    pub(crate) fn confirmed(&self, pods: &[PodState]) -> BTreeMap<ServerStart, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |pod: &PodState| (pod.uid.clone(), pod.restarts);
        pods.iter().filter_map(|pod| Some((start(pod), known.get(&start(pod))?.clone()))).collect()
    }

    /// Tells servers to read their files where they do not run with them. Answers what there is to say of those that still do not.
    pub(crate) async fn bring_in_line(&self, plan: &InstancePlan) -> Vec<String> {
        let Some(ring) = &plan.ring else { return Vec::new() };
        let asked = plan.unconfirmed.iter().map(|pod| async move { (pod, ask(pod, ring, &plan.version).await) });
        let mut behind = Vec::new();
        for (pod, answer) in join_all(asked).await {
            match answer {
                Ok(()) => self.note(pod, &plan.version),
                Err(why) => behind.push(format!("{}: {why}", pod.name)),
            }
        }
        for why in &behind {
            tracing::debug!("A server does not run with its files yet: {why}");
        }
        behind
    }

    fn note(&self, pod: &PodState, version: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(uid, restarts), _| *uid != pod.uid || *restarts == pod.restarts);
        known.insert((pod.uid.clone(), pod.restarts), version.to_owned());
    }
}

/// Asks a server with each key that it may know, the current one first.
async fn ask(pod: &PodState, ring: &KeyRing, version: &str) -> Result<(), String> {
    let address: IpAddr =
        pod.address.as_deref().unwrap_or_default().parse().map_err(|_| "it has no address".to_owned())?;
    let server = SocketAddr::new(address, pod.control_port);
    let mut refused = "it takes no key".to_owned();
    for key in ring.valid_for(|set| &set.control) {
        match ask_with(server, key, version).await {
            Err(RndcError::KeyRefused { .. }) => refused = format!("it does not take the key {} yet", key.name),
            Err(error) => return Err(error.to_string()),
            Ok(true) => return Ok(()),
            Ok(false) => return Err("its files have not reached it yet".to_owned()),
        }
    }
    Err(refused)
}

/// Whether a server runs with its files, after it was told to read them where it did not.
pub(crate) async fn ask_with(server: SocketAddr, key: &TsigKey, version: &str) -> Result<bool, RndcError> {
    let Ok(key) = HmacKey::new(&key.name, algorithm(key.algorithm), &key.secret) else { return Ok(false) };
    let client = RndcClient::new(server, key, limits());
    if client.call(&RndcCommand::Status).await?.contains(version) {
        return Ok(true);
    }
    client.reconfigure().await?;
    Ok(client.call(&RndcCommand::Status).await?.contains(version))
}

/// What a key signs with, as the clients know it.
pub(crate) fn algorithm(algorithm: RndcAlgorithm) -> HmacAlgorithm {
    match algorithm {
        RndcAlgorithm::HmacSha1 => HmacAlgorithm::Sha1,
        RndcAlgorithm::HmacSha224 => HmacAlgorithm::Sha224,
        RndcAlgorithm::HmacSha256 => HmacAlgorithm::Sha256,
        RndcAlgorithm::HmacSha384 => HmacAlgorithm::Sha384,
        RndcAlgorithm::HmacSha512 => HmacAlgorithm::Sha512,
    }
}

#[cfg(test)]
mod tests;
