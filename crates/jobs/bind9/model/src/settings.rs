//! What instance, role, cluster and provider say → what holds for a server, field by field.
//!
//! | field | first said by |
//! |---|---|
//! | version, image, files, volumes | instance, cluster, provider |
//! | `allowTransfer` | instance, role of the cluster, cluster, role of the provider, provider |
//! | other configuration | instance, cluster, provider |
//! | keys | instance, role of the cluster, role of the provider, then the deprecated `rndcSecretRef` in the same order |
//! | Service | role over sidecar's `serviceSpec`, field by field |
//! | ACLs | by name: cluster, provider |
//!
//! What nobody says is what [`defaults`](crate::defaults) say. A schema has no defaults, so a layer says only what its user wrote.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::kinds::dnssec::{DNSSECConfig, DNSSECSigningConfig};
use crate::kinds::keys::{RndcKeyConfig, RndcSecretRef};
use crate::kinds::server::{Bind9Config, BindcarConfig, ConfigMapRefs, ImageConfig, ServiceConfig, StorageConfig};
use crate::kinds::{Bind9InstanceSpec, CommonClusterSpec, RoleConfig, ServerRole};

/// What holds for a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// What it does for its zones.
    pub role: ServerRole,
    /// Version of BIND 9, where anybody says it.
    pub version: Option<String>,
    /// Which image runs, each field by itself.
    pub image: ImageConfig,
    /// Whole configuration files of the user's.
    pub files: ConfigMapRefs,
    /// What it is configured with.
    pub config: Bind9Config,
    /// Lists of addresses under names.
    pub acls: BTreeMap<String, Vec<String>>,
    /// Secrets with further keys that it knows.
    pub further_keys: Vec<RndcSecretRef>,
    /// How its own keys are made.
    pub keys: RndcKeyConfig,
    /// Addresses of servers elsewhere that may tell it of changes.
    pub primary_servers: Vec<String>,
    /// Volumes of the user's.
    pub volumes: Vec<Value>,
    /// Where those are mounted.
    pub mounts: Vec<Value>,
    /// Where zones are kept.
    pub storage: StorageConfig,
    /// What the Service gets over what it has by itself.
    pub service: ServiceConfig,
    /// The management sidecar of the older operator.
    pub sidecar: Option<BindcarConfig>,
}

/// What a cluster or a provider says of its servers, and of those of one role.
#[derive(Clone, Copy, Debug)]
struct Layer<'a> {
    common: &'a CommonClusterSpec,
    role: Option<&'a RoleConfig>,
}

impl<'a> Layer<'a> {
    fn of(common: &'a CommonClusterSpec, role: ServerRole) -> Self {
        let role = match role {
            ServerRole::Primary => common.primary.as_ref(),
            ServerRole::Secondary => common.secondary.as_ref(),
        };
        Self { common, role }
    }

    fn config(self) -> Option<&'a Bind9Config> {
        self.common.global.as_ref()
    }
}

/// What holds for an instance, by itself or in a cluster that may be a provider's.
pub fn settings(
    instance: &Bind9InstanceSpec,
    cluster: Option<&CommonClusterSpec>,
    provider: Option<&CommonClusterSpec>,
) -> ServerSettings {
    let role = instance.role;
    let layers: Vec<Layer<'_>> = [cluster, provider].into_iter().flatten().map(|one| Layer::of(one, role)).collect();
    ServerSettings {
        role,
        version: first(instance.version.as_ref(), &layers, |layer| layer.common.version.as_ref()),
        image: image(instance.image.as_ref(), &layers),
        files: files(instance.config_map_refs.as_ref(), &layers),
        config: config(instance.config.as_ref(), &layers),
        acls: acls(&layers),
        further_keys: layers.iter().find_map(|layer| layer.common.rndc_secret_refs.clone()).unwrap_or_default(),
        keys: keys(instance, &layers),
        primary_servers: instance.primary_servers.clone().unwrap_or_default(),
        volumes: first(instance.volumes.as_ref(), &layers, |layer| layer.common.volumes.as_ref()).unwrap_or_default(),
        mounts: first(instance.volume_mounts.as_ref(), &layers, |layer| layer.common.volume_mounts.as_ref())
            .unwrap_or_default(),
        storage: instance.storage.clone().unwrap_or_default(),
        service: service(instance, &layers),
        sidecar: sidecar(instance, &layers),
    }
}

/// What is said first.
fn first<'a, T>(own: Option<&T>, layers: &[Layer<'a>], of: impl Fn(Layer<'a>) -> Option<&'a T>) -> Option<T>
where
    T: Clone + 'a,
{
    own.cloned().or_else(|| layers.iter().find_map(|layer| of(*layer).cloned()))
}

fn image(own: Option<&ImageConfig>, layers: &[Layer<'_>]) -> ImageConfig {
    let all: Vec<&ImageConfig> =
        own.into_iter().chain(layers.iter().filter_map(|layer| layer.common.image.as_ref())).collect();
    ImageConfig {
        image: all.iter().find_map(|one| one.image.clone()),
        image_pull_policy: all.iter().find_map(|one| one.image_pull_policy.clone()),
        image_pull_secrets: all.iter().find_map(|one| one.image_pull_secrets.clone()),
    }
}

fn files(own: Option<&ConfigMapRefs>, layers: &[Layer<'_>]) -> ConfigMapRefs {
    let given = layers.iter().filter_map(|layer| layer.common.config_map_refs.as_ref());
    let all: Vec<&ConfigMapRefs> = own.into_iter().chain(given).collect();
    ConfigMapRefs {
        named_conf: all.iter().find_map(|one| one.named_conf.clone()),
        named_conf_options: all.iter().find_map(|one| one.named_conf_options.clone()),
        named_conf_zones: all.iter().find_map(|one| one.named_conf_zones.clone()),
    }
}

fn config(own: Option<&Bind9Config>, layers: &[Layer<'_>]) -> Bind9Config {
    let all: Vec<&Bind9Config> = own.into_iter().chain(layers.iter().filter_map(|layer| layer.config())).collect();
    Bind9Config {
        recursion: all.iter().find_map(|one| one.recursion),
        allow_query: all.iter().find_map(|one| one.allow_query.clone()),
        allow_transfer: allow_transfer(own, layers),
        dnssec: dnssec(&all),
        forwarders: all.iter().find_map(|one| one.forwarders.clone()),
        listen_on: all.iter().find_map(|one| one.listen_on.clone()),
        listen_on_v6: all.iter().find_map(|one| one.listen_on_v6.clone()),
        // Said by `keys` and `sidecar`.
        rndc_secret_ref: None,
        bindcar_config: None,
    }
}

/// What a role says goes before what its cluster says of all.
fn allow_transfer(own: Option<&Bind9Config>, layers: &[Layer<'_>]) -> Option<Vec<String>> {
    let of_layer = |layer: &Layer<'_>| {
        let of_role = layer.role.and_then(|role| role.allow_transfer.clone());
        of_role.or_else(|| layer.config()?.allow_transfer.clone())
    };
    own.and_then(|own| own.allow_transfer.clone()).or_else(|| layers.iter().find_map(of_layer))
}

fn dnssec(all: &[&Bind9Config]) -> Option<DNSSECConfig> {
    let said: Vec<&DNSSECConfig> = all.iter().filter_map(|one| one.dnssec.as_ref()).collect();
    let signing: Vec<&DNSSECSigningConfig> = said.iter().filter_map(|one| one.signing.as_ref()).collect();
    let config = DNSSECConfig {
        validation: said.iter().find_map(|one| one.validation),
        signing: (!signing.is_empty()).then(|| signed(&signing)),
    };
    (!said.is_empty()).then_some(config)
}

fn signed(all: &[&DNSSECSigningConfig]) -> DNSSECSigningConfig {
    let text = |of: fn(&DNSSECSigningConfig) -> &Option<String>| all.iter().find_map(|one| of(one).clone());
    DNSSECSigningConfig {
        enabled: all.iter().find_map(|one| one.enabled),
        policy: text(|one| &one.policy),
        algorithm: text(|one| &one.algorithm),
        ksk_lifetime: text(|one| &one.ksk_lifetime),
        zsk_lifetime: text(|one| &one.zsk_lifetime),
        nsec3: all.iter().find_map(|one| one.nsec3),
        nsec3_salt: text(|one| &one.nsec3_salt),
        nsec3_iterations: all.iter().find_map(|one| one.nsec3_iterations),
        keys_from: all.iter().find_map(|one| one.keys_from.clone()),
        auto_generate: all.iter().find_map(|one| one.auto_generate),
        export_to_secret: all.iter().find_map(|one| one.export_to_secret),
    }
}

fn acls(layers: &[Layer<'_>]) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    // The nearest comes last, and takes the place of what is farther.
    for layer in layers.iter().rev() {
        all.extend(layer.common.acls.clone().into_iter().flatten());
    }
    all
}

/// How keys are asked for. The deprecated reference counts only where nobody asks in the present way.
fn keys(instance: &Bind9InstanceSpec, layers: &[Layer<'_>]) -> RndcKeyConfig {
    let of_role = |layer: &Layer<'_>| layer.role.and_then(|role| role.rndc_key.clone());
    if let Some(asked) = instance.rndc_key.clone().or_else(|| layers.iter().find_map(of_role)) {
        return asked;
    }
    let own = instance.rndc_secret_ref.clone();
    let own = own.or_else(|| instance.config.as_ref()?.rndc_secret_ref.clone());
    let of_layer = |layer: &Layer<'_>| {
        let of_role = layer.role.and_then(|role| role.rndc_secret_ref.clone());
        of_role.or_else(|| layer.config()?.rndc_secret_ref.clone())
    };
    let secret_ref = own.or_else(|| layers.iter().find_map(of_layer));
    RndcKeyConfig { secret_ref, ..RndcKeyConfig::default() }
}

fn sidecar(instance: &Bind9InstanceSpec, layers: &[Layer<'_>]) -> Option<BindcarConfig> {
    let own = instance.bindcar_config.clone();
    let own = own.or_else(|| instance.config.as_ref()?.bindcar_config.clone());
    own.or_else(|| layers.iter().find_map(|layer| layer.config()?.bindcar_config.clone()))
}

/// The Service's fields: those of the role over those that came with the sidecar.
fn service(instance: &Bind9InstanceSpec, layers: &[Layer<'_>]) -> ServiceConfig {
    let of_role = layers.iter().find_map(|layer| layer.role.and_then(|role| role.service.clone())).unwrap_or_default();
    let below = sidecar(instance, layers).and_then(|sidecar| sidecar.service_spec);
    let fields = |value: Option<Value>| match value {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => Map::new(),
    };
    let mut spec = fields(below);
    spec.extend(fields(of_role.spec));
    ServiceConfig { annotations: of_role.annotations, spec: (!spec.is_empty()).then_some(Value::Object(spec)) }
}

#[cfg(test)]
mod tests;
