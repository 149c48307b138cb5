//! What the checks of a container need to know of the pod around it.

use serde_json::Value;

use crate::value::{flag_at, list, number, text, text_at};

/// Whether a spec is that of a pod or of a template, which may leave more open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole<'a> {
    /// A pod of this name.
    Pod(&'a str),
    Template,
}

/// A pod's spec, and those of its volumes that can be mounted.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    pub(super) spec: &'a Value,
    pub(super) volumes: Vec<&'a Value>,
}

impl<'a> Setting<'a> {
    /// The volume of a name.
    pub(super) fn volume(&self, name: &str) -> Option<&'a Value> {
        self.volumes.iter().copied().find(|volume| text(volume, "name") == name)
    }

    /// Seconds that the pod has to end.
    pub(super) fn grace(&self) -> Option<i64> {
        number(self.spec, "terminationGracePeriodSeconds")
    }

    /// Names of the claims that containers may use, sorted.
    pub(super) fn claims(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = list(self.spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether the pod shares the host's user ids.
    pub(super) fn host_users(&self) -> bool {
        self.spec.get("hostUsers").and_then(Value::as_bool).unwrap_or(true)
    }

    /// Whether nothing of the pod is started again.
    pub(super) fn never_restarts(&self) -> bool {
        text(self.spec, "restartPolicy") == "Never"
    }

    /// The operating system, where the pod names one.
    pub(super) fn system(&self) -> Option<&'a str> {
        self.spec.get("os").filter(|os| !os.is_null()).map(|_| text_at(self.spec, "/os/name"))
    }

    /// Whether the pod uses the host's network.
    pub(super) fn host_network(&self) -> bool {
        flag_at(self.spec, "/hostNetwork")
    }

    /// All containers with the list they stand in and their place there, in the order in which they are visited.
    pub(super) fn containers(&self) -> impl Iterator<Item = (&'static str, usize, &'a Value)> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |field| {
            list(spec, field).iter().enumerate().map(move |(index, container)| (field, index, container))
        })
    }
}
