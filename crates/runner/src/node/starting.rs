//! A pod's objects, volumes and containers → folders on this machine, and processes that see them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::BoundObjectReference;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Container, PersistentVolumeClaim, Secret, ServiceAccount, Volume};
use kube::api::{Api, PostParams};

use super::events::EventSort;
use super::messages::message_path;
use super::worker::{PodFact, PodWorker};
use crate::machine::beneath::{below_root, beneath};
use crate::machine::files::{
    FileOwner, keep_file, make_claim_folder, make_folder, make_passage, make_private, open_folder, put_files,
};
use crate::machine::init::{LaunchOrder, LaunchUser};
use crate::machine::processes::ContainerLaunch;
use crate::machine::programs::program_file;
use crate::pod::claims::is_bound;
use crate::pod::containers::{containers, namespace, uid};
use crate::pod::environment::container_command;
use crate::pod::identity::{ProcessUser, RunnerUser, fs_group, process_user};
use crate::pod::lifecycle::{hook, post_start};
use crate::pod::paths::{MountedPath, substituted};
use crate::pod::programs::{Executable, program_of};
use crate::pod::record::{StartTrouble, Termination, VolumesState};
use crate::pod::references::{PodSources, TokenWish, references};
use crate::pod::volumes::{VolumeContent, inside, readable_by_group, volume_content};

/// What a container was started with, for what runs beside it: probes and hooks.
#[derive(Clone, Debug)]
pub(super) struct ContainerFiles {
    pub(super) mounts: Vec<MountedPath>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
    pub(super) user: Option<LaunchUser>,
    /// Where it leaves why it ended.
    pub(super) message: PathBuf,
}

/// Why a container was not started.
enum NotStarted {
    /// It waits.
    Trouble(StartTrouble),
    /// It has ended before it began.
    Ended(String),
}

impl PodWorker {
    /// Makes all volumes; what is missing is told, and tried again.
    pub(super) async fn mount(&mut self) {
        match self.put_volumes().await {
            Ok(()) => {
                self.mount_failures = 0;
                self.record.volumes = VolumesState::Ready;
            }
            Err(why) => {
                // As a kubelet does it: half a second, doubling to two minutes.
                let wait =
                    SignedDuration::from_millis(500 << self.mount_failures.min(8)).min(SignedDuration::from_secs(122));
                self.mount_failures += 1;
                let is_told = self.mount_failures > 1 || !self.waits_for_claims();
                let again = self.context.now().saturating_add(wait).expect("a span of seconds");
                self.record.volumes = VolumesState::Failed { again };
                // A claim that came with the pod is bound in a moment.
                if is_told {
                    self.tell(EventSort::Warning, "FailedMount", why, None).await;
                }
            }
        }
    }

    fn waits_for_claims(&self) -> bool {
        self.sources.claims.values().any(|claim| !is_bound(claim))
    }

    /// A claim has changed: who waits for it tries again.
    pub(super) fn claim_changed(&mut self, name: &str) {
        if let VolumesState::Failed { again } = &mut self.record.volumes
            && references(&self.pod).claims.contains(name)
        {
            *again = self.context.now();
        }
    }

    /// An object that the pod may name has changed.
    pub(super) async fn source_changed(&mut self, name: &str) {
        let found = references(&self.pod);
        if !found.config_maps.contains(name) && !found.secrets.contains(name) {
            return;
        }
        match &mut self.record.volumes {
            VolumesState::Failed { again } => *again = self.context.now(),
            VolumesState::Ready => self.refresh_files().await,
            VolumesState::Absent => {}
        }
        let now = self.context.now();
        for trouble in self.record.containers.values_mut().filter_map(|one| one.trouble.as_mut()) {
            trouble.again = trouble.again.map(|_| now);
        }
    }

    /// Brings the files of volumes up to date. What is no longer there stays as it was.
    pub(super) async fn refresh_files(&mut self) {
        if self.record.is_over {
            return;
        }
        if let Err(why) = self.put_volumes().await {
            tracing::debug!(pod = uid(&self.pod), why, "Could not bring the files of a pod up to date");
            self.tokens_due = None;
        }
    }

    async fn put_volumes(&mut self) -> Result<(), String> {
        self.sources = self.read_sources().await?;
        let volumes: Vec<Volume> =
            self.pod.spec.iter().flat_map(|spec| spec.volumes.clone().unwrap_or_default()).collect();
        let folders = &self.context.folders;
        make_passage(&folders.pod(uid(&self.pod)), self.only_group())
            .and_then(|()| make_passage(&folders.volumes(uid(&self.pod)), self.only_group()))
            .and_then(|()| make_private(&folders.containers(uid(&self.pod))))
            .map_err(|error| format!("making the pod's folders: {error}"))?;
        for volume in &volumes {
            self.put_volume(volume)
                .map_err(|why| format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name))?;
        }
        Ok(())
    }

    fn put_volume(&self, volume: &Volume) -> Result<(), String> {
        let content = volume_content(&self.pod, volume, &self.sources, &self.context.capacity)
            .map_err(|error| error.to_string())?;
        let owner = self.file_owner();
        let folder = self.context.folders.volume(uid(&self.pod), &volume.name);
        let put = match content {
            VolumeContent::Files(files) => {
                put_files(&folder, &readable_by_group(files, fs_group(&self.pod)), owner).map(drop)
            }
            VolumeContent::Empty => open_folder(&folder, owner, fs_group(&self.pod)),
            VolumeContent::Claim { name } => {
                let claim = self.context.folders.claim(namespace(&self.pod), &name);
                make_claim_folder(&claim, owner).and_then(|()| link(&claim, &folder))
            }
        };
        put.map_err(|error| error.to_string())
    }

    /// The group of all containers, where that is one, and the runner can be another.
    fn only_group(&self) -> Option<u32> {
        if self.context.user != RunnerUser::Root {
            return None;
        }
        let groups: Option<BTreeSet<u32>> =
            containers(&self.pod).iter().map(|one| self.user_of(one.spec).ok().map(|user| user.group)).collect();
        groups.filter(|groups| groups.len() == 1)?.pop_first()
    }

    /// Whose the pod's files are: its first container's user.
    pub(super) fn file_owner(&self) -> Option<FileOwner> {
        let spec = self.pod.spec.as_ref()?;
        let user = self.user_of(spec.containers.first()?).ok()?;
        let group = fs_group(&self.pod).unwrap_or(user.group);
        (self.context.user == RunnerUser::Root).then_some(FileOwner { user: user.user, group })
    }

    pub(super) fn user_of(&self, container: &Container) -> Result<ProcessUser, String> {
        let own = self.user.ok_or("no uid is left for the pod: delete pods that are not needed")?;
        process_user(&self.pod, container, self.context.user, own).map_err(|error| error.to_string())
    }

    /// Everything that the pod names, as far as it is there.
    async fn read_sources(&mut self) -> Result<PodSources, String> {
        let (client, space) = (self.context.client.clone(), namespace(&self.pod).to_owned());
        let found = references(&self.pod);
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &space);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &space);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, &space);
        let mut sources = PodSources { host_address: "127.0.0.1".to_owned(), ..PodSources::default() };
        sources.pod_address = Some("127.0.0.1".to_owned());
        for name in found.config_maps {
            let map = maps.get_opt(&name).await.map_err(|error| error.to_string())?;
            sources.config_maps.extend(map.map(|map| (name, map)));
        }
        for name in found.secrets {
            let secret = secrets.get_opt(&name).await.map_err(|error| error.to_string())?;
            sources.secrets.extend(secret.map(|secret| (name, secret)));
        }
        for name in found.claims {
            let claim = claims.get_opt(&name).await.map_err(|error| error.to_string())?;
            sources.claims.extend(claim.map(|claim| (name, claim)));
        }
        self.tokens(found.tokens, &mut sources).await?;
        Ok(sources)
    }

    /// A token for each that is asked for; it is replaced when four fifths of its time are over.
    async fn tokens(&mut self, wishes: BTreeSet<TokenWish>, sources: &mut PodSources) -> Result<(), String> {
        let account = self.pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let account = account.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned());
        let accounts: Api<ServiceAccount> = Api::namespaced(self.context.client.clone(), namespace(&self.pod));
        let metadata = &self.pod.metadata;
        let pod = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
        };
        self.tokens_due = None;
        for wish in wishes {
            let spec = TokenRequestSpec {
                audiences: wish.audience.clone().map(|audience| vec![audience]),
                bound_object_ref: Some(pod.clone()),
                expiration_seconds: Some(wish.seconds),
                ..TokenRequestSpec::default()
            };
            let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
            let made = accounts.create_token_request(&account, &PostParams::default(), &request).await;
            let made = made.map_err(|error| format!("no token of service account {account}: {error}"))?;
            let due = self.context.now().saturating_add(wish.renewed_after()).expect("a span");
            self.tokens_due = Some(self.tokens_due.map_or(due, |known| known.min(due)));
            sources.tokens.insert(wish, made.status.and_then(|status| status.token).unwrap_or_default());
        }
        Ok(())
    }

    /// Starts a container, or notes why it was not.
    pub(super) async fn start(&mut self, container: &str) {
        let Some(spec) = self.container(container) else { return };
        let (now, limits) = (self.context.now(), self.context.settings.limits);
        self.record.container_mut(container).starts(now, limits);
        if self.simulate(&spec).await {
            return;
        }
        match self.try_start(&spec).await {
            Ok(id) => {
                let has_hook = hook(post_start(&spec));
                let now = self.context.now();
                self.record.container_mut(container).started(id, now, has_hook);
                self.tell(EventSort::Normal, "Started", format!("Started container {container}"), Some(container))
                    .await;
            }
            Err(NotStarted::Trouble(trouble)) => {
                let message = format!("Error: {}", trouble.message);
                self.record.container_mut(container).not_started(trouble);
                self.tell(EventSort::Warning, "Failed", message, Some(container)).await;
            }
            Err(NotStarted::Ended(why)) => {
                self.tell(EventSort::Warning, "Failed", format!("Error: {why}"), Some(container)).await;
                self.record.container_mut(container).ended(start_error(why, self.context.now()));
            }
        }
    }

    async fn try_start(&mut self, spec: &Container) -> Result<String, NotStarted> {
        let image = spec.image.clone().unwrap_or_default();
        let program = program_of(&image).map_err(|error| {
            NotStarted::Trouble(StartTrouble {
                reason: "NoLocalProgram".to_owned(),
                message: error.to_string(),
                again: None,
            })
        })?;
        self.sources = self.read_sources().await.map_err(|why| self.config_error(why))?;
        let command = container_command(&self.pod, spec, &self.sources, &self.context.capacity)
            .map_err(|error| self.config_error(error.to_string()))?;
        let files = self.prepare(spec, command.environment)?;
        let replaced =
            |texts: &[String]| -> Vec<String> { texts.iter().map(|text| substituted(text, &files.mounts)).collect() };
        let invocation = program
            .invocation(&replaced(&command.command), &replaced(&command.arguments))
            .map_err(|error| NotStarted::Ended(error.to_string()))?;
        let message = format!("Container image {image:?} stands for {} of this machine", program.name);
        self.tell(EventSort::Normal, "Pulled", message, Some(&spec.name)).await;
        let executable = match invocation.executable {
            Executable::Own => self.context.settings.executable.clone(),
            Executable::Named(name) => program_file(&name)
                .ok_or_else(|| NotStarted::Ended(format!("{name} is not installed on this machine: install it")))?,
        };
        self.begin_group(spec).await.map_err(|why| self.config_error(why))?;
        let launch = self.launch(spec, executable, invocation.arguments, &files)?;
        let id = launch.id.clone();
        self.tell(EventSort::Normal, "Created", format!("Created container: {}", spec.name), Some(&spec.name)).await;
        let started =
            self.context.launcher.launch(launch).await.map_err(|error| NotStarted::Ended(error.to_string()))?;
        self.watch(spec, &id, &started.handle());
        self.processes.insert(spec.name.clone(), started.handle());
        self.files.insert(spec.name.clone(), files);
        self.tell_its_end(spec.name.clone(), id.clone(), started);
        Ok(id)
    }

    fn tell_its_end(&self, container: String, id: String, process: crate::machine::processes::StartedProcess) {
        let (teller, started) = (self.teller.clone(), self.context.now());
        tokio::spawn(async move {
            let end = process.ended().await.unwrap_or_else(|error| crate::machine::processes::ProcessEnd {
                exit_code: 137,
                not_started: Some(error.to_string()),
            });
            // The worker may have ended before its processes.
            let _ = teller.send(PodFact::Ended { container, id, started, end });
        });
    }

    fn config_error(&self, message: String) -> NotStarted {
        let again = self.context.now().saturating_add(self.context.settings.limits.first).expect("a span of seconds");
        let reason = "CreateContainerConfigError".to_owned();
        NotStarted::Trouble(StartTrouble { reason, message, again: Some(again) })
    }

    /// Mounts, variables, working directory and user of a container.
    fn prepare(&self, spec: &Container, environment: BTreeMap<String, String>) -> Result<ContainerFiles, NotStarted> {
        let user = self.user_of(spec).map_err(|why| self.config_error(why))?;
        let mut mounts = self.mounts(spec, &environment).map_err(|why| self.config_error(why))?;
        let message = self.message_file(spec).map_err(|error| self.config_error(error.to_string()))?;
        mounts.extend(MountedPath::new(message_path(spec), &message.to_string_lossy()));
        let work = self.context.folders.work(uid(&self.pod), &spec.name);
        let owner = self.file_owner();
        let folder = make_folder(&work, owner).and_then(|()| {
            match spec.working_dir.as_deref().filter(|folder| !folder.is_empty()) {
                None => Ok(work),
                Some(wanted) => self.working_folder(wanted, &work, &mounts, owner),
            }
        });
        let folder = folder.map_err(|error| self.config_error(format!("workingDir: {error}")))?;
        let environment = environment.into_iter().map(|(name, value)| (name, substituted(&value, &mounts))).collect();
        let user = (self.context.user == RunnerUser::Root).then_some(LaunchUser {
            user: user.user,
            group: user.group,
            groups: user.groups,
        });
        Ok(ContainerFiles { mounts, environment, folder, user, message })
    }

    /// A folder of a mount, or of the image: an empty one of the pod's stands for that.
    fn working_folder(
        &self,
        wanted: &str,
        work: &Path,
        mounts: &[MountedPath],
        owner: Option<FileOwner>,
    ) -> io::Result<PathBuf> {
        let wanted = Path::new("/").join(below_root(wanted));
        let fitting = mounts.iter().filter_map(|mount| Some((mount, wanted.strip_prefix(&mount.inside).ok()?)));
        match fitting.max_by_key(|(mount, _)| mount.inside.len()) {
            Some((mount, rest)) => beneath(Path::new(&mount.outside), rest, owner),
            None => beneath(work, wanted.strip_prefix("/").unwrap_or(&wanted), owner),
        }
    }

    fn mounts(&self, spec: &Container, environment: &BTreeMap<String, String>) -> Result<Vec<MountedPath>, String> {
        let mut mounts = Vec::new();
        for (index, mount) in spec.volume_mounts.iter().flatten().enumerate() {
            let mut outside = self.context.folders.volume(uid(&self.pod), &mount.name);
            let written = mount
                .sub_path_expr
                .as_deref()
                .map(|text| crate::pod::expand::expanded(text, |name| environment.get(name).map(String::as_str)));
            if let Some(below) = written.as_deref().or(mount.sub_path.as_deref()).filter(|path| !path.is_empty()) {
                let failed = |why: String| {
                    let (volume, container) = (&mount.name, &spec.name);
                    format!("failed to prepare subPath for volumeMount {volume:?} of container {container:?}: {why}")
                };
                let below = inside(below).map_err(|error| failed(error.to_string()))?;
                outside = self.below(&outside, &below).map_err(|error| failed(error.to_string()))?;
                let kept = self.context.folders.sub_path(uid(&self.pod), &spec.name, index);
                outside = kept_file(outside, &kept).map_err(|error| failed(error.to_string()))?;
            }
            mounts.extend(MountedPath::new(&mount.mount_path, &outside.to_string_lossy()));
        }
        Ok(mounts)
    }

    /// A path in a volume, which is made a folder where it is not there, and which no link leads out of the volume.
    fn below(&self, volume: &Path, path: &str) -> io::Result<PathBuf> {
        beneath(&volume.canonicalize()?, Path::new(path), self.file_owner())
    }

    fn launch(
        &self,
        spec: &Container,
        executable: PathBuf,
        arguments: Vec<String>,
        files: &ContainerFiles,
    ) -> Result<ContainerLaunch, NotStarted> {
        let (pod, restarts) = (uid(&self.pod), self.record.container(&spec.name).restarts);
        let log = self
            .context
            .outputs
            .begin(pod, &spec.name, restarts)
            .map_err(|error| self.config_error(error.to_string()))?;
        let report = self.context.folders.run(pod, &spec.name, restarts).join("report");
        let order = LaunchOrder {
            executable,
            arguments,
            folder: files.folder.clone(),
            user: files.user.clone(),
            limits: self.launch_limits(spec, files.user.as_ref()),
            report,
        };
        let (id, container) = (uuid::Uuid::new_v4().to_string(), spec.name.clone());
        Ok(ContainerLaunch { id, pod: pod.to_owned(), container, order, environment: files.environment.clone(), log })
    }
}

fn start_error(why: String, now: Timestamp) -> Termination {
    Termination {
        id: uuid::Uuid::new_v4().to_string(),
        exit_code: 128,
        reason: "StartError".to_owned(),
        message: Some(why),
        started: None,
        ended: now,
    }
}

/// A single file of a volume is mounted as it was when its container started: the files of the volume change, and go when they do. A
/// folder stays what it is.
fn kept_file(found: PathBuf, kept: &Path) -> io::Result<PathBuf> {
    if !found.is_file() {
        return Ok(found);
    }
    keep_file(&found, kept)?;
    Ok(kept.to_owned())
}

/// A link to a claim's folder, in the place of whatever was there.
fn link(claim: &Path, folder: &Path) -> io::Result<()> {
    if folder.is_symlink() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::os::unix::fs::symlink(claim, folder)
}
