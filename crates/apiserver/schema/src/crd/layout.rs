//! What the versions of a definition share, and what each has of its own.

use serde_json::Value;

use super::list;

/// The versions of a definition, with what is the same in all of them told apart.
pub(super) struct Layout<'a> {
    pub(super) versions: &'a [Value],
    shares: [bool; 4],
}

const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

impl<'a> Layout<'a> {
    pub(super) fn of(spec: &'a Value) -> Self {
        let versions = list(spec.get("versions"));
        let same =
            |part: &str| versions.iter().all(|version| present(version.get(part)) == present(versions[0].get(part)));
        Self { versions, shares: PARTS.map(same) }
    }

    fn shared(&self, part: usize) -> Option<&'a Value> {
        self.versions.first().filter(|_| self.shares[part]).and_then(|version| present(version.get(PARTS[part])))
    }

    fn own(&self, version: &'a Value, part: usize) -> Option<&'a Value> {
        present(version.get(PARTS[part])).filter(|_| !self.shares[part])
    }

    /// The `openAPIV3Schema` of all versions.
    pub(super) fn shared_schema(&self) -> Option<&'a Value> {
        self.shared(0).and_then(|schema| present(schema.get("openAPIV3Schema")))
    }

    pub(super) fn own_schema(&self, version: &'a Value) -> Option<&'a Value> {
        self.own(version, 0).and_then(|schema| present(schema.get("openAPIV3Schema")))
    }

    pub(super) fn shared_subresources(&self) -> Option<&'a Value> {
        self.shared(1)
    }

    pub(super) fn own_subresources(&self, version: &'a Value) -> Option<&'a Value> {
        self.own(version, 1)
    }

    pub(super) fn shared_columns(&self) -> &'a [Value] {
        list(self.shared(2))
    }

    pub(super) fn own_columns(&self, version: &'a Value) -> &'a [Value] {
        list(self.own(version, 2))
    }

    pub(super) fn shared_selectable(&self) -> &'a [Value] {
        list(self.shared(3))
    }

    pub(super) fn own_selectable(&self, version: &'a Value) -> &'a [Value] {
        list(self.own(version, 3))
    }

    /// Whether a version has a status subresource, its own or the shared one.
    pub(super) fn has_status(version: &Value) -> bool {
        version.get("subresources").and_then(|s| s.get("status")).is_some_and(|status| !status.is_null())
    }

    pub(super) fn any_status(&self) -> bool {
        self.versions.iter().any(Self::has_status)
    }

    /// Every schema once: the shared one, or each version's.
    pub(super) fn schemas(&self) -> Vec<&'a Value> {
        match self.shared_schema() {
            Some(schema) => vec![schema],
            None => self.versions.iter().filter_map(|version| self.own_schema(version)).collect(),
        }
    }
}

/// Absent, null and empty lists are the same.
fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null() && !value.as_array().is_some_and(Vec::is_empty))
}
