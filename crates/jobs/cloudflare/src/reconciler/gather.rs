//! Reads what an object's plan rests on: what it refers to, and what stands at Cloudflare for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use portolan_cloudflare_api::{ApiError, Client, Entry, Freshness, Item, Lane, Snapshot};
use portolan_core::ownership::Ownership;
use portolan_core::{Claim, Class, Problem, reasons};
use portolan_engine::{LedgerWork, Projected};

use super::{FoundThere, Inputs, KindReconciler, SOON, key_of};
use crate::definition::STEERING;
use crate::gone::{self, ScopePresence};
use crate::kind::{Kind, Management, Needs, Recorded, Resolved};
use crate::kinds::CloudflareCredentials;
use crate::projection::{self, Projection};
use crate::resolve::{AskingObject, RemovalAccess, Right, ScopeRef};
use crate::sheet::IntentStatus;

/// How old a snapshot may be for a decision to create something.
const FRESH: Duration = Duration::from_secs(10);

impl<K: Kind> KindReconciler<K> {
    /// An older object that has the only one of a place, whatever it calls the place, as a problem.
    fn senior(&self, object: &K, place: &ScopeRef) -> Option<Problem> {
        let meta = object.meta();
        let own = (meta.creation_timestamp.as_ref().map(|time| time.0), key_of(object));
        let has_it = |one: &Projected<Projection>| {
            !one.deleting && one.projection.as_ref().is_some_and(|projection| projection.stands_for(&place.id))
        };
        let older = self.handle.get()?.read(|store| {
            let mut others = store.iter().filter(|(key, one)| **key != own.1 && has_it(one));
            others.find(|(key, one)| (one.created, *key) < (own.0, &own.1)).map(|(key, _)| key.clone())
        })?;
        let message = format!(
            "the {} of {} is already wanted by {} {older}, which is older; nothing was changed. Delete one of the two",
            K::NOUN,
            place.label,
            K::KIND
        );
        Some(Problem::waiting(reasons::CONFLICT_ERROR, message))
    }

    /// The only one of a place.
    async fn find_document(
        &self,
        object: &K,
        client: &Client,
        place: ScopeRef,
        wanted: &[K::Body],
    ) -> Result<FoundThere<K::Body>, Problem> {
        let known = Recorded { ids: vec![place.id.clone()], ..Recorded::default() };
        let found = self.find(object, client, place, wanted, &known).await?;
        if found.candidates.is_empty() {
            let message = format!("the {} of {} is not understood; nothing was changed", K::NOUN, found.place.label);
            return Err(Problem::transient(reasons::API_ERROR, message));
        }
        Ok(found)
    }

    pub(super) async fn gather_wanted(&self, object: &K) -> Result<Inputs<K::Body>, Problem> {
        portolan_core::waypoint!();
        let (needs, recorded) = (object.needs(), object.recorded());
        let subject = AskingObject::of(object);
        let access = self.shared.access(&needs, &subject).await?;
        let resolved = self.shared.resolve(&needs, &subject, &access).await?;
        let wanted = object.desired(&resolved)?;
        self.shared.allows(&access.used, &subject, &resolved, object.published(&resolved).as_ref())?;
        let place = ScopeRef::of::<K>(&resolved)?;
        let mut inputs = self.inputs(resolved);
        inputs.secret = Some(access.secret.clone());
        inputs.ends_itself = object.ends_itself(&inputs.resolved);
        match K::MANAGEMENT {
            Management::Observed => {
                inputs.observed = Some(self.observe(object, &access.client, &place, &wanted, &inputs.resolved).await?);
            }
            Management::Singleton => {
                if let Some(senior) = self.senior(object, &place) {
                    return Err(senior);
                }
                inputs.here = Some(self.find_document(object, &access.client, place, &wanted).await?);
            }
            Management::Owned => {
                let moved =
                    recorded.scope.as_deref().is_some_and(|scope| scope != place.id && !recorded.ids.is_empty());
                if moved {
                    inputs.former = self.find_removal(object, &needs, &recorded, &mut inputs.gone).await?;
                }
                // What was about to be made was to be made here.
                let IntentStatus { creating, .. } = recorded.intent.clone();
                let noted = IntentStatus { creating, ..IntentStatus::default() };
                let recorded = if moved { Recorded { intent: noted, ..Recorded::default() } } else { recorded };
                inputs.here = Some(self.find(object, &access.client, place, &wanted, &recorded).await?);
            }
        }
        inputs.wanted = wanted;
        if let Some(entry) = &inputs.observed {
            inputs.ledgers = self.shared.deletions.due(&entry.id, object.meta());
        }
        Ok(inputs)
    }

    /// What an object that is being deleted leaves to remove. Only its credential can be in the way of that.
    pub(super) async fn gather_removal(&self, object: &K) -> Result<Inputs<K::Body>, Problem> {
        let mut inputs = self.inputs(Resolved::default());
        self.check_users(object)?;
        inputs.still_used = self.still_used(object);
        if K::MANAGEMENT != Management::Owned || STEERING.is_orphaning(object.meta()) {
            return Ok(inputs);
        }
        let recorded = object.recorded();
        let needs = object.needs();
        match self.find_removal(object, &needs, &recorded, &mut inputs.gone).await {
            Ok(found) => inputs.here = found,
            // Whoever never recorded an id, and cannot reach Cloudflare now, has nothing there that is known.
            Err(problem) if recorded.is_nothing() && problem.class != Class::Transient => {}
            Err(problem) if STEERING.is_forced(object.meta()) && problem.class != Class::Transient => {
                inputs.left_behind = recorded.ids;
            }
            Err(problem) => return Err(problem),
        }
        Ok(inputs)
    }

    /// How many objects still refer to one that goes.
    fn still_used(&self, object: &K) -> usize {
        let key = key_of(object);
        let mut names = vec![projection::object(K::KIND, key.namespace.as_deref(), &key.name)];
        if K::KIND == CloudflareCredentials::KIND && object.is_default() {
            names.push(projection::credentials(""));
        }
        self.shared.triggers.dependents(&names)
    }

    /// Credentials stay while something stands at Cloudflare that can only be removed with them.
    fn check_users(&self, object: &K) -> Result<(), Problem> {
        if K::KIND != CloudflareCredentials::KIND || STEERING.is_forced(object.meta()) {
            return Ok(());
        }
        let users = self.shared.triggers.users(&projection::credentials(&key_of(object).name));
        if users == 0 {
            return Ok(());
        }
        let message = format!(
            "what {} made at Cloudflare can only be removed with these credentials, so they stay until then; delete it \
             or give it other credentials, or let these go by the annotation cloudflare-operator.io/force-delete: \"true\"",
            portolan_core::text::count(users, "object")
        );
        Err(Problem::waiting(reasons::DEPENDENCY_ERROR, message))
    }

    /// What an object recorded, as it stands at Cloudflare: by its recorded place, ids and credential, whatever its spec
    /// has become. Where the place is gone, nothing is left, and `gone` says so.
    pub(super) async fn find_removal(
        &self,
        object: &K,
        needs: &Needs,
        recorded: &Recorded,
        gone: &mut Option<ScopeRef>,
    ) -> Result<Option<FoundThere<K::Body>>, Problem> {
        let RemovalAccess { access, right } =
            self.shared.removal_access(needs, &AskingObject::of(object), recorded).await?;
        let place = match &recorded.scope {
            Some(scope) => ScopeRef::recorded::<K>(scope),
            None => self.shared.place_without_asking::<K>(needs, &access)?,
        };
        if recorded.is_nothing() && self.shared.is_refused(needs) {
            return Ok(None);
        }
        let found = match self.look(object, &access.client, place.clone(), &[], recorded).await {
            Ok(found) => FoundThere { right, ..found },
            Err(error) => {
                let doing = listing(&place);
                self.place_gone(&access.client, right, &place, recorded, &error, &doing).await?;
                *gone = Some(place);
                return Ok(None);
            }
        };
        self.check_substitute(object, &found, recorded)?;
        Ok(Some(found))
    }

    /// Whether a refusal comes from the place itself being gone. Anything else is the problem that it is.
    pub(super) async fn place_gone(
        &self,
        client: &Client,
        right: Right,
        place: &ScopeRef,
        recorded: &Recorded,
        error: &ApiError,
        doing: &str,
    ) -> Result<(), Problem> {
        let problem = error.problem(doing);
        // Another credential than the one that made it may never have seen the place.
        if !gone::is_suspicious(error) || right != Right::Recorded {
            return Err(problem);
        }
        let account = recorded.credentials.as_ref().and_then(|used| used.account_id.as_deref());
        match self.shared.standing(client, K::REMOTE.scope, &place.id, account).await? {
            ScopePresence::Gone => Ok(()),
            ScopePresence::There => Err(problem),
            ScopePresence::Unclear(why) => Err(gone::unproven(problem, why)),
        }
    }

    /// A credential that takes another's place removes only what says that it is the object's.
    fn check_substitute(&self, object: &K, found: &FoundThere<K::Body>, recorded: &Recorded) -> Result<(), Problem> {
        if found.right != Right::Substitute {
            return Ok(());
        }
        let mark = self.mark(object);
        let unmarked = found
            .candidates
            .iter()
            .find(|entry| recorded.ids.contains(&entry.id) && mark.claim(entry.item.mark_text()) == Claim::Unmarked);
        let Some(entry) = unmarked else { return Ok(()) };
        let message = format!(
            "the {} {} (id {}) carries no mark, and the credentials that made it are gone; it was left untouched. \
             Bring those credentials back, or delete it by hand and set the annotation \
             cloudflare-operator.io/force-delete: \"true\"",
            K::NOUN,
            entry.item.label(),
            entry.id
        );
        Err(Problem::waiting(reasons::DEPENDENCY_ERROR, message))
    }

    pub(super) fn inputs(&self, resolved: Resolved) -> Inputs<K::Body> {
        Inputs {
            resolved,
            wanted: Vec::new(),
            here: None,
            former: None,
            observed: None,
            secret: None,
            gone: None,
            left_behind: Vec::new(),
            still_used: 0,
            ends_itself: false,
            ledgers: LedgerWork::default(),
            checked_at: portolan_core::rfc3339((self.shared.clock)()),
        }
    }

    /// Everything in one place that might be the object's.
    pub(super) async fn find(
        &self,
        object: &K,
        client: &Client,
        place: ScopeRef,
        wanted: &[K::Body],
        recorded: &Recorded,
    ) -> Result<FoundThere<K::Body>, Problem> {
        let doing = listing(&place);
        self.look(object, client, place, wanted, recorded).await.map_err(|error| error.problem(&doing))
    }

    async fn look(
        &self,
        object: &K,
        client: &Client,
        place: ScopeRef,
        wanted: &[K::Body],
        recorded: &Recorded,
    ) -> Result<FoundThere<K::Body>, ApiError> {
        let remote = client.records(K::REMOTE, &place.id);
        let expected = Mutex::new(Some(remote.expect()));
        self.drift_memory.asked(&place.id, client);
        let lane = self.lane(object);
        remote.refresh(lane, Freshness::Any).await?;
        let known = remote.with(|snapshot| {
            recorded.ids.len() == wanted.len().max(1) && recorded.ids.iter().all(|id| snapshot.get(id).is_some())
        });
        if !known {
            remote.refresh(lane, Freshness::Within(FRESH)).await?;
            client.learn_limit(lane, &remote).await;
        }
        // What could not go may be free to go by now.
        let stuck = |id: &String| {
            remote.with(|snapshot| snapshot.get(id).is_some_and(|one| K::undeletable(&one.item).is_some()))
        };
        if wanted.is_empty() && recorded.ids.iter().any(stuck) {
            remote.refresh(lane, Freshness::Within(SOON)).await?;
        }
        let owners = self.mark(object).owner_keys();
        let candidates = remote.with(|snapshot| {
            let by_id = recorded.ids.iter().filter_map(|id| snapshot.get(id));
            let by_mark = owners.iter().flat_map(|owner| snapshot.by_owner(owner));
            let noted = recorded.intent.creating.iter().flat_map(|note| {
                // Whatever it is called by now: what was made for an object that was renamed since must not stay behind.
                snapshot.iter().filter(move |entry| note.describes(&entry.item))
            });
            let mut found: Vec<Entry<K::Body>> = by_id.chain(by_mark).chain(noted).cloned().collect();
            found.extend(wanted.iter().flat_map(|body| around(snapshot, body)));
            found.sort_by(|a, b| a.id.cmp(&b.id));
            found.dedup_by(|a, b| a.id == b.id);
            found
        });
        let elsewhere = self.elsewhere(object, &candidates, recorded);
        Ok(FoundThere {
            place,
            client: client.clone(),
            right: Right::Recorded,
            remote,
            candidates,
            elsewhere,
            expected,
        })
    }

    /// Candidates without a mark that other objects of the kind have recorded as theirs.
    fn elsewhere(&self, object: &K, candidates: &[Entry<K::Body>], recorded: &Recorded) -> BTreeMap<String, String> {
        let unknown: BTreeSet<&str> = candidates
            .iter()
            .map(|entry| entry.id.as_str())
            .filter(|id| !recorded.ids.iter().any(|own| own == id))
            .collect();
        let (Ownership::Intent, Some(handle), false) = (K::SHEET.ownership, self.handle.get(), unknown.is_empty())
        else {
            return BTreeMap::new();
        };
        let own = key_of(object);
        handle.read(|store| {
            let others = store.projections().filter(|(key, _)| **key != own);
            let ids = others.flat_map(|(key, one)| one.ids.iter().map(move |id| (key, id)));
            let theirs = ids.filter(|(_, id)| unknown.contains(&***id));
            theirs.map(|(key, id)| (id.to_string(), self.id_of(key).to_string())).collect()
        })
    }

    /// The remote object of a kind that is only looked at.
    pub(super) async fn observe(
        &self,
        object: &K,
        client: &Client,
        place: &ScopeRef,
        wanted: &[K::Body],
        resolved: &Resolved,
    ) -> Result<Entry<K::Body>, Problem> {
        let mut candidates = match object.lookup_id() {
            Some(id) => vec![read_one::<K>(client, place, &id).await?],
            None => self.listed(client, place, wanted, FRESH).await?,
        };
        if candidates.is_empty() {
            candidates = self.listed(client, place, wanted, SOON).await?;
        }
        let mut refused = object.missing();
        for entry in candidates {
            match object.observed(&entry, resolved) {
                Ok(()) => return Ok(entry),
                Err(problem) => refused = problem,
            }
        }
        Err(refused)
    }

    /// What a listing that is not older than `age` has under the wanted natural keys.
    pub(super) async fn listed(
        &self,
        client: &Client,
        place: &ScopeRef,
        wanted: &[K::Body],
        age: Duration,
    ) -> Result<Vec<Entry<K::Body>>, Problem> {
        let remote = client.records(K::REMOTE, &place.id);
        let listed = remote.refresh(Lane::Change, Freshness::Within(age)).await;
        listed.map_err(|error| error.problem(&listing(place)))?;
        Ok(remote.with(|snapshot| wanted.iter().flat_map(|body| around(snapshot, body)).collect()))
    }
}

/// What stands under the natural key of what is wanted, or in its way.
fn around<B: Item>(snapshot: &Snapshot<B>, body: &B) -> Vec<Entry<B>> {
    let (place, keys) = (body.place_key(), [vec![body.natural_key()], body.rival_keys()].concat());
    let there = snapshot.by_key(&place);
    there.filter(|entry| keys.contains(&entry.item.natural_key())).cloned().collect()
}

fn listing(place: &ScopeRef) -> String {
    format!("listing what is in {}", place.label)
}

async fn read_one<K: Kind>(client: &Client, place: &ScopeRef, id: &str) -> Result<Entry<K::Body>, Problem> {
    let doing = format!("reading the {} {id}", K::NOUN);
    let answer =
        client.send(Lane::Change, &K::REMOTE.get(&place.id, id)).await.map_err(|error| error.problem(&doing))?;
    Entry::read(answer)
        .ok_or_else(|| Problem::transient(reasons::API_ERROR, format!("{doing}: the answer is not understood")))
}
