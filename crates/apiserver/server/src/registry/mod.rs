//! Every resource that is served: the built-in kinds from their table, the others from CRDs.

mod custom;
mod discovery;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use portolan_builtin::{KINDS, Kind};
use portolan_schema::Cursor;
use portolan_schema::crd::Scale;

pub(crate) use custom::{Custom, resources as custom_resources};

use crate::encode::TypeMeta;
use crate::openapi::Published;
use crate::status::About;
use crate::store::StoreKey;

/// One resource in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<&'static str>,
    /// The store's name for its objects, shared by its versions.
    pub(crate) collection: Arc<str>,
    pub(crate) source: RuleSource,
}

/// Where a resource's rules come from.
#[derive(Debug)]
pub(crate) enum RuleSource {
    Builtin(&'static Kind),
    Custom(Box<Custom>),
}

impl Resource {
    pub(crate) fn builtin(kind: &'static Kind) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
        // Events have two groups and one home.
        let home = if kind.kind == "Event" { "" } else { kind.group };
        Self {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            kind: kind.kind.to_owned(),
            list_kind: kind.list_kind(),
            plural: kind.plural.to_owned(),
            singular: kind.singular.to_owned(),
            short_names: owned(kind.short_names),
            categories: owned(kind.categories),
            namespaced: kind.namespaced,
            verbs: kind.verbs.to_vec(),
            collection: Arc::from(collection(kind.plural, home)),
            source: RuleSource::Builtin(kind),
        }
    }

    /// `group/version`, or the version alone in the core group.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub(crate) fn type_meta(&self) -> TypeMeta {
        TypeMeta { kind: self.kind.clone(), api_version: self.api_version() }
    }

    pub(crate) fn key(&self, namespace: &str, name: &str) -> StoreKey {
        StoreKey::new(&self.collection, if self.namespaced { namespace } else { "" }, name)
    }

    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, plural: &self.plural, name }
    }

    /// The schema by which unknown fields, defaults and owners are found.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        match &self.source {
            RuleSource::Builtin(kind) => kind.cursor(),
            RuleSource::Custom(custom) => custom.schema.root(),
        }
    }

    pub(crate) fn builtin_kind(&self) -> Option<&'static Kind> {
        match &self.source {
            RuleSource::Builtin(kind) => Some(kind),
            RuleSource::Custom(_) => None,
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.source {
            RuleSource::Builtin(_) => None,
            RuleSource::Custom(custom) => Some(custom),
        }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// Whether its objects are answered and never stored.
    pub(crate) fn is_virtual(&self) -> bool {
        self.builtin_kind().is_some_and(Kind::is_virtual)
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.is("", "namespaces")
    }

    pub(crate) fn has_status(&self) -> bool {
        match &self.source {
            RuleSource::Builtin(kind) => kind.status,
            RuleSource::Custom(custom) => custom.status,
        }
    }

    pub(crate) fn scale(&self) -> Option<Scale> {
        match &self.source {
            RuleSource::Builtin(kind) => kind.scale.then(|| Scale {
                spec_replicas: ".spec.replicas".to_owned(),
                status_replicas: ".status.replicas".to_owned(),
                label_selector: Some(".spec.selector".to_owned()),
            }),
            RuleSource::Custom(custom) => custom.scale.clone(),
        }
    }

    /// Whether `/SUBRESOURCE` is served.
    pub(crate) fn serves(&self, subresource: &str) -> bool {
        match subresource {
            "" => true,
            "status" => self.has_status(),
            "scale" => self.scale().is_some(),
            proxied if proxied.starts_with("proxy/") => self.serves("proxy"),
            other => self.builtin_kind().is_some_and(|k| k.subresources.contains(&other)),
        }
    }

    pub(crate) fn create_on_update(&self) -> bool {
        self.builtin_kind().is_some_and(|k| k.create_on_update)
    }

    pub(crate) fn unconditional_update(&self) -> bool {
        self.builtin_kind().is_some_and(|k| k.unconditional_update)
    }

    /// The warning that every request for it carries.
    pub(crate) fn warning(&self) -> Option<&str> {
        match &self.source {
            RuleSource::Builtin(kind) => kind.warning,
            RuleSource::Custom(custom) => custom.warning.as_deref(),
        }
    }

    /// Whether stored texts can be shown as they are. They cannot where another version or another schema wrote them.
    pub(crate) fn is_verbatim(&self) -> bool {
        match &self.source {
            RuleSource::Builtin(kind) => !(kind.kind == "Event" && kind.group == "events.k8s.io"),
            RuleSource::Custom(custom) => custom.verbatim,
        }
    }
}

/// `apps/v1`, or `v1` in the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `deployments.apps`, or `configmaps` in the core group.
pub(crate) fn collection(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// Everything served at one time. A change of CRDs makes a new one.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    builtin: Arc<Vec<Arc<Resource>>>,
    /// By the name of the CRD.
    custom: BTreeMap<String, Vec<Arc<Resource>>>,
    lookup: BTreeMap<(String, String, String), Arc<Resource>>,
    /// What is published about all this, once somebody asked.
    published: OnceLock<Arc<Published>>,
}

impl Registry {
    /// The built-in kinds.
    pub(crate) fn new() -> Self {
        let builtin = KINDS.iter().map(|kind| Arc::new(Resource::builtin(kind))).collect();
        let (custom, lookup, published) = (BTreeMap::new(), BTreeMap::new(), OnceLock::new());
        let mut registry = Self { builtin: Arc::new(builtin), custom, lookup, published };
        registry.index();
        registry
    }

    fn index(&mut self) {
        let all = self.builtin.iter().chain(self.custom.values().flatten());
        let keyed = all.map(|r| ((r.group.clone(), r.version.clone(), r.plural.clone()), r.clone()));
        self.lookup = keyed.collect();
    }

    /// With the resources of a CRD, or without them.
    pub(crate) fn with_custom(&self, definition: &str, resources: Vec<Arc<Resource>>) -> Self {
        let mut next = self.clone();
        if resources.is_empty() {
            next.custom.remove(definition);
        } else {
            next.custom.insert(definition.to_owned(), resources);
        }
        next.published = OnceLock::new();
        next.index();
        next
    }

    /// What is published, found out at most once.
    pub(crate) fn published(&self, find: impl FnOnce() -> Published) -> Arc<Published> {
        self.published.get_or_init(|| Arc::new(find())).clone()
    }

    /// The names of the CRDs that are served.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &str> {
        self.custom.keys().map(String::as_str)
    }

    /// The names of the CRDs that serve a group and version.
    pub(crate) fn definitions_serving(&self, group: &str, version: &str) -> impl Iterator<Item = &str> {
        let serves =
            move |resources: &[Arc<Resource>]| resources.iter().any(|r| r.group == group && r.version == version);
        self.custom.iter().filter(move |(_, resources)| serves(resources)).map(|(name, _)| name.as_str())
    }

    /// The groups and versions of CRDs.
    pub(crate) fn custom_versions(&self) -> BTreeSet<(&str, &str)> {
        self.custom.values().flatten().map(|r| (r.group.as_str(), r.version.as_str())).collect()
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.lookup.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Whether a group has built-in kinds.
    pub(crate) fn is_builtin_group(&self, group: &str) -> bool {
        self.builtin.iter().any(|r| r.group == group)
    }

    /// Whether a group and version is served at all.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.all().any(|r| r.group == group && r.version == version)
    }

    /// The resource of an `apiVersion` and `kind`, as owner references name it.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.all().find(|r| r.kind == kind && r.group == group && r.version == version)
    }

    /// A resource whose objects stand in a collection.
    pub(crate) fn by_collection(&self, collection: &str) -> Option<&Arc<Resource>> {
        self.all().find(|r| &*r.collection == collection)
    }

    /// Every resource, in the order of discovery.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.iter().chain(self.custom.values().flatten())
    }

    /// One resource for each collection.
    pub(crate) fn collections(&self) -> Vec<Arc<Resource>> {
        let mut seen = std::collections::HashSet::new();
        self.all().filter(|r| !r.is_virtual() && seen.insert(r.collection.clone())).cloned().collect()
    }
}
