//! What clients ask first: which groups, versions and resources there are.

use serde_json::{Value, json};

use super::custom::compare_versions;
use super::{Registry, Resource, api_version};

impl Registry {
    /// `/api`.
    pub(crate) fn core_versions(&self, server: &str) -> Value {
        json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server}],
        })
    }

    /// `/apis`.
    pub(crate) fn group_list(&self) -> Value {
        let groups: Vec<Value> = self.groups().iter().filter(|g| !g.is_empty()).map(|g| self.group_object(g)).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/GROUP`.
    pub(crate) fn group(&self, group: &str) -> Option<Value> {
        if group.is_empty() || !self.groups().contains(&group) {
            return None;
        }
        let mut object = self.group_object(group);
        object["kind"] = json!("APIGroup");
        object["apiVersion"] = json!("v1");
        Some(object)
    }

    fn group_object(&self, group: &str) -> Value {
        let versions: Vec<Value> = self
            .versions(group)
            .iter()
            .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
            .collect();
        json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
    }

    /// `/api/v1` or `/apis/GROUP/VERSION`.
    pub(crate) fn resource_list(&self, group: &str, version: &str) -> Option<Value> {
        if !self.serves(group, version) {
            return None;
        }
        let resources: Vec<Value> = self.of(group, version).flat_map(resource_entries).collect();
        let mut list = json!({
            "kind": "APIResourceList", "groupVersion": api_version(group, version), "resources": resources,
        });
        if !group.is_empty() {
            list["apiVersion"] = json!("v1");
        }
        Some(list)
    }

    /// Aggregated discovery of `/api` (the core group) or `/apis` (all others).
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let items: Vec<Value> = self
            .groups()
            .into_iter()
            .filter(|group| group.is_empty() == core)
            .map(|group| self.aggregated_group(group))
            .collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
    }

    fn aggregated_group(&self, group: &str) -> Value {
        let versions: Vec<Value> = self
            .versions(group)
            .into_iter()
            .map(|version| {
                let resources: Vec<Value> = self.of(group, version).map(aggregated_resource).collect();
                json!({"version": version, "freshness": "Current", "resources": resources})
            })
            .collect();
        let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
        json!({"metadata": metadata, "versions": versions})
    }

    /// The groups in the order of their first resource.
    fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for resource in self.all() {
            if !groups.contains(&resource.group.as_str()) {
                groups.push(&resource.group);
            }
        }
        groups
    }

    /// A group's versions, the preferred one first.
    pub(crate) fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> = self.all().filter(|r| r.group == group).map(|r| r.version.as_str()).collect();
        versions.sort_by(|a, b| compare_versions(b, a));
        versions.dedup();
        versions
    }

    pub(crate) fn of<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Resource> {
        let mut resources: Vec<&Resource> =
            self.all().filter(|r| r.group == group && r.version == version).map(AsRef::as_ref).collect();
        resources.sort_by(|a, b| a.plural.cmp(&b.plural));
        resources.into_iter()
    }
}

/// A subresource as discovery shows it.
struct Sub {
    name: String,
    group: &'static str,
    version: &'static str,
    kind: String,
    verbs: &'static [&'static str],
}

fn subresources(resource: &Resource) -> Vec<Sub> {
    let mut subs: Vec<Sub> = Vec::new();
    let mut add = |name: &str, group, version, kind: &str, verbs| {
        subs.push(Sub { name: name.to_owned(), group, version, kind: kind.to_owned(), verbs });
    };
    if let Some(kind) = resource.builtin_kind() {
        for name in kind.subresources {
            match *name {
                "eviction" => add(name, "policy", "v1", "Eviction", &["create"]),
                "token" => add(name, "authentication.k8s.io", "v1", "TokenRequest", &["create"]),
                "binding" => add(name, "", "", "Binding", &["create"]),
                "attach" => add(name, "", "", "PodAttachOptions", &["create", "get"]),
                "exec" => add(name, "", "", "PodExecOptions", &["create", "get"]),
                "portforward" => add(name, "", "", "PodPortForwardOptions", &["create", "get"]),
                "proxy" => add(name, "", "", "PodProxyOptions", &["create", "delete", "get", "patch", "update"]),
                "log" => add(name, "", "", &resource.kind, &["get"]),
                "finalize" => add(name, "", "", &resource.kind, &["update"]),
                _ => add(name, "", "", &resource.kind, &["get", "patch", "update"]),
            }
        }
    }
    if resource.scale().is_some() {
        add("scale", "autoscaling", "v1", "Scale", &["get", "patch", "update"]);
    }
    if resource.has_status() {
        add("status", "", "", &resource.kind, &["get", "patch", "update"]);
    }
    subs.sort_by(|a, b| a.name.cmp(&b.name));
    subs
}

fn resource_entries(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    if !resource.is_virtual() {
        main["storageVersionHash"] = json!(storage_hash(resource));
    }
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        main["categories"] = json!(resource.categories);
    }
    let subs = subresources(resource).into_iter().map(|sub| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
        });
        if !sub.group.is_empty() {
            entry["group"] = json!(sub.group);
        }
        if !sub.version.is_empty() {
            entry["version"] = json!(sub.version);
        }
        entry
    });
    std::iter::once(main).chain(subs).collect()
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut entry = json!({
        "resource": resource.plural, "responseKind": kind, "singularResource": resource.singular,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let subs: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|sub| {
            let (group, version) = if sub.version.is_empty() {
                (resource.group.as_str(), resource.version.as_str())
            } else {
                (sub.group, sub.version)
            };
            let kind = json!({"group": group, "version": version, "kind": sub.kind});
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    if !subs.is_empty() {
        entry["subresources"] = json!(subs);
    }
    entry
}

/// A text that changes when the stored form would: the start of a hash of group, version and kind.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    // Events are stored in the core group; CRDs were first stored in a version that is long gone.
    let (group, version) = match (resource.custom().is_some(), resource.kind.as_str()) {
        (false, "Event") => ("", "v1"),
        (false, "CustomResourceDefinition") => (resource.group.as_str(), "v1beta1"),
        _ => (resource.group.as_str(), resource.version.as_str()),
    };
    let named = format!("{group}/{version}/{}", resource.kind);
    let digest = ring::digest::digest(&ring::digest::SHA256, named.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}
