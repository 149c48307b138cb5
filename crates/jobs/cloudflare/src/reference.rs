//! What objects refer to, as data: what they run for when it changes follows from it, and what is looked up for them.
//!
//! A kind says it once, in [`Kind::refers`](crate::kind::Kind::refers). Whatever a kind of the job stands for can be referred to
//! by the name of its object, by its id and by its name at Cloudflare; so can what this release has no kind for yet, but for
//! objects, which are waited for.

use std::collections::BTreeMap;
use std::fmt;

use portolan_core::{ObjectKey, Problem, RemoteId, reasons};

use crate::blocks::SourceReference;

/// What an object refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecReference {
    /// The zone that its name lies in.
    Zone(ZoneHint),
    /// The Kubernetes object whose addresses are published.
    Source(SourceReference),
    /// Something else at Cloudflare, whose id it writes.
    Remote(RemoteReference),
}

/// Those of references that name something else at Cloudflare than a zone.
pub(crate) fn remote(references: &[SpecReference]) -> impl Iterator<Item = &RemoteReference> {
    references.iter().filter_map(|one| match one {
        SpecReference::Remote(remote) => Some(remote),
        SpecReference::Zone(_) | SpecReference::Source(_) => None,
    })
}

/// How an object says which zone it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneHint {
    /// The zone's id, which needs no look-up.
    pub id: Option<String>,
    /// A domain to look the zone up by.
    pub domain: Option<String>,
    /// The name that must lie in the zone, as it was written.
    pub name: String,
}

/// Something at Cloudflare that an object refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteReference {
    /// The kind of the objects that stand for it.
    pub kind: &'static str,
    /// How it is named.
    pub by: NamedBy,
    /// The field that names it.
    pub field: &'static str,
}

/// How something at Cloudflare is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedBy {
    /// By the object that stands for it.
    Object(ObjectKey),
    /// By its id.
    Id(String),
    /// By its name at Cloudflare.
    RemoteName(String),
    /// Not at all: the account's default one is meant.
    Default,
}

impl NamedBy {
    /// What is said in one of three fields, of an object of the cluster; the id wins over the object, and the object over the name.
    pub(crate) fn one_of(object: Option<&String>, id: Option<&String>, remote_name: Option<&String>) -> Option<Self> {
        let said = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned();
        let object = || said(object).map(|name| Self::Object(ObjectKey::cluster(&name)));
        said(id).map(Self::Id).or_else(object).or_else(|| said(remote_name).map(Self::RemoteName))
    }
}

impl RemoteReference {
    /// The object that it names, where it names one.
    pub(crate) fn object(&self) -> Option<&ObjectKey> {
        match &self.by {
            NamedBy::Object(key) => Some(key),
            NamedBy::Id(_) | NamedBy::RemoteName(_) | NamedBy::Default => None,
        }
    }
}

impl fmt::Display for RemoteReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        match &self.by {
            NamedBy::Object(key) => write!(f, "{kind} {key}"),
            NamedBy::Id(id) => write!(f, "{kind} with the id {id}"),
            NamedBy::RemoteName(name) => write!(f, "{kind} named {name} at Cloudflare"),
            NamedBy::Default => write!(f, "the default {kind}"),
        }
    }
}

/// What a reference was found to mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTarget {
    /// Its id.
    pub id: RemoteId,
    /// Its name at Cloudflare, where that is known.
    pub name: Option<String>,
}

impl RemoteTarget {
    /// What a reference means, by the id that was found.
    pub(crate) fn read(reference: &RemoteReference, id: &str, name: Option<&str>) -> Result<Self, Problem> {
        let id = RemoteId::parse(id).map_err(|error| {
            Problem::invalid(reasons::INVALID_CONFIG, format!("{} means {reference}: {error}", reference.field))
        })?;
        Ok(Self { id, name: name.map(str::to_owned) })
    }
}

/// What the references of an object were found to mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteTargets(pub(crate) BTreeMap<RemoteReference, RemoteTarget>);

impl RemoteTargets {
    /// What one of them means.
    pub fn of(&self, reference: &RemoteReference) -> Result<&RemoteTarget, Problem> {
        self.0.get(reference).ok_or_else(|| waiting(format!("{reference} is not known yet")))
    }

    /// What all of them mean, for kinds that always refer to as many things.
    pub(crate) fn each<const N: usize>(&self, references: &[SpecReference]) -> Result<[&RemoteTarget; N], Problem> {
        let all: Vec<&RemoteTarget> = remote(references).map(|one| self.of(one)).collect::<Result<_, _>>()?;
        let known = all.len();
        all.try_into().map_err(|_| waiting(format!("{known} of {N} references are known")))
    }

    /// What references mean, in their order.
    #[cfg(test)]
    pub(crate) fn for_each(references: &[SpecReference], found: impl Iterator<Item = RemoteTarget>) -> Self {
        Self(remote(references).cloned().zip(found).collect())
    }
}

/// The kind of objects that stand for identity providers.
pub(crate) const IDENTITY_PROVIDER: &str = "AccessIdentityProvider";

/// Something that is referred to is not there, or not known, yet.
pub(crate) fn waiting(message: String) -> Problem {
    Problem::waiting(reasons::DEPENDENCY_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_wins_over_an_object_and_an_object_over_a_name() {
        let of = |object: Option<&str>, id: Option<&str>, name: Option<&str>| {
            let [object, id, name] = [object, id, name].map(|text| text.map(str::to_owned));
            NamedBy::one_of(object.as_ref(), id.as_ref(), name.as_ref())
        };

        assert_eq!(of(Some("o"), Some("i"), Some("n")), Some(NamedBy::Id("i".to_owned())));
        assert_eq!(of(Some("o"), Some(""), Some("n")), Some(NamedBy::Object(ObjectKey::cluster("o"))));
        assert_eq!(of(None, None, Some("n")), Some(NamedBy::RemoteName("n".to_owned())));
        assert_eq!(of(None, Some(""), None), None);
    }

    #[test]
    fn a_reference_that_was_not_looked_up_is_waited_for_by_its_name() {
        let by = NamedBy::Object(ObjectKey::cluster("corp"));
        let reference = RemoteReference { kind: "VirtualNetwork", by, field: "virtualNetworkRef" };

        let problem = RemoteTargets::default().of(&reference).unwrap_err();

        assert_eq!(
            (problem.reason, problem.message.as_str()),
            ("DependencyError", "VirtualNetwork corp is not known yet")
        );
    }
}
