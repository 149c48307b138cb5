//! Discovery → the kinds a server knows; what a user calls a kind → the one that is meant; a kind → its paths.

use kube::core::discovery::v2::{APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery};
use portolan_core::text::distance;

use crate::failure::{Failure, Outcome};
use crate::server::{Server, ServerRequest};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// One kind in one version of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Its group; empty for the core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name, as `Deployment`.
    pub kind: String,
    /// Its name in paths.
    pub plural: String,
    /// Its name in messages; may be empty.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// Whether it can be listed.
    pub listable: bool,
}

/// All kinds of a server; of each group the preferred version first.
pub struct Kinds(Vec<ServedKind>);

impl ServedKind {
    /// `pods`, `deployments.apps`: how messages name the kind.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `pod/web`, `deployment.apps/web`: how messages name an object.
    pub fn object(&self, name: &str) -> String {
        let singular = if self.singular.is_empty() { self.kind.to_lowercase() } else { self.singular.clone() };
        if self.group.is_empty() { format!("{singular}/{name}") } else { format!("{singular}.{}/{name}", self.group) }
    }

    /// The path of the collection: in `namespace` where the kind lives in one and it is given.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let version = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{version}/namespaces/{}/{}", segment(namespace), self.plural),
            None => format!("{version}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection_path(Some(namespace)), segment(name))
    }

    fn is_called(&self, called: &str) -> bool {
        self.plural == called
            || self.singular == called
            || self.kind.to_lowercase() == called
            || self.short_names.iter().any(|short| short == called)
    }

    fn is_in(&self, group: &str) -> bool {
        self.group == group || format!("{}.{}", self.version, self.group) == group
    }
}

/// One piece of a path or a query, with everything escaped that could end it.
pub fn segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

impl Kinds {
    /// Asks the server which kinds it knows.
    pub async fn discover(server: &Server) -> Outcome<Self> {
        let mut groups = Vec::new();
        for path in ["/api", "/apis"] {
            let answer = server.call(ServerRequest { accept: AGGREGATED, ..ServerRequest::get(path) }).await?;
            let list: APIGroupDiscoveryList = serde_json::from_value(answer.body)
                .map_err(|error| Failure::new(format!("the server's list of kinds is not understood: {error}")))?;
            groups.extend(list.items);
        }
        Ok(Self(groups.iter().flat_map(kinds_of_group).collect()))
    }

    /// The kind a user means by `pods`, `po`, `Pod`, `deployments.apps` or `deployments.v1.apps`.
    pub fn called(&self, name: &str) -> Outcome<&ServedKind> {
        let lower = name.to_lowercase();
        let exact = self.0.iter().find(|kind| kind.is_called(&lower));
        let qualified = || {
            let (called, group) = lower.split_once('.')?;
            self.0.iter().find(|kind| kind.is_called(called) && kind.is_in(group))
        };
        exact.or_else(qualified).ok_or_else(|| self.unknown(name))
    }

    /// The kinds of a category such as `all`, or the one kind of that name.
    pub fn called_or_in_category(&self, name: &str) -> Outcome<Vec<&ServedKind>> {
        let mut members: Vec<&ServedKind> = Vec::new();
        for kind in self.0.iter().filter(|kind| kind.listable && kind.categories.iter().any(|there| there == name)) {
            if !members.iter().any(|there| there.plural == kind.plural && there.group == kind.group) {
                members.push(kind);
            }
        }
        if members.is_empty() { Ok(vec![self.called(name)?]) } else { Ok(members) }
    }

    /// The kind that an object's `apiVersion` and `kind` name.
    pub fn of_object(&self, api_version: &str, kind: &str) -> Outcome<&ServedKind> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = self.0.iter().find(|there| there.group == group && there.version == version && there.kind == kind);
        found.ok_or_else(|| {
            let failure = Failure::new(format!("the server knows no kind {kind:?} in {api_version:?}"));
            match self.0.iter().find(|there| there.kind == kind) {
                Some(other) => failure.next(format!("it has {kind} in {}", api_version_of(other))),
                None => failure.next("check apiVersion and kind, or apply the CustomResourceDefinition first"),
            }
        })
    }

    /// The listable kinds of a group, each once, in its preferred version.
    pub fn in_group(&self, group: &str) -> Vec<&ServedKind> {
        let mut members: Vec<&ServedKind> = Vec::new();
        for kind in self.0.iter().filter(|kind| kind.listable && kind.group == group) {
            if !members.iter().any(|there| there.plural == kind.plural) {
                members.push(kind);
            }
        }
        members
    }

    fn unknown(&self, name: &str) -> Failure {
        let failure = Failure::new(format!("the server knows no kind called {name:?}"));
        let lower = name.to_lowercase();
        let allowed = (lower.len() / 3).min(2);
        let is_near =
            |kind: &&ServedKind| distance(&kind.plural, &lower).min(distance(&kind.singular, &lower)) <= allowed;
        match self.0.iter().find(is_near) {
            Some(near) => failure.next(format!("did you mean {}?", near.resource())),
            None => failure.next("use its plural, singular or short name; KIND.GROUP where two groups share a name"),
        }
    }
}

fn api_version_of(kind: &ServedKind) -> String {
    if kind.group.is_empty() { kind.version.clone() } else { format!("{}/{}", kind.group, kind.version) }
}

fn kinds_of_group(group: &APIGroupDiscovery) -> Vec<ServedKind> {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
    let mut kinds = Vec::new();
    for version in &group.versions {
        let version_name = version.version.clone().unwrap_or_default();
        kinds.extend(version.resources.iter().filter_map(|resource| kind_of_resource(&name, &version_name, resource)));
    }
    kinds
}

fn kind_of_resource(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<ServedKind> {
    Some(ServedKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: resource.response_kind.as_ref()?.kind.clone()?,
        plural: resource.resource.clone()?,
        singular: resource.singular_resource.clone().unwrap_or_default(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        listable: resource.verbs.iter().any(|verb| verb == "list"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, version: &str, kind: &str, plural: &str, short: &str) -> ServedKind {
        ServedKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short_names: vec![short.into()],
            categories: vec!["all".into()],
            namespaced: true,
            listable: true,
        }
    }

    fn kinds() -> Kinds {
        Kinds(vec![
            kind("", "v1", "Event", "events", "ev"),
            kind("apps", "v1", "Deployment", "deployments", "deploy"),
            kind("apps", "v1beta1", "Deployment", "deployments", "deploy"),
            kind("events.k8s.io", "v1", "Event", "events", "ev"),
        ])
    }

    #[test]
    fn a_kind_is_found_by_each_of_its_names() {
        for name in ["deployments", "deployment", "Deployment", "deploy", "deploy.apps", "deployments.v1.apps"] {
            assert_eq!(kinds().called(name).unwrap().version, "v1", "{name}");
        }
    }

    #[test]
    fn a_group_tells_two_kinds_of_one_name_apart() {
        assert_eq!(kinds().called("events").unwrap().group, "");
        assert_eq!(kinds().called("events.events.k8s.io").unwrap().group, "events.k8s.io");
    }

    #[test]
    fn a_version_in_the_name_is_honoured() {
        assert_eq!(kinds().called("deployments.v1beta1.apps").unwrap().version, "v1beta1");
    }

    #[test]
    fn a_near_miss_is_named() {
        let failure = kinds().called("deploymnets").unwrap_err();

        assert!(failure.to_string().contains("did you mean deployments.apps?"), "{failure}");
    }

    #[test]
    fn a_short_word_is_not_taken_for_another_one() {
        assert!(!kinds().called("voy").unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn a_category_has_each_kind_once() {
        let found = kinds();
        let resources: Vec<String> =
            found.called_or_in_category("all").unwrap().iter().map(|kind| kind.resource()).collect();

        assert_eq!(resources, ["events", "deployments.apps", "events.events.k8s.io"]);
    }

    #[test]
    fn an_object_of_another_version_is_told_which_one_there_is() {
        let failure = kinds().of_object("extensions/v1", "Deployment").unwrap_err();

        assert!(failure.to_string().contains("apps/v1"), "{failure}");
    }

    #[test]
    fn names_cannot_leave_their_place_in_the_path() {
        let path = kinds().called("deploy").unwrap().object_path("a/../b", "x?y");

        assert_eq!(path, "/apis/apps/v1/namespaces/a%2F%2E%2E%2Fb/deployments/x%3Fy");
    }
}
