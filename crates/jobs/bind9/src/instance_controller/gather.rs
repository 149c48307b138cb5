//! Reads what planning an instance needs: users' Secrets and files, whom it follows, and what is there.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use portolan_bind9_model::conf::Following;
use portolan_bind9_model::finding::Finding;
use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::keys::{
    self, FreshSecrets, KeyPolicy, KeySet, SECRET_OCTETS, SecretData, StoredKeys, TsigKey,
};
use portolan_bind9_model::kinds::keys::RndcSecretRef;
use portolan_bind9_model::kinds::reference::ClusterReference;
use portolan_bind9_model::kinds::{Bind9Instance, ServerRole};
use portolan_bind9_model::settings::{ServerSettings, settings};
use portolan_bind9_model::{defaults, names, objects, validate};
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{in_time, kubernetes_problem};
use serde_json::Value;

use crate::instance_controller::InstanceController;
use crate::instance_controller::inputs::InstanceInputs;
use crate::shared::ReadKind;

impl InstanceController {
    pub(crate) async fn look(&self, instance: &Bind9Instance) -> Result<InstanceInputs, Problem> {
        let (cluster, provider) = self.shared.parents(instance);
        let (near, far) = (cluster.as_ref().map(|one| &one.spec.common), provider.as_ref().map(|one| &one.spec.common));
        let settings = settings(&instance.spec, near, far);
        let parent = match (&cluster, &provider) {
            (Some(one), _) => {
                Some((reference("Bind9Cluster", one.as_ref()), one.metadata.generation.unwrap_or_default()))
            }
            (None, Some(one)) => {
                Some((reference("ClusterBind9Provider", one.as_ref()), one.metadata.generation.unwrap_or_default()))
            }
            (None, None) => None,
        };
        let mut inputs = InstanceInputs {
            orphan: parent.is_none() && instance.cluster_name().is_some(),
            parent,
            fresh: Some(fresh()),
            address: self.shared.settings.pod_address.clone(),
            now: Some((self.shared.context.clock)()),
            ..InstanceInputs::default()
        };
        let mut reads = Vec::new();
        self.look_at_keys(instance, &settings, &mut inputs, &mut reads).await?;
        self.look_at_files(instance, &settings, &mut inputs, &mut reads).await?;
        inputs.following = self.followed(instance, &mut reads).await?;
        inputs.followers = self.followers(instance, &mut reads).await?;
        inputs.there = self.objects_there(instance, &settings).await?;
        inputs.pods = self.pods(instance).await?;
        inputs.confirmed = self.running.confirmed(&inputs.pods);
        inputs.settings = settings;
        self.shared.note_reads(&instance.key(), reads);
        Ok(inputs)
    }

    /// How keys are asked for, which are stored, and which others the server knows.
    async fn look_at_keys(
        &self,
        instance: &Bind9Instance,
        settings: &ServerSettings,
        inputs: &mut InstanceInputs,
        reads: &mut Vec<(ReadKind, ObjectKey)>,
    ) -> Result<(), Problem> {
        let given = match &settings.keys.secret_ref {
            Some(reference) => self.user_key(instance, reference, "spec.rndcKey.secretRef", inputs, reads).await?,
            None => None,
        };
        for (index, reference) in settings.further_keys.iter().enumerate() {
            let field = format!("spec.rndcSecretRefs[{index}]");
            let found = self.user_key(instance, reference, &field, inputs, reads).await?;
            inputs.further.extend(found);
        }
        let algorithm = validate::strong_algorithm(settings.keys.algorithm, "spec.rndcKey.algorithm", &mut Vec::new());
        let policy = KeyPolicy { algorithm, rotate_after_hours: validate::rotation_hours(&settings.keys), given };
        let secret = ObjectKey {
            namespace: instance.namespace(),
            name: objects::secret_name(&instance.name_any(), &settings.keys),
        };
        let stored = self.shared.objects.read("Secret", &secret).await?;
        let fresh = inputs.fresh.clone().unwrap_or_else(fresh);
        inputs.stored = stored.and_then(|secret| keys::read(&stored_keys(&secret), &instance.key(), &policy, &fresh));
        inputs.keys = Some(policy);
        Ok(())
    }

    /// A key in a Secret of the user's; what is wrong with it is found, and nothing is changed until it is right.
    async fn user_key(
        &self,
        instance: &Bind9Instance,
        reference: &RndcSecretRef,
        field: &str,
        inputs: &mut InstanceInputs,
        reads: &mut Vec<(ReadKind, ObjectKey)>,
    ) -> Result<Option<TsigKey>, Problem> {
        let key = ObjectKey { namespace: instance.namespace(), name: reference.name.clone() };
        reads.push((ReadKind::Secret, key.clone()));
        let read = match self.shared.objects.read("Secret", &key).await? {
            None => Err(format!("Secret {} does not exist; create it, or correct the name", reference.name)),
            Some(secret) => keys::read_user_key(&stored_keys(&secret).data, reference),
        };
        Ok(match read {
            Ok(key) => Some(key),
            Err(why) => {
                inputs.findings.push(Finding::refused(field, why));
                None
            }
        })
    }

    /// What the user's own files hold.
    async fn look_at_files(
        &self,
        instance: &Bind9Instance,
        settings: &ServerSettings,
        inputs: &mut InstanceInputs,
        reads: &mut Vec<(ReadKind, ObjectKey)>,
    ) -> Result<(), Problem> {
        let files = &settings.files;
        for (file, name, field) in [
            ("named.conf", &files.named_conf, "namedConf"),
            ("named.conf.options", &files.named_conf_options, "namedConfOptions"),
            ("named.conf.zones", &files.named_conf_zones, "namedConfZones"),
        ] {
            let Some(name) = name else { continue };
            let key = ObjectKey { namespace: instance.namespace(), name: name.clone() };
            reads.push((ReadKind::ConfigMap, key.clone()));
            let map = self.shared.objects.read("ConfigMap", &key).await?;
            match map.as_ref().map(|map| map["data"][file].as_str()) {
                Some(Some(text)) => drop(inputs.given.insert(file.to_owned(), text.to_owned())),
                Some(None) => inputs.findings.push(Finding::refused(
                    format!("spec.configMapRefs.{field}"),
                    format!("ConfigMap {name} has no {file}; put the file there under this name"),
                )),
                None => inputs.findings.push(Finding::refused(
                    format!("spec.configMapRefs.{field}"),
                    format!("ConfigMap {name} does not exist; create it, or correct the name"),
                )),
            }
        }
        Ok(())
    }

    /// The primaries of the same cluster, which any zone of it may be written to. One without an address or keys yet is followed later.
    async fn followed(
        &self,
        instance: &Bind9Instance,
        reads: &mut Vec<(ReadKind, ObjectKey)>,
    ) -> Result<Vec<Following>, Problem> {
        let Some(cluster) = instance.cluster_name() else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for other in self.shared.instances_of(cluster, instance.namespace().as_deref()) {
            let is_writer = other.spec.role == ServerRole::Primary && other.metadata.deletion_timestamp.is_none();
            if is_writer && other.key() != instance.key() {
                all.extend(self.following(instance, &other, reads).await?);
            }
        }
        Ok(all)
    }

    /// Where the servers are that follow a primary: all others of its cluster.
    async fn followers(
        &self,
        instance: &Bind9Instance,
        reads: &mut Vec<(ReadKind, ObjectKey)>,
    ) -> Result<Vec<String>, Problem> {
        let cluster = instance.cluster_name().filter(|_| instance.spec.role == ServerRole::Primary);
        let Some(cluster) = cluster else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for other in self.shared.instances_of(cluster, instance.namespace().as_deref()) {
            if other.key() == instance.key() || other.metadata.deletion_timestamp.is_some() {
                continue;
            }
            reads.push((ReadKind::Service, other.key()));
            let service = self.shared.objects.read("Service", &other.key()).await?;
            all.extend(service.as_ref().map(addresses).unwrap_or_default());
        }
        Ok(all)
    }

    async fn following(
        &self,
        instance: &Bind9Instance,
        writer: &Bind9Instance,
        reads: &mut Vec<(ReadKind, ObjectKey)>,
    ) -> Result<Option<Following>, Problem> {
        let (cluster, provider) = self.shared.parents(writer);
        let own = settings(
            &writer.spec,
            cluster.as_ref().map(|one| &one.spec.common),
            provider.as_ref().map(|one| &one.spec.common),
        );
        let secret =
            ObjectKey { namespace: writer.namespace(), name: objects::secret_name(&writer.name_any(), &own.keys) };
        reads.push((ReadKind::Secret, secret.clone()));
        reads.push((ReadKind::Service, writer.key()));
        let Some(stored) = self.shared.objects.read("Secret", &secret).await? else { return Ok(None) };
        let policy =
            KeyPolicy { algorithm: own.keys.algorithm.unwrap_or_default(), rotate_after_hours: None, given: None };
        let Some(ring) = keys::read(&stored_keys(&stored), &writer.key(), &policy, &fresh()) else { return Ok(None) };
        let service = self.shared.objects.read("Service", &writer.key()).await?;
        let addresses = service.as_ref().map(addresses).unwrap_or_default();
        Ok((!addresses.is_empty()).then(|| Following {
            catalog: names::catalog(&writer.key(), &instance.key()),
            writer: writer.key(),
            addresses,
            port: defaults::SERVICE_PORT,
            keys: ring.valid_for(|set: &KeySet| &set.transfer).into_iter().cloned().collect(),
        }))
    }

    /// What is there under the names of a server's objects.
    async fn objects_there(
        &self,
        instance: &Bind9Instance,
        settings: &ServerSettings,
    ) -> Result<BTreeMap<(String, ObjectKey), Value>, Problem> {
        let name = instance.name_any();
        let mut all = BTreeMap::new();
        for (kind, name) in [
            ("ServiceAccount", names::SERVICE_ACCOUNT.to_owned()),
            ("Secret", objects::secret_name(&name, &settings.keys)),
            ("ConfigMap", names::config_map(&name)),
            ("Deployment", name.clone()),
            ("StatefulSet", name.clone()),
            ("Service", name.clone()),
            ("Service", names::control_service(&name)),
            ("PodDisruptionBudget", name.clone()),
        ] {
            let key = ObjectKey { namespace: instance.namespace(), name };
            if let Some(found) = self.shared.objects.read(kind, &key).await? {
                all.insert((kind.to_owned(), key), found);
            }
        }
        Ok(all)
    }

    async fn pods(&self, instance: &Bind9Instance) -> Result<Vec<PodState>, Problem> {
        let labels: Vec<String> =
            objects::selector(&instance.name_any()).iter().map(|(name, value)| format!("{name}={value}")).collect();
        let api: Api<Pod> =
            Api::namespaced(self.shared.context.client.clone(), &instance.namespace().unwrap_or_default());
        let listed = in_time(api.list(&ListParams::default().labels(&labels.join(",")))).await;
        let listed = listed
            .map_err(|error| kubernetes_problem(format_args!("listing the pods of {}", instance.key()), &error))?;
        let state = |pod: &Pod| PodState::of(&serde_json::to_value(pod).expect("objects are plain JSON"));
        Ok(listed.items.iter().filter_map(state).collect())
    }
}

fn reference<K: kube::Resource<DynamicType = ()>>(kind: &str, object: &K) -> ClusterReference {
    ClusterReference {
        api_version: names::API_VERSION.to_owned(),
        kind: kind.to_owned(),
        name: object.name_any(),
        namespace: object.namespace(),
    }
}

/// A Service's own addresses; one without has none yet, or never will.
fn addresses(service: &Value) -> Vec<String> {
    let listed = service["spec"]["clusterIPs"].as_array().cloned().unwrap_or_default();
    let listed = if listed.is_empty() { vec![service["spec"]["clusterIP"].clone()] } else { listed };
    listed
        .iter()
        .filter_map(Value::as_str)
        .filter(|text| text.parse::<std::net::IpAddr>().is_ok())
        .map(str::to_owned)
        .collect()
}

/// The entries of a Secret that are text, and its annotations.
fn stored_keys(secret: &Value) -> StoredKeys {
    let entry = |(name, value): (&String, &Value)| {
        let octets = STANDARD.decode(value.as_str()?).ok()?;
        Some((name.clone(), String::from_utf8(octets).ok()?))
    };
    let data: SecretData = secret["data"].as_object().into_iter().flatten().filter_map(entry).collect();
    let annotation = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let annotations =
        secret["metadata"]["annotations"].as_object().into_iter().flatten().filter_map(annotation).collect();
    StoredKeys { data, annotations }
}

/// Secrets by chance, in base64.
fn fresh() -> FreshSecrets {
    let secret = || STANDARD.encode(rand::random::<[u8; SECRET_OCTETS]>());
    FreshSecrets { control: secret(), update: secret(), transfer: secret() }
}
