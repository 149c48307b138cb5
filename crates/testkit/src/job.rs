//! A job as worlds run it: its definition, what its worlds begin with, and what must hold of it whatever happened.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use futures::future::LocalBoxFuture;
use kube::api::ApiResource;
use portolan_apiserver::ServerSnapshot;
use portolan_cloudflare_sim::Simulator;
use portolan_engine::{JobDefinition, Provisions};
use serde_json::Value;

use crate::process::Processes;
use crate::world::World;

/// The Gateway API's own kinds, as `portolan up` installs them.
const GATEWAY: [&str; 2] =
    [include_str!("../../portolan/data/httproutes.yaml"), include_str!("../../portolan/data/referencegrants.yaml")];

/// A job, and all that a world has to know of it.
pub struct WorldJob {
    /// The job itself.
    pub definition: &'static JobDefinition,
    /// The account that tests plant objects in.
    pub account: &'static str,
    /// The id of the zone that they plant records in.
    pub zone: &'static str,
    /// The token that is the operator's.
    pub token: &'static str,
    /// The namespaces that its worlds begin with: the operator's own first, then the users'.
    pub namespaces: &'static [&'static str],
    /// How its operator is divided into processes where a test does not say.
    pub processes: fn() -> Processes,
    /// Makes what stands at Cloudflare before the operator comes, with a zone of this plan.
    pub seed: fn(&Simulator, &str),
    /// What users apply before the operator starts.
    pub objects: fn(&Simulator) -> Vec<Value>,
    /// Checks what must hold whatever happened, and says at which place it does not.
    pub assert_sound: for<'a> fn(&'a World, &'a str) -> LocalBoxFuture<'a, ()>,
    /// What a run is compared by: everything live at Cloudflare, and what the users see.
    pub canonical_form: for<'a> fn(&'a World) -> LocalBoxFuture<'a, Value>,
    /// What is made of it once.
    pub once: OncePerJob,
}

/// What of a job is made once in a process and shared by all its worlds; the pairs are for an operator in one process and
/// one in several.
#[derive(Default)]
pub struct OncePerJob {
    definitions: OnceLock<Vec<Value>>,
    resources: OnceLock<BTreeMap<String, ApiResource>>,
    pub(crate) accounts: [OnceLock<Vec<Value>>; 2],
    pub(crate) servers: [OnceLock<ServerSnapshot>; 2],
}

impl OncePerJob {
    /// Nothing is made yet.
    pub const fn new() -> Self {
        Self {
            definitions: OnceLock::new(),
            resources: OnceLock::new(),
            accounts: [const { OnceLock::new() }; 2],
            servers: [const { OnceLock::new() }; 2],
        }
    }
}

impl WorldJob {
    /// A job of which nothing runs but what a test starts itself: its definitions, namespaces (the operator's own first), what is
    /// at Cloudflare, and what users applied. Nothing is checked of it at the end.
    pub const fn bare(
        definition: &'static JobDefinition,
        namespaces: &'static [&'static str],
        seed: fn(&Simulator, &str),
        objects: fn(&Simulator) -> Vec<Value>,
    ) -> Self {
        Self {
            definition,
            account: "",
            zone: "",
            token: "",
            namespaces,
            processes: || Processes::one("nobody"),
            seed,
            objects,
            assert_sound: |_, _| Box::pin(std::future::ready(())),
            canonical_form: |_| Box::pin(std::future::ready(Value::Null)),
            once: OncePerJob::new(),
        }
    }

    /// The definitions that the job needs, its own and those of others, without their descriptions, which change nothing and
    /// cost time.
    pub fn definitions(&self) -> &[Value] {
        self.once.definitions.get_or_init(|| definitions(self.definition))
    }

    /// The kinds that these define.
    pub fn kinds(&self) -> Vec<&str> {
        self.definitions().iter().filter_map(|crd| crd["spec"]["names"]["kind"].as_str()).collect()
    }

    /// How the API server calls a kind that these define.
    pub(crate) fn resource(&self, kind: &str) -> Option<&ApiResource> {
        let resources = || self.definitions().iter().map(|crd| (text(&crd["spec"]["names"]["kind"]), resource(crd)));
        self.once.resources.get_or_init(|| resources().collect()).get(kind)
    }

    /// The operator's own namespace.
    pub fn operator_namespace(&self) -> &'static str {
        self.namespaces.first().copied().unwrap_or("default")
    }
}

fn definitions(job: &JobDefinition) -> Vec<Value> {
    let gateway = GATEWAY.iter().map(|text| serde_saphyr::from_str(text).expect("the definition is YAML"));
    let reads_routes = (job.needs)(&Provisions::default()).iter().any(|needed| needed.kind == "HTTPRoute");
    let gateway = gateway.filter(|_| reads_routes);
    (job.sheet.definitions)().into_iter().chain(gateway).map(undescribed).collect()
}

/// A definition without its descriptions.
fn undescribed(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let told = |(name, value): &(String, Value)| name != "description" || !value.is_string();
            Value::Object(members.into_iter().filter(told).map(|(name, value)| (name, undescribed(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(undescribed).collect()),
        other => other,
    }
}

fn resource(definition: &Value) -> ApiResource {
    let spec = &definition["spec"];
    let (group, version) = (text(&spec["group"]), text(&spec["versions"][0]["name"]));
    ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version,
        kind: text(&spec["names"]["kind"]),
        plural: text(&spec["names"]["plural"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
