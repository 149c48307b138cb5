//! Values and a release in, the objects of the installation out, in the order in which they are to be applied.

mod accounts;
mod monitoring;
mod network;
mod own;
mod workload;

use serde_json::{Map, Value, json};

use crate::Invalid;
use crate::values::{InstalledJob, ProcessMode, Values};

/// Labels that pods are found by.
pub(crate) const SELECTOR: [&str; 3] = [NAME_LABEL, INSTANCE_LABEL, COMPONENT_LABEL];
pub(crate) use workload::VARIABLES;

const NAME_LABEL: &str = "app.kubernetes.io/name";
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
const NAME: &str = "cloudflare-zero-trust-operator";
/// What helm leaves in the cluster when a release goes.
const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// What the objects belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its name, which is the label `app.kubernetes.io/instance`.
    pub name: String,
    /// Where it is installed.
    pub namespace: String,
    /// Its version, which is the image's tag where the values say nothing.
    pub version: String,
}

/// All objects of an installation. Of the definitions, those of the jobs that are to run are taken.
pub fn objects(values: &Values, release: &Release, definitions: Vec<Value>) -> Result<Vec<Value>, Invalid> {
    if !is_name(&release.name, LONGEST_RELEASE) {
        return Err(Invalid::at("release", "its name is of small letters, digits and hyphens, 53 at most"));
    }
    if !is_name(&release.namespace, LONGEST_LABEL) {
        return Err(Invalid::at("namespace", "its name is of small letters, digits and hyphens, 63 at most"));
    }
    let plan = Installation { values, release, definitions: &definitions };
    let mut all = plan.definitions();
    all.extend(plan.accounts());
    all.extend(plan.secret());
    all.push(plan.deployment());
    all.extend(plan.network());
    all.extend(plan.monitoring());
    all.extend(plan.own_objects());
    Ok(all)
}

const LONGEST_RELEASE: usize = 53;
const LONGEST_LABEL: usize = 63;

fn is_name(text: &str, longest: usize) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.len() <= longest
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|letter| plain(letter) || letter == '-')
}

/// An installation that is being written down.
struct Installation<'a> {
    values: &'a Values,
    release: &'a Release,
    definitions: &'a [Value],
}

/// Which pods are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    Operator,
    KubeWorker,
    CloudflareWorker,
}

impl Component {
    fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::KubeWorker => "kube-worker",
            Self::CloudflareWorker => "cloudflare-worker",
        }
    }
}

impl Installation<'_> {
    fn namespace(&self) -> &str {
        first(&[&self.values.namespace_override, &self.release.namespace])
    }

    fn name(&self) -> &str {
        first(&[&self.values.name_override, NAME])
    }

    fn full_name(&self) -> &str {
        first(&[&self.values.fullname_override, self.name()])
    }

    fn has_job(&self, job: InstalledJob) -> bool {
        self.values.controllers.contains(&job)
    }

    /// The Deployments that there will be; the operator itself makes those of its workers.
    fn components(&self) -> &'static [Component] {
        match self.values.operator.mode {
            ProcessMode::Single => &[Component::Operator],
            ProcessMode::Roles => &[Component::Operator, Component::KubeWorker, Component::CloudflareWorker],
        }
    }

    /// A name, followed by the component where it is not the operator itself.
    fn named(&self, name: &str, component: Component) -> String {
        match component {
            Component::Operator => name.to_owned(),
            other => format!("{name}-{}", other.as_str()),
        }
    }

    /// Labels that all pods have.
    fn all_pods(&self) -> Value {
        json!({NAME_LABEL: self.name(), INSTANCE_LABEL: self.release.name})
    }

    /// Labels that the pods of a component have.
    fn pods_of(&self, component: Component) -> Value {
        with(self.all_pods(), COMPONENT_LABEL, json!(component.as_str()))
    }

    /// Labels of everything that is installed.
    fn labels(&self) -> Value {
        with(self.all_pods(), "app.kubernetes.io/version", json!(self.release.version))
    }

    /// An object in the operator's namespace.
    fn object(&self, api_version: &str, kind: &str, name: &str, body: Value) -> Value {
        let metadata = json!({"name": name, "namespace": self.namespace(), "labels": self.labels()});
        made(api_version, kind, metadata, body)
    }

    /// An object of the cluster.
    fn of_cluster(&self, api_version: &str, kind: &str, name: &str, body: Value) -> Value {
        made(api_version, kind, json!({"name": name, "labels": self.labels()}), body)
    }

    fn definitions(&self) -> Vec<Value> {
        if !self.values.crds.install {
            return Vec::new();
        }
        let jobs = InstalledJob::ALL.into_iter().filter(|job| self.has_job(*job));
        let found = jobs.flat_map(|job| self.definitions.iter().filter(move |one| one["spec"]["group"] == job.group()));
        found.map(|definition| self.kept(definition.clone())).collect()
    }

    /// The object, to stay when the release goes.
    fn kept(&self, mut object: Value) -> Value {
        if self.values.crds.keep {
            object["metadata"]["annotations"][KEEP.0] = json!(KEEP.1);
        }
        object
    }
}

fn made(api_version: &str, kind: &str, metadata: Value, body: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    if let (Value::Object(object), Value::Object(body)) = (&mut object, body) {
        object.extend(body);
    }
    object
}

fn with(mut map: Value, key: &str, value: Value) -> Value {
    map[key] = value;
    map
}

fn first<'a>(names: &[&'a str]) -> &'a str {
    names.iter().find(|name| !name.is_empty()).copied().unwrap_or_default()
}

/// Sets a field, unless there is nothing to say.
fn set(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let nothing = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    if !nothing {
        fields.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
