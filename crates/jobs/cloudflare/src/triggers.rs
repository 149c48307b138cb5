//! Who runs when something changes that objects depend on.
//!
//! All controllers of the job keep the same [`Projection`], so one index for each, of what its objects depend on, answers
//! for all kinds. No change of anything is a reason to look at objects that it does not concern.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use portolan_core::ObjectKey;
use portolan_engine::{Handle, Projected, Referrers, SecretNeed};

use crate::guard::MadeWith;
use crate::kind::{Kind, Management};
use crate::projection::{self, Projection, digest, endings};
use crate::targets::{Referent, UNSERVED};

/// The controllers of the job by kind.
#[derive(Default)]
pub(crate) struct Triggers {
    members: Mutex<Vec<Member>>,
}

/// A controller of the job, and what its objects are found by.
#[derive(Clone)]
struct Member {
    kind: &'static str,
    /// What its objects stand for.
    referent: Referent,
    handle: Handle<Projection>,
    /// By the digests of topics.
    found_by: Arc<Referrers<u64>>,
}

/// What objects are found by when something else changes.
#[derive(Clone, Copy, Hash)]
enum Topic<'a> {
    /// They depend on what this is the digest of.
    DependsOn(u64),
    /// What they recorded was made with the credential that this is the digest of.
    MadeWith(u64),
    /// They stand for the zone or account with this id.
    StandsFor(&'a str),
    /// Their name lies in this domain.
    LiesIn(&'a str),
    /// They say that they are the default of their kind.
    IsDefault,
    /// Their addresses come through a route.
    ThroughRoute,
    /// They are being deleted.
    IsDeleting,
}

impl Topic<'_> {
    fn digest(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// What an object of a kind is found by.
fn topics<K: Kind>(object: &Projected<Projection>) -> Vec<u64> {
    let Some(projection) = &object.projection else { return Vec::new() };
    let depends = projection.depends.iter().map(|one| Topic::DependsOn(*one));
    let stands_for =
        projection.ids.iter().filter(|_| K::MANAGEMENT == Management::Observed).map(|id| Topic::StandsFor(id));
    let lies_in = projection.host.iter().flat_map(|host| endings(host)).map(Topic::LiesIn);
    let others = [
        projection.made_with.map(Topic::MadeWith),
        projection.default.then_some(Topic::IsDefault),
        projection.through_route.then_some(Topic::ThroughRoute),
        object.deleting.then_some(Topic::IsDeleting),
    ];
    depends.chain(stands_for).chain(lies_in).chain(others.into_iter().flatten()).map(Topic::digest).collect()
}

impl Triggers {
    pub(crate) fn add<K: Kind>(&self, handle: Handle<Projection>) {
        let member = Member { kind: K::KIND, referent: Referent::of::<K>(), handle, found_by: Arc::default() };
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(member);
    }

    /// What objects refer to by this kind: what stands for it at Cloudflare, and who knows its objects, where the job has the kind.
    pub(crate) fn referent(&self, kind: &str) -> Option<(Referent, Option<Handle<Projection>>)> {
        let served = self.of_kind(kind).pop().map(|member| (member.referent, Some(member.handle)));
        served.or_else(|| Some((*UNSERVED.iter().find(|referent| referent.kind == kind)?, None)))
    }

    /// What is known of an object is news.
    pub(crate) fn seen<K: Kind>(&self, before: Option<&Projected<Projection>>, after: Option<&Projected<Projection>>) {
        let Some(key) = after.or(before).map(|one| &one.key) else { return };
        let topics = |one: Option<&Projected<Projection>>| one.map(topics::<K>).unwrap_or_default();
        for member in self.of_kind(K::KIND) {
            member.found_by.note(Arc::clone(key), topics(before), topics(after));
        }
        let [was, is] = [before, after].map(|one| one.and_then(|one| one.projection.as_ref()));
        // Who refers to an object runs when it stands for something else.
        if was.map(Projection::target) != is.map(Projection::target) {
            self.changed(&projection::object(K::KIND, key.namespace.as_deref(), &key.name), None);
        }
        // Another default lets the former one go.
        if K::MANAGEMENT == Management::Owned && was.is_some_and(|one| one.default) != is.is_some_and(|one| one.default)
        {
            self.held_released();
        }
    }

    /// Objects that depend on this run, whatever their kind; `except` is the controller that asks.
    pub(crate) fn changed(&self, dependency: &str, except: Option<&str>) {
        for member in self.members().iter().filter(|member| Some(member.kind) != except) {
            member.run(Topic::DependsOn(digest(dependency)));
        }
    }

    /// These objects of a kind run.
    pub(crate) fn run(&self, kind: &str, keys: &[ObjectKey]) {
        for member in self.of_kind(kind) {
            member.handle.enqueue_all(keys);
        }
    }

    /// How many objects depend on one of these, whatever their kind.
    pub(crate) fn dependents(&self, dependencies: &[String]) -> usize {
        self.count(&dependencies.iter().map(|one| Topic::DependsOn(digest(one)).digest()).collect::<Vec<_>>())
    }

    /// How many objects made something with this credential that still stands.
    pub(crate) fn users(&self, credentials: &str) -> usize {
        self.count(&[Topic::MadeWith(digest(credentials)).digest()])
    }

    fn count(&self, topics: &[u64]) -> usize {
        self.members().iter().map(|member| member.found_by.count(topics)).sum()
    }

    /// Whether all objects of all kinds are known.
    pub(crate) fn are_listed(&self) -> bool {
        let members = self.members();
        !members.is_empty() && members.iter().all(|member| member.handle.is_listed())
    }

    /// By what the things were made that objects recorded, and whether the objects stay.
    pub(crate) fn made_with(&self, operator_namespace: &str) -> Vec<(MadeWith, SecretNeed)> {
        let of = |key: &ObjectKey, one: &Projected<Projection>| {
            let projection = one.projection.as_ref()?;
            let namespace = key.namespace.as_deref().unwrap_or(operator_namespace);
            let made_with = match &projection.secret {
                Some(secret) => MadeWith::Secret(ObjectKey::namespaced(namespace, &**secret)),
                None => MadeWith::Credentials(projection.made_with?),
            };
            Some((made_with, if one.deleting { SecretNeed::Leaving } else { SecretNeed::Staying }))
        };
        let mut all: HashMap<MadeWith, SecretNeed> = HashMap::new();
        for member in self.members() {
            member.handle.read(|store| {
                for (made_with, need) in store.iter().filter_map(|(key, one)| of(key, one)) {
                    let known = all.entry(made_with).or_insert(need);
                    *known = need.max(*known);
                }
            });
        }
        all.into_iter().collect()
    }

    /// An object is gone: credentials that were only kept for it may go.
    pub(crate) fn user_gone(&self) {
        for member in self.of_kind("CloudflareCredentials") {
            member.run(Topic::IsDeleting);
        }
    }

    /// Objects whose name lies in a domain run.
    pub(crate) fn domain_changed(&self, domain: &str) {
        self.run_all(Topic::LiesIn(&projection::plain(domain)));
    }

    /// The objects of a kind that say that they are its default run.
    pub(crate) fn defaults_changed(&self, kind: &str) {
        for member in self.of_kind(kind) {
            member.run(Topic::IsDefault);
        }
    }

    /// Deletions in a scope are held: the object that stands for it says so.
    pub(crate) fn deletions_held(&self, scope: &str) {
        self.run_all(Topic::StandsFor(scope));
    }

    /// Held deletions were released: what is being deleted runs.
    pub(crate) fn held_released(&self) {
        self.run_all(Topic::IsDeleting);
    }

    /// Objects of a kind whose addresses come from an object, or, by a Gateway, through a route that only itself names it.
    pub(crate) fn published_from(&self, kind: &str, source: &str, key: &ObjectKey) -> Vec<ObjectKey> {
        let named = projection::object(source, key.namespace.as_deref(), &key.name);
        let topics = [Some(Topic::DependsOn(digest(&named))), (source == "Gateway").then_some(Topic::ThroughRoute)];
        let found = |member: &Member| {
            topics.into_iter().flatten().flat_map(|topic| member.found_by.of(&topic.digest())).collect::<Vec<_>>()
        };
        self.of_kind(kind).iter().flat_map(found).collect()
    }

    fn run_all(&self, topic: Topic<'_>) {
        for member in &self.members() {
            member.run(topic);
        }
    }

    fn of_kind(&self, kind: &str) -> Vec<Member> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.iter().filter(|member| member.kind == kind).cloned().collect()
    }

    /// A copy, so that no lock is held while a controller is told.
    fn members(&self) -> Vec<Member> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Member {
    /// The objects run that a topic finds.
    fn run(&self, topic: Topic<'_>) {
        let found = self.found_by.of(&topic.digest());
        if !found.is_empty() {
            self.handle.enqueue_all(&found);
        }
    }
}
