//! What a server is configured with, and where its program, files and disk come from.

use std::collections::BTreeMap;

use portolan_core::schema::{self, AnyObject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kinds::dnssec::DNSSECConfig;
use crate::kinds::keys::RndcSecretRef;
use crate::kinds::patterns;

/// What a server is configured with. What is not said here is said by the cluster, by its provider, or by nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct Bind9Config {
    /// Whether it looks up names of zones that it does not have; not where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursion: Option<bool>,
    /// Who may ask: addresses, networks, `any`, `none`, `localhost`, `localnets`, `key NAME` or the name of an ACL, each with `!`
    /// before it for the opposite.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = patterns::ACL_ENTRIES), inner(length(max = 256)))]
    pub allow_query: Option<Vec<String>>,
    /// Who may take whole zones, besides the cluster's own servers, which have a key for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = patterns::ACL_ENTRIES), inner(length(max = 256)))]
    pub allow_transfer: Option<Vec<String>>,
    /// DNSSEC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dnssec: Option<DNSSECConfig>,
    /// Servers that are asked about other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = patterns::ACL_ENTRIES), inner(length(max = 45)))]
    pub forwarders: Option<Vec<String>>,
    /// IPv4 addresses that it listens on; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = patterns::ACL_ENTRIES), inner(length(max = 256)))]
    pub listen_on: Option<Vec<String>>,
    /// IPv6 addresses that it listens on; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = patterns::ACL_ENTRIES), inner(length(max = 256)))]
    pub listen_on_v6: Option<Vec<String>>,
    /// A Secret of the user's with the key; `rndcKey` says the same and goes before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rndc_secret_ref: Option<RndcSecretRef>,
    /// The management sidecar of the older operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bindcar_config: Option<BindcarConfig>,
}

/// The management sidecar of the older operator. Servers are managed without one; what it said of the Service still counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct BindcarConfig {
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// When its image is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent", "Never"]))]
    pub image_pull_policy: Option<String>,
    /// What it may use, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyObject>")]
    pub resources: Option<Value>,
    /// The port that it listens on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Fields of the Service's spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyObject>")]
    pub service_spec: Option<Value>,
    /// How much it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub log_level: Option<String>,
    /// Variables of its environment, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>", length(max = 256))]
    pub env_vars: Option<Vec<Value>>,
}

/// Which image runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ImageConfig {
    /// The image; `internetsystemsconsortium/bind9` in the version that is asked for where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// When it is pulled; `IfNotPresent` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent", "Never"]))]
    pub image_pull_policy: Option<String>,
    /// Names of Secrets that it is pulled with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub image_pull_secrets: Option<Vec<String>>,
}

/// `ConfigMaps` of the user's with whole configuration files, which then are used as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ConfigMapRefs {
    /// Name of the one with `named.conf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub named_conf: Option<String>,
    /// Name of the one with `named.conf.options`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub named_conf_options: Option<String>,
    /// Name of the one with `named.conf.zones`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub named_conf_zones: Option<String>,
}

/// How the Service of servers looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ServiceConfig {
    /// Its annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Fields of its spec, over those that it has by itself; the selector is never taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyObject>")]
    pub spec: Option<Value>,
}

/// Where zones are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct StorageConfig {
    /// `emptyDir`, which goes with the pod, or `persistentVolumeClaim`; the first where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["emptyDir", "persistentVolumeClaim"]))]
    pub storage_type: Option<String>,
    /// How the folder is that goes with the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyObject>")]
    pub empty_dir: Option<Value>,
    /// The disk that stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimConfig>,
}

/// A disk that stays when pods go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ClaimConfig {
    /// Name of a claim that is there; one is made for each pod where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub claim_name: Option<String>,
    /// The class of disks; the cluster's own where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
    /// How large it is, as `1Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub size: Option<String>,
    /// Who may mount it; `ReadWriteOnce` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4), inner(length(max = 32)))]
    pub access_modes: Option<Vec<String>>,
}
