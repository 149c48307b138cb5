//! A job as data: what is told, installed, asked for and documented of it, without running it.

use serde_json::Value;

use crate::metric::MetricGroup;
use crate::reasons::Reason;
use crate::rights::RoleRule;

/// What is known of a job. Installation, documentation and the tools read it; the engine's `JobDefinition` adds how it runs.
#[derive(Clone, Copy, Debug)]
pub struct JobSheet {
    /// Its name: on the command line, in logs and metrics, and of its folder in the chart.
    pub name: &'static str,
    /// What it does, as the command line's help says it.
    pub help: &'static str,
    /// The same within a sentence.
    pub about: &'static str,
    /// The API group of its kinds.
    pub group: &'static str,
    /// The definitions of its kinds, as plain objects.
    pub definitions: fn() -> Vec<Value>,
    /// What a token of the other side must be allowed for the objects of a kind, as that side names its permissions.
    pub permissions: fn(&str) -> Vec<&'static str>,
    /// Who does its work, and what each may do in a cluster: one process that does everything first, then those that it can be
    /// divided into.
    pub roles: &'static [JobRole],
    /// The leases that its processes hold.
    pub leases: &'static [LeaseName],
    /// Variables of a pod's environment that it needs besides those that all have, each with the field of the pod that it shows.
    pub pod_fields: &'static [(&'static str, &'static str)],
    /// What it measures.
    pub metrics: &'static [MetricGroup],
    /// The reasons that it gives.
    pub reasons: &'static [&'static [Reason]],
    /// Whose work its log lines tell of, where its work is divided so.
    pub log_scope: Option<LogScope>,
    /// What the annotations of earlier operators begin with by which users steer single objects; those of Portolan are read
    /// before them.
    pub older_prefixes: &'static [&'static str],
    /// Whether an installation runs it unless its values name others.
    pub usual: bool,
    /// Values of an installation that mean something to this job alone, as paths to what turns them on.
    pub values: &'static [&'static str],
}

impl JobSheet {
    /// A job that has nothing yet but a name and a group.
    pub const fn named(name: &'static str, group: &'static str) -> Self {
        Self {
            name,
            help: "",
            about: "",
            group,
            definitions: Vec::new,
            permissions: |_| Vec::new(),
            roles: &[],
            leases: &[],
            pod_fields: &[],
            metrics: &[],
            reasons: &[],
            log_scope: None,
            older_prefixes: &[],
            usual: false,
            values: &[],
        }
    }

    /// The role of this name.
    pub fn role(&self, name: &str) -> Option<&'static JobRole> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The names of its kinds, as manifests have them.
    pub fn kinds(&self) -> Vec<String> {
        let name = |definition: &Value| definition["spec"]["names"]["kind"].as_str().map(str::to_owned);
        (self.definitions)().iter().filter_map(name).collect()
    }
}

/// A part of a job that one process can do, with rights of its own.
#[derive(Clone, Copy, Debug)]
pub struct JobRole {
    /// Its name, as `--role` has it; the job's own where it cannot be divided.
    pub name: &'static str,
    /// The component that does it, in labels and in what names of accounts and Deployments end with.
    pub component: &'static str,
    /// What it may do.
    pub rules: fn() -> Vec<RoleRule>,
}

impl JobRole {
    /// The component that is there in any case, and has no name of its own.
    pub const OPERATOR: &'static str = "operator";

    /// The role of one process that does everything.
    pub const fn whole(name: &'static str, rules: fn() -> Vec<RoleRule>) -> Self {
        Self { name, component: Self::OPERATOR, rules }
    }
}

/// What log lines call the object whose work they tell of, and which may choose how much is logged of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogScope {
    /// The field with its name.
    pub name: &'static str,
    /// The field with its namespace.
    pub namespace: &'static str,
}

/// How a lease is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseName {
    /// Exactly so: one process leads by it.
    Leader(&'static str),
    /// With something behind it: each process has one.
    Each(&'static str),
}

impl LeaseName {
    /// Whether a lease is called so.
    pub fn names(self, lease: &str) -> bool {
        match self {
            Self::Leader(name) => lease == name,
            Self::Each(beginning) => lease.starts_with(beginning),
        }
    }

    /// The name, where there is only one such lease.
    pub fn leader(self) -> Option<&'static str> {
        match self {
            Self::Leader(name) => Some(name),
            Self::Each(_) => None,
        }
    }
}

/// A definition as a plain object, without what only a server writes.
pub fn plain(definition: impl serde::Serialize) -> Value {
    let mut object = serde_json::to_value(definition).expect("definitions are plain JSON");
    object.as_object_mut().map(|fields| fields.remove("status"));
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_those_that_the_definitions_name() {
        fn definitions() -> Vec<Value> {
            vec![plain(json!({"spec": {"names": {"kind": "Buoy"}}, "status": {}}))]
        }
        let sheet = JobSheet { definitions, ..JobSheet::named("sea", "sea.example.com") };

        assert_eq!(sheet.kinds(), ["Buoy"]);
        assert_eq!(definitions()[0].get("status"), None);
    }

    #[test]
    fn a_lease_is_known_by_its_name_or_by_what_it_begins_with() {
        assert!(LeaseName::Leader("sea").names("sea") && !LeaseName::Leader("sea").names("sea-1"));
        assert!(LeaseName::Each("sea-").names("sea-1") && !LeaseName::Each("sea-").names("sea"));
    }
}
