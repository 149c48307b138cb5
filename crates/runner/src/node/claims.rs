//! Claims of the API → folders of this machine, bound to them, kept until they go and no pod has them.
//!
//! ```text
//! claim ─► folder ─► PersistentVolume ─► claim names it ─► Bound          deleted, no pod has it ─► folder goes ─► volume goes
//! ```
//!
//! Every step is safe to repeat: the volume is named by the claim's uid, and the folder goes before the volume that tells of it.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Resource as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::NodeContext;
use super::events::{EventSort, EventSubject};
use crate::machine::files::make_claim_folder;
use crate::pod::claims::{
    CLAIM_PROTECTION, ClaimVerdict, PROVISIONED_BY, PROVISIONER, bound_claim, bound_status, claim_verdict, volume,
    volume_name,
};
use crate::pod::containers::{has_ended, namespace, uid};
use crate::pod::references::references;

/// Namespace and name.
type ClaimKey = (String, String);

/// Sees to the claims of all namespaces.
pub(super) struct ClaimKeeper {
    context: Arc<NodeContext>,
    claims: HashMap<ClaimKey, PersistentVolumeClaim>,
    /// Which claims the pods have that are not over, by the pods' uids.
    pods: HashMap<String, BTreeSet<ClaimKey>>,
    /// Whether all pods are known: before that any claim may be in use.
    are_pods_known: bool,
    /// What is listed anew.
    listed: Option<HashMap<ClaimKey, PersistentVolumeClaim>>,
    /// Why claims were refused, so that each is told once.
    refused: HashMap<String, String>,
}

impl ClaimKeeper {
    pub(super) fn new(context: Arc<NodeContext>) -> Self {
        let (claims, pods, refused) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { context, claims, pods, are_pods_known: false, listed: None, refused }
    }

    /// A pod as it is now.
    pub(super) async fn pod_seen(&mut self, pod: &Pod) {
        if has_ended(pod) {
            return self.pod_gone(pod).await;
        }
        let space = namespace(pod);
        let names = references(pod).claims;
        if !names.is_empty() {
            let keys = names.into_iter().map(|name| (space.to_owned(), name)).collect();
            self.pods.insert(uid(pod).to_owned(), keys);
        }
    }

    /// A pod has ended, or is gone: claims may have waited for that.
    pub(super) async fn pod_gone(&mut self, pod: &Pod) {
        for key in self.pods.remove(uid(pod)).unwrap_or_default() {
            if let Some(claim) = self.claims.get(&key).cloned() {
                self.look_at(&claim).await;
            }
        }
    }

    /// Pods that are not among those listed are gone.
    pub(super) async fn pods_listed(&mut self, there: &std::collections::HashSet<String>) {
        self.pods.retain(|pod, _| there.contains(pod));
        self.are_pods_known = true;
        for claim in self.claims.values().cloned().collect::<Vec<_>>() {
            self.look_at(&claim).await;
        }
    }

    /// A claim as it is now. Gives back its key, since pods may wait for it.
    pub(super) async fn see(&mut self, event: Event<PersistentVolumeClaim>) -> Option<ClaimKey> {
        match event {
            Event::Init => self.listed = Some(HashMap::new()),
            Event::InitApply(claim) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(key(&claim), claim);
                }
            }
            Event::InitDone => {
                self.claims = self.listed.take().unwrap_or_default();
                self.release_lost().await;
                for claim in self.claims.values().cloned().collect::<Vec<_>>() {
                    self.look_at(&claim).await;
                }
            }
            Event::Apply(claim) => {
                self.claims.insert(key(&claim), claim.clone());
                self.look_at(&claim).await;
                return Some(key(&claim));
            }
            Event::Delete(claim) => {
                self.claims.remove(&key(&claim));
                self.refused.remove(claim.metadata.uid.as_deref().unwrap_or_default());
                self.release(&volume_name(&claim), &key(&claim)).await;
            }
        }
        None
    }

    async fn look_at(&mut self, claim: &PersistentVolumeClaim) {
        let outcome = match claim_verdict(claim) {
            ClaimVerdict::Bind => self.bind(claim).await,
            ClaimVerdict::Ends if !self.is_used(&key(claim)) => self.let_go(claim).await,
            ClaimVerdict::Refused(why) => {
                self.refuse(claim, why).await;
                Ok(())
            }
            ClaimVerdict::Ends | ClaimVerdict::Bound | ClaimVerdict::Foreign => Ok(()),
        };
        // Somebody else was faster, or the claim is gone: its next version says so.
        if let Err(error) = outcome {
            tracing::debug!(claim = claim.metadata.name, %error, "Could not see to a claim");
        }
    }

    fn is_used(&self, claim: &ClaimKey) -> bool {
        !self.are_pods_known || self.pods.values().any(|claims| claims.contains(claim))
    }

    async fn bind(&mut self, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
        let (space, name) = key(claim);
        let folder = self.context.folders.claim(&space, &name);
        if let Err(error) = make_claim_folder(&folder, None) {
            self.refuse(claim, format!("making the claim's folder {}: {error}", folder.display())).await;
            return Ok(());
        }
        let volumes: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let wanted = volume(claim, &folder.to_string_lossy(), &self.context.settings.node);
        let wanted = serde_json::from_value(wanted).map_err(kube::Error::SerdeError)?;
        let (params, patches) = (PostParams::default(), PatchParams::default());
        match volumes.create(&params, &wanted).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other?),
        }
        let phase = json!({"status": {"phase": "Bound"}});
        volumes.patch_status(&volume_name(claim), &patches, &Patch::Merge(&phase)).await?;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.context.client.clone(), &space);
        claims.patch(&name, &patches, &Patch::Merge(&bound_claim(claim))).await?;
        claims.patch_status(&name, &patches, &Patch::Merge(&bound_status(claim))).await?;
        let message = format!("Successfully provisioned volume {}", volume_name(claim));
        self.tell(claim, EventSort::Normal, "ProvisioningSucceeded", message).await;
        Ok(())
    }

    async fn refuse(&mut self, claim: &PersistentVolumeClaim, why: String) {
        let known = self.refused.insert(claim.metadata.uid.clone().unwrap_or_default(), why.clone());
        if known.as_ref() != Some(&why) {
            self.tell(claim, EventSort::Warning, "ProvisioningFailed", why).await;
        }
    }

    async fn tell(&self, claim: &PersistentVolumeClaim, sort: EventSort, reason: &str, message: String) {
        let about = EventSubject::new("PersistentVolumeClaim", claim.meta());
        self.context.recorder.tell(&about, sort, reason, message, None).await;
    }

    /// No pod has it any more: it may go.
    async fn let_go(&self, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
        let finalizers = claim.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|one| one == CLAIM_PROTECTION) {
            return Ok(());
        }
        let others: Vec<&String> = finalizers.iter().filter(|one| *one != CLAIM_PROTECTION).collect();
        let metadata = &claim.metadata;
        let patch = json!({"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": others}});
        let (space, name) = key(claim);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.context.client.clone(), &space);
        claims.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
    }

    /// Volumes of ours whose claims went while no runner was there.
    async fn release_lost(&mut self) {
        let volumes: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let there = match volumes.list(&ListParams::default()).await {
            Ok(there) => there,
            Err(error) => return tracing::debug!(%error, "Could not list volumes"),
        };
        for volume in there {
            let is_ours = volume.metadata.annotations.as_ref().and_then(|all| all.get(PROVISIONED_BY));
            let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.clone()).unwrap_or_default();
            let key = (claim.namespace.unwrap_or_default(), claim.name.unwrap_or_default());
            let has_claim = self.claims.get(&key).is_some_and(|known| known.metadata.uid == claim.uid);
            if is_ours.is_some_and(|who| who == PROVISIONER) && !has_claim {
                self.release(volume.metadata.name.as_deref().unwrap_or_default(), &key).await;
            }
        }
    }

    /// The claim is gone: so is what was in its folder. A new claim of its name begins with an empty one.
    async fn release(&mut self, volume: &str, (space, name): &ClaimKey) {
        let folder = self.context.folders.claim(space, name);
        let removed = match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        if let Err(error) = removed {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "Could not remove the files of a claim that is gone; remove them by hand");
            return;
        }
        let volumes: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let none: Value = json!({"metadata": {"finalizers": null}});
        let freed = volumes.patch(volume, &PatchParams::default(), &Patch::Merge(&none)).await.map(drop);
        let gone = match freed {
            Ok(()) => volumes.delete(volume, &DeleteParams::default()).await.map(drop),
            Err(error) => Err(error),
        };
        match gone {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => tracing::debug!(volume, %error, "Could not delete the volume of a claim that is gone"),
            Ok(()) => {}
        }
        // One of the same name may wait for the folder.
        if let Some(next) = self.claims.get(&(space.clone(), name.clone())).cloned() {
            Box::pin(self.look_at(&next)).await;
        }
    }
}

fn key(claim: &PersistentVolumeClaim) -> ClaimKey {
    let metadata = &claim.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}
