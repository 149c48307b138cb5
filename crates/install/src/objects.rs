//! Values and a release in, the objects of the installation out, in the order in which they are to be applied.

mod accounts;
mod monitoring;
mod network;
mod own;
mod workload;

use portolan_core::job::{JobRole, JobSheet};
use serde_json::{Map, Value, json};

use crate::Invalid;
use crate::values::{ProcessMode, Values, ordered};

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

/// All objects of an installation. Of the jobs, those are taken that are to run.
pub fn objects(values: &Values, release: &Release, jobs: &[&JobSheet]) -> Result<Vec<Value>, Invalid> {
    if !is_name(&release.name, LONGEST_RELEASE) {
        return Err(Invalid::at("release", "its name is of small letters, digits and hyphens, 53 at most"));
    }
    if !is_name(&release.namespace, LONGEST_LABEL) {
        return Err(Invalid::at("namespace", "its name is of small letters, digits and hyphens, 63 at most"));
    }
    let plan = Installation { values, release, jobs: chosen(values, jobs) };
    let mut all = plan.definitions();
    all.extend(plan.accounts());
    all.extend(plan.secret());
    all.push(plan.deployment());
    all.extend(plan.network());
    all.extend(plan.monitoring());
    all.extend(plan.own_objects());
    Ok(all)
}

/// The jobs that are to run: the usual one first, the others as they are named.
fn chosen<'a>(values: &Values, jobs: &[&'a JobSheet]) -> Vec<&'a JobSheet> {
    let named = values.controllers.iter().filter_map(|name| jobs.iter().find(|job| job.name == name));
    ordered(&named.copied().collect::<Vec<_>>())
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
    /// Those that are to run.
    jobs: Vec<&'a JobSheet>,
}

/// Which pods are meant: the value of their label, and what names end with.
type Component = &'static str;

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

    /// The Deployments that there will be; the operator itself makes those of its workers.
    fn components(&self) -> Vec<Component> {
        let divided = self.jobs.iter().flat_map(|job| job.roles.iter().skip(1));
        match self.values.operator.mode {
            ProcessMode::Single => vec![JobRole::OPERATOR],
            ProcessMode::Roles => divided.map(|role| role.component).collect(),
        }
    }

    /// A name, followed by the component where it is not the operator itself.
    fn named(&self, name: &str, component: Component) -> String {
        match component {
            JobRole::OPERATOR => name.to_owned(),
            other => format!("{name}-{other}"),
        }
    }

    /// Labels that all pods have.
    fn all_pods(&self) -> Value {
        json!({NAME_LABEL: self.name(), INSTANCE_LABEL: self.release.name})
    }

    /// Labels that the pods of a component have.
    fn pods_of(&self, component: Component) -> Value {
        with(self.all_pods(), COMPONENT_LABEL, json!(component))
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
        let found = self.jobs.iter().flat_map(|job| (job.definitions)());
        found.map(|definition| self.kept(definition)).collect()
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
