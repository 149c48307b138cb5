//! A pod's volumes and the objects that they name → files with their modes, or folders with their lives.
//!
//! Files of one volume are laid out as a kubelet does it (`pkg/volume/util/atomic_writer.go`): they lie in a folder of their own, `..data`
//! is a link to it, and each first part of a path is a link through `..data`; so one rename changes all of them at once.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Secret, Volume, VolumeProjection,
};

use super::claims::is_bound;
use super::downward::{DownwardError, NodeCapacity, field_text, resource_text};
use super::references::{PodSources, token_wish};

/// The mode of files where nobody says one.
const USUAL_MODE: i32 = 0o644;
/// Tokens are for their owner only.
const TOKEN_MODE: i32 = 0o600;

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFile {
    /// What is in it.
    pub content: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// The files of a volume, by their paths below it.
pub type VolumeFiles = BTreeMap<String, VolumeFile>;

/// What a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeContent {
    /// Files that the runner writes, and writes anew when they change.
    Files(VolumeFiles),
    /// An empty folder that goes with the pod.
    Empty,
    /// The folder of a claim, which stays.
    Claim {
        /// The claim's name.
        name: String,
    },
}

/// Why a volume cannot be made: the pod waits until that changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// A `ConfigMap` that is not there.
    #[error("configmap {0:?} not found")]
    NoConfigMap(String),
    /// A Secret that is not there.
    #[error("secret {0:?} not found")]
    NoSecret(String),
    /// A claim that is not there.
    #[error("persistentvolumeclaim {0:?} not found")]
    NoClaim(String),
    /// A claim without a volume.
    #[error("persistentvolumeclaim {0:?} is not bound: kubectl describe pvc {0} tells why")]
    Unbound(String),
    /// A key that is asked for and not there.
    #[error("references non-existent {kind} key: {key}")]
    NoKey {
        /// `config` or `secret`.
        kind: &'static str,
        /// The key.
        key: String,
    },
    /// A path that leads out of the volume, or is none.
    #[error("the path {0:?} of a file leads out of its volume: write one without `..` that does not begin with /")]
    Path(String),
    /// A token that could not be made.
    #[error("no token for audience {0:?}: the API server made none")]
    NoToken(String),
    /// A volume of a sort that a process of this machine cannot be given.
    #[error("volumes of the sort {0} cannot be given to processes of this machine")]
    Unsupported(&'static str),
    /// A field or resource that has no text.
    #[error(transparent)]
    Downward(#[from] DownwardError),
}

/// What a volume of the pod is.
pub fn volume_content(
    pod: &Pod,
    volume: &Volume,
    sources: &PodSources,
    node: &NodeCapacity,
) -> Result<VolumeContent, VolumeError> {
    if volume.empty_dir.is_some() {
        return Ok(VolumeContent::Empty);
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return claimed(&claim.claim_name, sources);
    }
    let maker = FileMaker { pod, sources, node };
    let files = if let Some(map) = &volume.config_map {
        maker.of_config_map(&map.name, map.items.as_deref(), map.optional, map.default_mode)?
    } else if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        maker.of_secret(name, secret.items.as_deref(), secret.optional, secret.default_mode)?
    } else if let Some(downward) = &volume.downward_api {
        maker.of_fields(downward.items.iter().flatten(), downward.default_mode)?
    } else if let Some(projected) = &volume.projected {
        maker.of_projected(projected)?
    } else {
        return Err(VolumeError::Unsupported(sort_of(volume)));
    };
    Ok(VolumeContent::Files(files))
}

fn claimed(name: &str, sources: &PodSources) -> Result<VolumeContent, VolumeError> {
    match sources.claims.get(name) {
        None => Err(VolumeError::NoClaim(name.to_owned())),
        Some(claim) if !is_bound(claim) => Err(VolumeError::Unbound(name.to_owned())),
        Some(_) => Ok(VolumeContent::Claim { name: name.to_owned() }),
    }
}

/// The sort of a volume that no process can be given.
fn sort_of(volume: &Volume) -> &'static str {
    let sorts = [
        (volume.host_path.is_some(), "hostPath"),
        (volume.nfs.is_some(), "nfs"),
        (volume.csi.is_some(), "csi"),
        (volume.ephemeral.is_some(), "ephemeral"),
        (volume.image.is_some(), "image"),
        (volume.iscsi.is_some(), "iscsi"),
    ];
    sorts.iter().find(|(is_it, _)| *is_it).map_or("that the pod names", |(_, sort)| sort)
}

/// Who makes files for a pod.
struct FileMaker<'a> {
    pod: &'a Pod,
    sources: &'a PodSources,
    node: &'a NodeCapacity,
}

impl FileMaker<'_> {
    fn of_config_map(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
        mode: Option<i32>,
    ) -> Result<VolumeFiles, VolumeError> {
        match self.sources.config_maps.get(name) {
            Some(map) => picked(&all_of_map(map), items, optional, mode, "config"),
            None if optional == Some(true) => Ok(VolumeFiles::new()),
            None => Err(VolumeError::NoConfigMap(name.to_owned())),
        }
    }

    fn of_secret(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
        mode: Option<i32>,
    ) -> Result<VolumeFiles, VolumeError> {
        match self.sources.secrets.get(name) {
            Some(secret) => picked(&all_of_secret(secret), items, optional, mode, "secret"),
            None if optional == Some(true) => Ok(VolumeFiles::new()),
            None => Err(VolumeError::NoSecret(name.to_owned())),
        }
    }

    fn of_fields<'f>(
        &self,
        items: impl Iterator<Item = &'f DownwardAPIVolumeFile>,
        mode: Option<i32>,
    ) -> Result<VolumeFiles, VolumeError> {
        let mut files = VolumeFiles::new();
        for item in items {
            let content = self.field(item)?.into_bytes();
            files.insert(inside(&item.path)?, VolumeFile { content, mode: bits(item.mode.or(mode), USUAL_MODE) });
        }
        Ok(files)
    }

    fn field(&self, item: &DownwardAPIVolumeFile) -> Result<String, VolumeError> {
        if let Some(field) = &item.field_ref {
            return Ok(field_text(self.pod, field, self.sources)?);
        }
        let Some(resource) = &item.resource_field_ref else { return Ok(String::new()) };
        let name = resource.container_name.clone().unwrap_or_default();
        let main = self.pod.spec.as_ref().and_then(|spec| spec.containers.first());
        let own = main.ok_or(DownwardError::UnknownContainer(name))?;
        Ok(resource_text(self.pod, own, resource, self.node)?)
    }

    /// Several sources in one folder: of two files at one path the later is there.
    fn of_projected(&self, projected: &ProjectedVolumeSource) -> Result<VolumeFiles, VolumeError> {
        let mut files = VolumeFiles::new();
        for source in projected.sources.iter().flatten() {
            files.extend(self.of_projection(source, projected.default_mode)?);
        }
        Ok(files)
    }

    fn of_projection(&self, source: &VolumeProjection, mode: Option<i32>) -> Result<VolumeFiles, VolumeError> {
        if let Some(map) = &source.config_map {
            return self.of_config_map(&map.name, map.items.as_deref(), map.optional, mode);
        }
        if let Some(secret) = &source.secret {
            return self.of_secret(&secret.name, secret.items.as_deref(), secret.optional, mode);
        }
        if let Some(downward) = &source.downward_api {
            return self.of_fields(downward.items.iter().flatten(), mode);
        }
        let Some(token) = &source.service_account_token else {
            return Err(VolumeError::Unsupported(
                "projected, with a source that is none of configMap, secret, downwardAPI, token",
            ));
        };
        let wish = token_wish(token.audience.as_deref(), token.expiration_seconds);
        let audience = || wish.audience.clone().unwrap_or_else(|| "the API server".to_owned());
        let text = self.sources.tokens.get(&wish).ok_or_else(|| VolumeError::NoToken(audience()))?;
        let file = VolumeFile { content: text.clone().into_bytes(), mode: bits(Some(TOKEN_MODE), TOKEN_MODE) };
        Ok([(inside(&token.path)?, file)].into())
    }
}

fn all_of_map(map: &ConfigMap) -> BTreeMap<&str, &[u8]> {
    let texts = map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_bytes()));
    texts.chain(map.binary_data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice()))).collect()
}

fn all_of_secret(secret: &Secret) -> BTreeMap<&str, &[u8]> {
    secret.data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice())).collect()
}

/// The keys that are asked for, each at its path; all where none is named.
fn picked(
    all: &BTreeMap<&str, &[u8]>,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: Option<i32>,
    kind: &'static str,
) -> Result<VolumeFiles, VolumeError> {
    let file = |content: &[u8], own: Option<i32>| VolumeFile {
        content: content.to_vec(),
        mode: bits(own.or(mode), USUAL_MODE),
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Ok(all.iter().map(|(key, content)| ((*key).to_owned(), file(content, None))).collect());
    };
    let mut files = VolumeFiles::new();
    for item in items {
        match all.get(item.key.as_str()) {
            Some(content) => drop(files.insert(inside(&item.path)?, file(content, item.mode))),
            None if optional == Some(true) => {}
            None => return Err(VolumeError::NoKey { kind, key: item.key.clone() }),
        }
    }
    Ok(files)
}

fn bits(mode: Option<i32>, usual: i32) -> u32 {
    u32::try_from(mode.unwrap_or(usual)).unwrap_or(0) & 0o777
}

/// The files with what `fsGroup` adds to their modes: the group may read them (`pkg/volume/volume_linux.go`, `roMask`).
pub fn readable_by_group(mut files: VolumeFiles, group: Option<u32>) -> VolumeFiles {
    if group.is_some() {
        for file in files.values_mut() {
            file.mode |= 0o440;
        }
    }
    files
}

/// A path that stays in its volume, in its shortest form.
pub fn inside(path: &str) -> Result<String, VolumeError> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leads_out = path.starts_with('/') || parts.contains(&"..") || path.contains('\0');
    // What begins so is the runner's own.
    let is_ours = parts.first().is_some_and(|first| first.starts_with(".."));
    if leads_out || is_ours || parts.is_empty() {
        return Err(VolumeError::Path(path.to_owned()));
    }
    Ok(parts.join("/"))
}

/// The names in a volume's own folder that lead through `..data` to its files.
pub fn entry_names(files: &VolumeFiles) -> BTreeSet<&str> {
    files.keys().map(|path| path.split('/').next().unwrap_or(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::{Value, json};

    fn sources() -> PodSources {
        let map = json!({"data": {"a.conf": "one", "b.conf": "two"}, "binaryData": {"c": "AAE="}});
        let secret = json!({"data": {"key": "aHVudGVy"}});
        PodSources {
            config_maps: [("map".to_owned(), serde_json::from_value(map).unwrap())].into(),
            secrets: [("secret".to_owned(), serde_json::from_value(secret).unwrap())].into(),
            tokens: [(token_wish(None, Some(3607)), "a.b.c".to_owned())].into(),
            ..PodSources::default()
        }
    }

    fn content(volume: Value) -> Result<VolumeContent, VolumeError> {
        content_with(volume, &sources())
    }

    fn content_with(mut volume: Value, sources: &PodSources) -> Result<VolumeContent, VolumeError> {
        volume["name"] = json!("v");
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let pod = pod(json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m"}}}]}));
        volume_content(&pod, &volume, sources, &NodeCapacity { cpu: "2".into(), memory: "8Gi".into() })
    }

    /// `PATH=CONTENT MODE` for each file.
    fn files(volume: Value) -> Vec<String> {
        let VolumeContent::Files(files) = content(volume).unwrap() else { panic!("it has files") };
        let shown = |(path, file): (&String, &VolumeFile)| {
            format!("{path}={} {:o}", String::from_utf8_lossy(&file.content), file.mode)
        };
        files.iter().map(shown).collect()
    }

    #[test]
    fn a_config_map_is_a_file_for_each_key() {
        assert_eq!(files(json!({"configMap": {"name": "map"}})), ["a.conf=one 644", "b.conf=two 644", "c=\0\u{1} 644"]);
    }

    #[test]
    fn keys_that_are_named_get_their_paths_and_modes_and_others_are_left_out() {
        let volume = json!({"configMap": {"name": "map", "defaultMode": 0o400, "items": [
            {"key": "a.conf", "path": "etc/./app.conf"}, {"key": "b.conf", "path": "b", "mode": 0o755}]}});

        assert_eq!(files(volume), ["b=two 755", "etc/app.conf=one 400"]);
    }

    #[test]
    fn the_group_of_a_pods_volumes_may_read_its_files() {
        let modes = |group| -> Vec<u32> {
            let files = [0o400, 0o755].map(|mode| (format!("{mode:o}"), VolumeFile { content: Vec::new(), mode }));
            readable_by_group(files.into(), group).values().map(|file| file.mode).collect()
        };

        assert_eq!(modes(Some(9)), [0o440, 0o755]);
        assert_eq!(modes(None), [0o400, 0o755]);
    }

    #[test]
    fn a_secret_is_decoded() {
        assert_eq!(files(json!({"secret": {"secretName": "secret", "defaultMode": 0o600}})), ["key=hunter 600"]);
    }

    #[test]
    fn a_projected_volume_has_the_files_of_all_its_sources() {
        let volume = json!({"projected": {"defaultMode": 0o440, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "map", "items": [{"key": "a.conf", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1m"}}]}}]}});

        assert_eq!(files(volume), ["ca.crt=one 440", "cpu=500 440", "namespace=harbour 440", "token=a.b.c 600"]);
    }

    #[test]
    fn what_is_not_there_is_named_unless_it_is_optional() {
        let told = |volume| content(volume).unwrap_err().to_string();
        let missing = json!({"configMap": {"name": "map", "items": [{"key": "none", "path": "p"}]}});

        assert_eq!(told(json!({"configMap": {"name": "none"}})), "configmap \"none\" not found");
        assert_eq!(told(json!({"secret": {"secretName": "none"}})), "secret \"none\" not found");
        assert_eq!(told(missing), "references non-existent config key: none");
        assert!(files(json!({"secret": {"secretName": "none", "optional": true}})).is_empty());
    }

    #[test]
    fn paths_that_lead_out_of_the_volume_are_refused() {
        for path in ["../up", "a/../../up", "/etc/passwd", "..data", "..", "", "./"] {
            assert!(inside(path).is_err(), "{path}");
        }
        assert_eq!(inside("a//b/./c"), Ok("a/b/c".to_owned()));
    }

    #[test]
    fn folders_are_empty_or_those_of_claims() {
        let claim = json!({"persistentVolumeClaim": {"claimName": "data"}});
        let with = |phase: &str| {
            let there = serde_json::from_value(json!({"status": {"phase": phase}})).unwrap();
            let sources = PodSources { claims: [("data".to_owned(), there)].into(), ..sources() };
            content_with(claim.clone(), &sources)
        };

        assert_eq!(content(json!({"emptyDir": {}})), Ok(VolumeContent::Empty));
        assert_eq!(with("Bound"), Ok(VolumeContent::Claim { name: "data".into() }));
        assert_eq!(with("Pending"), Err(VolumeError::Unbound("data".into())));
        assert_eq!(content(claim.clone()), Err(VolumeError::NoClaim("data".into())));
        assert_eq!(content(json!({"hostPath": {"path": "/"}})), Err(VolumeError::Unsupported("hostPath")));
    }

    #[test]
    fn each_first_part_of_a_path_is_one_entry() {
        let file = VolumeFile { content: Vec::new(), mode: 0o644 };
        let files: VolumeFiles = ["a", "d/x", "d/y"].map(|path| (path.to_owned(), file.clone())).into();

        assert_eq!(entry_names(&files).into_iter().collect::<Vec<_>>(), ["a", "d"]);
    }
}
