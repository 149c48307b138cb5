//! The life of every kind of the job: gather, plan, apply and report, written once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_cloudflare_api::{
    ApiError, Client, Entry, ErrorClass, Expected, Freshness, Item, Lane, Op, Remote, Written,
};
use portolan_core::{Class, Mark, NewCondition, ObjectId, ObjectKey, Plan, Problem, reasons};
use portolan_engine::{Handle, Notice, Outcome, Projected, Reconcile, Report, annotations};
use serde_json::Value;

use crate::claims::Claims;
use crate::deletions::{Scope, Surroundings};
use crate::job::Shared;
use crate::kind::{Body, Kind, Life, Recorded, Resolved, View};
use crate::matching::{Matched, Matching, Step, match_bodies};
use crate::projection::{Projection, digest};
use crate::resolve::{Place, Subject};
use crate::settled::Settled;

/// How old a snapshot may be for a decision to create something.
const FRESH: Duration = Duration::from_secs(30);
/// How soon a decision is made again that rested on a snapshot that proved wrong.
const SOON: Duration = Duration::from_secs(1);

/// Reconciles one kind.
pub(crate) struct Living<K: Kind> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: std::sync::OnceLock<Handle<Projection>>,
    pub(crate) settled: Settled,
    pub(crate) claims: Claims,
    kind: std::marker::PhantomData<fn() -> K>,
}

/// One account or zone with what was found there for an object.
pub(crate) struct Found<B: Item> {
    place: Place,
    client: Client,
    remote: Arc<Remote<B>>,
    candidates: Vec<Entry<B>>,
    /// Tells the collection's writer that this object may be about to write.
    expected: Mutex<Option<Expected<B>>>,
}

impl<B: Item> Found<B> {
    /// The write begins now, or does not come.
    fn expect_no_longer(&self) {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// What was read for an object.
pub(crate) struct Inputs<B: Item> {
    resolved: Resolved,
    wanted: Vec<B>,
    /// Where the object's remote part belongs now.
    here: Option<Found<B>>,
    /// Where its status says it was before.
    former: Option<Found<B>>,
    /// The remote object of an observed kind.
    observed: Option<Entry<B>>,
    /// Ids that stay behind because the user said so.
    left_behind: Vec<String>,
    /// Digest of held deletions that the user released.
    released: bool,
    ends_itself: bool,
    checked_at: String,
}

/// What is to be done for an object.
pub(crate) struct Steps<B> {
    here: Matched<B>,
    former: Vec<Step<B>>,
    changes: Plan,
    ends_itself: bool,
}

/// What stands for the object after its plan was carried out.
pub(crate) struct Done<B> {
    present: Vec<Entry<B>>,
}

impl<K: Kind> Living<K> {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            handle: std::sync::OnceLock::new(),
            settled: Settled::default(),
            claims: Claims::default(),
            kind: std::marker::PhantomData,
        }
    }

    fn id_of(&self, key: &ObjectKey) -> ObjectId {
        ObjectId::new(K::KIND, key.clone())
    }

    fn mark(&self, object: &K) -> Mark {
        Mark { kind: K::KIND.to_owned(), key: key_of(object), owner: self.shared.owner.clone(), adopted: false }
    }

    /// Other objects that say that they are the default too, as a problem.
    fn other_defaults(&self, object: &K) -> Option<Problem> {
        let handle = self.handle.get().filter(|_| object.is_default())?;
        let own = key_of(object);
        let is_default = |one: &Projected<Projection>| {
            !one.deleting && one.projection.as_ref().is_some_and(|projection| projection.default)
        };
        let others: Vec<String> = handle.read(|store| {
            let defaults = store.iter().filter(|(key, one)| **key != own && is_default(one));
            defaults.map(|(key, _)| key.to_string()).collect()
        });
        if others.is_empty() {
            return None;
        }
        let names = portolan_core::text::join_and(&others);
        let message = format!("isDefault is also true in {} {names}; keep one of them the default", K::KIND);
        Some(Problem::waiting(reasons::DUPLICATE_DEFAULT, message))
    }

    /// An older object that wants the same, as a problem.
    fn rival(&self, object: &K) -> Option<Problem> {
        if let Some(problem) = self.other_defaults(object) {
            return Some(problem);
        }
        let claim = object.claim()?;
        let handle = self.handle.get()?;
        let older = self.claims.older_than(digest(&claim), object.meta(), handle)?;
        Some(Problem::waiting(
            reasons::CONFLICT_ERROR,
            format!(
                "{claim} is already wanted by {} {older}, which is older; nothing was changed. Delete one of the two",
                K::KIND
            ),
        ))
    }

    async fn gather_wanted(&self, object: &K) -> Result<Inputs<K::Body>, Problem> {
        let needs = object.needs()?;
        let recorded = object.recorded();
        // What is already there for this object is looked after, whoever wants the same later.
        if let Some(rival) = self.rival(object).filter(|_| K::LIFE == Life::Observed || recorded.ids.is_empty()) {
            return Err(rival);
        }
        let subject = Subject::of(object);
        let access = self.shared.access(&needs, &subject).await?;
        let resolved = self.shared.resolve(&needs, &subject, &access).await?;
        let wanted = object.desired(&resolved)?;
        let place = Place::of::<K>(&resolved)?;
        let mut inputs = self.inputs(resolved);
        inputs.ends_itself = object.ends_itself(&inputs.resolved);
        match K::LIFE {
            Life::Observed => {
                inputs.observed = Some(self.observe(object, &access.client, &place, &wanted, &inputs.resolved).await?);
            }
            Life::Owned | Life::Singleton => {
                let moved =
                    recorded.scope.as_deref().is_some_and(|scope| scope != place.id && !recorded.ids.is_empty());
                if moved {
                    let former = Place::former::<K>(&recorded);
                    inputs.former = Some(self.find(object, &access.client, former, &[], &recorded).await?);
                }
                let recorded = if moved { Recorded::default() } else { recorded };
                inputs.here = Some(self.find(object, &access.client, place, &wanted, &recorded).await?);
            }
        }
        inputs.wanted = wanted;
        self.release_held(object, &mut inputs).await?;
        Ok(inputs)
    }

    /// What an object that is being deleted leaves to remove. Only its credential can be in the way of that.
    async fn gather_removal(&self, object: &K) -> Result<Inputs<K::Body>, Problem> {
        let mut inputs = self.inputs(Resolved::default());
        if K::LIFE != Life::Owned || annotations::is_orphaning(object.meta()) {
            return Ok(inputs);
        }
        let recorded = object.recorded();
        match self.find_removal(object, &recorded).await {
            Ok(found) => inputs.here = found,
            // Whoever never recorded an id, and cannot reach Cloudflare now, has nothing there that is known.
            Err(problem) if recorded.ids.is_empty() && problem.class != Class::Transient => {}
            Err(problem) if annotations::is_forced(object.meta()) && problem.class != Class::Transient => {
                inputs.left_behind = recorded.ids;
            }
            Err(problem) => return Err(problem),
        }
        Ok(inputs)
    }

    async fn find_removal(&self, object: &K, recorded: &Recorded) -> Result<Option<Found<K::Body>>, Problem> {
        let needs = object.needs()?;
        let subject = Subject::of(object);
        let access = self.shared.access(&needs, &subject).await?;
        let place = match &recorded.scope {
            Some(scope) => Place::recorded::<K>(scope),
            None => self.shared.place_without_asking::<K>(&needs, &access)?,
        };
        if recorded.ids.is_empty() && self.shared.is_refused(&needs) {
            return Ok(None);
        }
        self.find(object, &access.client, place, &[], recorded).await.map(Some)
    }

    fn inputs(&self, resolved: Resolved) -> Inputs<K::Body> {
        Inputs {
            resolved,
            wanted: Vec::new(),
            here: None,
            former: None,
            observed: None,
            left_behind: Vec::new(),
            released: false,
            ends_itself: false,
            checked_at: portolan_core::rfc3339((self.shared.clock)()),
        }
    }

    /// Everything in one place that might be the object's.
    async fn find(
        &self,
        object: &K,
        client: &Client,
        place: Place,
        wanted: &[K::Body],
        recorded: &Recorded,
    ) -> Result<Found<K::Body>, Problem> {
        let remote = client.records::<K::Body>(K::REMOTE, &place.id);
        let expected = Mutex::new(Some(remote.expect()));
        let lane = self.lane(object);
        refresh(&remote, lane, Freshness::Any, &place).await?;
        let known = remote.with(|snapshot| {
            recorded.ids.len() == wanted.len().max(1) && recorded.ids.iter().all(|id| snapshot.get(id).is_some())
        });
        if !known {
            refresh(&remote, lane, Freshness::Within(FRESH), &place).await?;
        }
        let owners = self.mark(object).owner_keys();
        let candidates = remote.with(|snapshot| {
            let by_id = recorded.ids.iter().filter_map(|id| snapshot.get(id));
            let by_mark = owners.iter().flat_map(|owner| snapshot.by_owner(owner));
            let mut found: Vec<Entry<K::Body>> = by_id.chain(by_mark).cloned().collect();
            for body in wanted {
                found.extend(snapshot.by_key(&body.natural_key()).cloned());
            }
            found.sort_by(|a, b| a.id.cmp(&b.id));
            found.dedup_by(|a, b| a.id == b.id);
            found
        });
        Ok(Found { place, client: client.clone(), remote, candidates, expected })
    }

    /// The remote object of a kind that is only looked at.
    async fn observe(
        &self,
        object: &K,
        client: &Client,
        place: &Place,
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
    async fn listed(
        &self,
        client: &Client,
        place: &Place,
        wanted: &[K::Body],
        age: Duration,
    ) -> Result<Vec<Entry<K::Body>>, Problem> {
        let remote = client.records::<K::Body>(K::REMOTE, &place.id);
        refresh(&remote, Lane::Change, Freshness::Within(age), place).await?;
        let keys: Vec<String> = wanted.iter().map(Item::natural_key).collect();
        Ok(remote.with(|snapshot| keys.iter().flat_map(|key| snapshot.by_key(key)).cloned().collect()))
    }

    /// Lets held deletions go when the object that stands for their scope says so.
    async fn release_held(&self, object: &K, inputs: &mut Inputs<K::Body>) -> Result<(), Problem> {
        let Some(entry) = &inputs.observed else { return Ok(()) };
        self.shared.deletions.flush(&entry.id).await?;
        if let Some(digest) = annotations::released_deletions(object.meta()) {
            inputs.released = self.shared.deletions.approve(&entry.id, digest).await?;
        }
        if inputs.released {
            self.shared.triggers.held_released();
        }
        Ok(())
    }

    /// Deletions take names off the network: they go before other changes.
    fn lane(&self, object: &K) -> Lane {
        if object.meta().deletion_timestamp.is_some() { Lane::Protect } else { Lane::Change }
    }

    async fn carry_out(
        &self,
        object: &K,
        found: &Found<K::Body>,
        steps: &[Step<K::Body>],
    ) -> Result<Vec<Entry<K::Body>>, Problem> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        self.ask_for_deletions(object, found, steps).await?;
        let ops = steps.iter().map(op).collect();
        found.expect_no_longer();
        match found.remote.write(self.lane(object), ops).await {
            Ok(written) => Ok(written.iter().filter_map(Written::entry).cloned().collect()),
            Err(error) => Err(explain(object, &error, steps, &found.place)),
        }
    }

    async fn ask_for_deletions(
        &self,
        object: &K,
        found: &Found<K::Body>,
        steps: &[Step<K::Body>],
    ) -> Result<(), Problem> {
        let names: Vec<String> = steps.iter().filter(|step| step.deletes()).map(Step::label).collect();
        if names.is_empty() {
            return Ok(());
        }
        let ending = self.shared.is_ending(object.meta().namespace.as_deref()).await;
        let surroundings = || self.surroundings(found, ending.then_some(object.meta().namespace.as_deref()).flatten());
        let scope = Scope {
            id: found.place.id.clone(),
            collection: K::REMOTE.name.to_owned(),
            label: found.place.label.clone(),
        };
        let news = || self.shared.triggers.deletions_held(&scope.id);
        self.shared.deletions.ask(self.id_of(&key_of(object)), &scope, &names, surroundings, news).await
    }

    /// What else in a place is about to be deleted: of objects that are going, or whose namespace is.
    fn surroundings(&self, found: &Found<K::Body>, ending: Option<&str>) -> Surroundings {
        let going =
            |key: &ObjectKey, deleting: bool| deleting || (ending.is_some() && key.namespace.as_deref() == ending);
        let ids: Vec<Box<str>> = self.handle.get().map_or_else(Vec::new, |handle| {
            handle.read(|store| {
                let going = store.iter().filter(|(key, one)| going(key, one.deleting));
                going.filter_map(|(_, one)| one.projection.as_ref()).flat_map(|one| one.ids.iter().cloned()).collect()
            })
        });
        found.remote.with(|snapshot| Surroundings {
            following: ids.iter().filter_map(|id| snapshot.get(id)).map(|entry| entry.item.label()).collect(),
            total: snapshot.iter().filter(|entry| entry.item.owner_key().is_some()).count(),
        })
    }

    /// Objects that stood back for this one may go on.
    fn promote_rivals(&self, object: &K) {
        if let (Some(claim), Some(handle)) = (object.claim(), self.handle.get()) {
            let (own, claim) = (key_of(object), digest(&claim));
            handle.enqueue_where(|key, projection| *key != own && projection.claim == Some(claim));
        }
    }

    fn well(&self, object: &K, inputs: &Inputs<K::Body>, present: &[Entry<K::Body>], events: Vec<Notice>) -> Report {
        self.remember(object, inputs, present);
        let view =
            View { resolved: Some(&inputs.resolved), present, problem: None, checked_at: Some(&inputs.checked_at) };
        let (reason, message) = object.well(&inputs.resolved);
        let mut conditions = vec![NewCondition::ready(reason, message)];
        conditions.push(self.stalled(present));
        Report { status: object.status(&view), conditions, events, again: K::RESYNC, problem: None }
    }

    /// `Stalled` while deletions in the scope that this object stands for are held.
    fn stalled(&self, present: &[Entry<K::Body>]) -> NewCondition {
        let held: Vec<String> = match K::LIFE {
            Life::Observed => present.iter().flat_map(|entry| self.shared.deletions.held(&entry.id)).collect(),
            Life::Owned | Life::Singleton => Vec::new(),
        };
        if held.is_empty() {
            return NewCondition::not_stalled();
        }
        NewCondition::stalled(reasons::DELETION_BUDGET_EXCEEDED, held.join(" "))
    }

    fn remember(&self, object: &K, inputs: &Inputs<K::Body>, present: &[Entry<K::Body>]) {
        match &inputs.here {
            Some(found) if object.meta().deletion_timestamp.is_none() => {
                self.settled.set(&key_of(object), &found.place.id, &found.client, present);
            }
            _ => self.settled.remove(&key_of(object)),
        }
    }

    fn failed(&self, object: &K, problem: &Problem) -> Report {
        let view = View { resolved: None, present: &[], problem: Some(problem), checked_at: None };
        let reason = if problem.reason == reasons::API_ERROR { K::ERROR_REASON } else { problem.reason };
        let mut report = Report::failed(problem);
        let mut conditions = vec![NewCondition::not_ready(reason, &problem.message)];
        conditions.push(match problem.class {
            Class::Invalid => NewCondition::stalled(reason, &problem.message),
            Class::Waiting | Class::Transient | Class::Denied => NewCondition::not_stalled(),
        });
        if problem.reason == reasons::CONFLICT_ERROR {
            self.settled.conflicted(key_of(object));
            report.events = vec![Notice::warning(reasons::ADOPTION_CONFLICT, &problem.message)];
        }
        report.conditions = conditions;
        report.status = object.status(&view);
        report
    }
}

impl<K: Kind> Reconcile for Living<K> {
    type Object = K;
    type Inputs = Inputs<K::Body>;
    type Plan = Steps<K::Body>;
    type Applied = Done<K::Body>;
    type Projection = Projection;

    fn kind(&self) -> &'static str {
        K::KIND
    }

    fn finalizer(&self) -> Option<&'static str> {
        Some(K::FINALIZER)
    }

    fn older_finalizers(&self) -> &'static [&'static str] {
        K::OLDER_FINALIZERS
    }

    fn heeds(&self, annotation: &str) -> bool {
        annotation.starts_with("portolan.dev/") || annotation.starts_with("cloudflare-operator.io/")
    }

    fn project(&self, object: &K) -> Projection {
        let projection = Projection::of(object);
        let before = self.handle.get().and_then(|handle| {
            handle.read(|store| store.get(&key_of(object)).and_then(|one| one.projection.as_ref()?.claim))
        });
        self.claims.note(before, projection.claim);
        projection
    }

    async fn gather(&self, object: &K) -> Result<Self::Inputs, Problem> {
        if object.meta().deletion_timestamp.is_some() {
            self.gather_removal(object).await
        } else {
            self.gather_wanted(object).await
        }
    }

    fn plan(&self, object: &K, inputs: &Self::Inputs) -> Result<Self::Plan, Problem> {
        let recorded = object.recorded();
        let here = match &inputs.here {
            Some(found) => self.matched(object, found, inputs.wanted.clone(), &inputs.resolved, &recorded)?,
            None => Matched { steps: Vec::new(), kept: inputs.observed.iter().cloned().collect() },
        };
        let former = match &inputs.former {
            Some(found) => self.matched(object, found, Vec::new(), &inputs.resolved, &recorded)?.steps,
            None => Vec::new(),
        };
        if let Some(found) = inputs.here.as_ref().filter(|_| here.steps.is_empty()) {
            found.expect_no_longer();
        }
        let changes = changes::<K>(object, inputs, &here.steps, &former);
        Ok(Steps { here, former, changes, ends_itself: inputs.ends_itself })
    }

    fn changes(&self, plan: &Self::Plan) -> Plan {
        plan.changes.clone()
    }

    /// What is given back must not be known by its id any more: once its mark is gone too, a second try would take it for
    /// an object that was made before there were marks, and delete it.
    fn intent(&self, object: &K, _inputs: &Self::Inputs, plan: &Self::Plan) -> Option<Value> {
        let releases = plan.here.steps.iter().chain(&plan.former).any(Step::releases);
        releases.then(|| object.without_ids())
    }

    async fn apply(&self, object: &K, inputs: &Self::Inputs, plan: &Self::Plan) -> Result<Self::Applied, Problem> {
        if plan.ends_itself {
            self.shared.delete(object).await?;
        }
        let mut present = plan.here.kept.clone();
        if let Some(found) = &inputs.here {
            present.extend(self.carry_out(object, found, &plan.here.steps).await?);
        }
        if let Some(found) = &inputs.former {
            self.carry_out(object, found, &plan.former).await?;
        }
        if object.meta().deletion_timestamp.is_some() {
            self.promote_rivals(object);
        }
        Ok(Done { present })
    }

    fn report(&self, object: &K, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Applied { inputs, plan, applied } => {
                self.well(object, inputs, &applied.present, notices::<K>(plan, inputs))
            }
            Outcome::Unchanged { inputs, plan } => self.well(object, inputs, &plan.here.kept, left_behind(inputs)),
            Outcome::Failed(problem) => self.failed(object, problem),
        }
    }

    fn forgotten(&self, key: &ObjectKey) {
        self.settled.remove(key);
        if let Some(scope) = self.shared.deletions.withdraw(&self.id_of(key)) {
            self.shared.triggers.deletions_held(&scope);
        }
    }
}

impl<K: Kind> Living<K> {
    fn matched(
        &self,
        object: &K,
        found: &Found<K::Body>,
        wanted: Vec<K::Body>,
        resolved: &Resolved,
        recorded: &Recorded,
    ) -> Result<Matched<K::Body>, Problem> {
        match_bodies(Matching {
            noun: K::NOUN,
            wanted,
            candidates: found.candidates.clone(),
            recorded: &recorded.ids,
            mark: &self.mark(object),
            mark_limit: K::Body::mark_limit(resolved),
            adopt: annotations::is_adopting(object.meta()),
        })
    }
}

/// The steps as users read them.
fn changes<K: Kind>(object: &K, inputs: &Inputs<K::Body>, here: &[Step<K::Body>], former: &[Step<K::Body>]) -> Plan {
    let deleting = object.meta().deletion_timestamp.is_some();
    let why = format!("{} {} {}", K::KIND, key_of(object), if deleting { "is being deleted" } else { "asks for it" });
    let moved = format!("{} {} moved elsewhere", K::KIND, key_of(object));
    let in_place = |steps: &[Step<K::Body>], found: &Option<Found<K::Body>>, why: &str| {
        let label = found.as_ref().map_or("", |found| found.place.label.as_str()).to_owned();
        steps.iter().map(|step| step.change(K::NOUN, &label, why)).collect::<Vec<_>>()
    };
    let mut changes = in_place(here, &inputs.here, &why);
    changes.extend(in_place(former, &inputs.former, &moved));
    if inputs.ends_itself {
        changes.push(own_end::<K>(object));
    }
    Plan { changes }
}

fn own_end<K: Kind>(object: &K) -> portolan_core::Change {
    portolan_core::Change {
        target: portolan_core::Target {
            kind: K::KIND.to_owned(),
            scope: "Kubernetes".to_owned(),
            name: key_of(object).to_string(),
            id: None,
        },
        action: portolan_core::Action::Delete,
        before: None,
        after: None,
        why: "what it was made from is gone".to_owned(),
    }
}

fn notices<K: Kind>(plan: &Steps<K::Body>, inputs: &Inputs<K::Body>) -> Vec<Notice> {
    let steps = plan.here.steps.iter().chain(&plan.former);
    let mut notices: Vec<Notice> = steps.map(|step| step.notice(K::NOUN)).collect();
    notices.extend(left_behind(inputs));
    notices
}

fn left_behind<B: Item>(inputs: &Inputs<B>) -> Vec<Notice> {
    if inputs.left_behind.is_empty() {
        return Vec::new();
    }
    let ids = portolan_core::text::join_and(&inputs.left_behind);
    let message = format!("finalizer removed by force; left behind at Cloudflare: {ids}");
    vec![Notice::warning(reasons::FORCED_CLEANUP, message)]
}

fn op<B: Body>(step: &Step<B>) -> Op {
    match step {
        Step::Create { body } => Op::Create(body.create_body()),
        Step::Update { id, before, after }
        | Step::Adopt { id, before, after }
        | Step::Release { id, before, after } => Op::Update { id: id.clone(), body: after.update_body(before) },
        Step::Delete { id, .. } => Op::Delete { id: id.clone(), query: Vec::new() },
    }
}

async fn refresh<B: Item>(remote: &Remote<B>, lane: Lane, freshness: Freshness, place: &Place) -> Result<(), Problem> {
    let listed = remote.refresh(lane, freshness).await;
    listed.map_err(|error| error.problem(&format!("listing what is in {}", place.label)))
}

async fn read_one<K: Kind>(client: &Client, place: &Place, id: &str) -> Result<Entry<K::Body>, Problem> {
    let doing = format!("reading the {} {id}", K::NOUN);
    let answer =
        client.send(Lane::Change, &K::REMOTE.get(&place.id, id)).await.map_err(|error| error.problem(&doing))?;
    Entry::read(answer)
        .ok_or_else(|| Problem::transient(reasons::API_ERROR, format!("{doing}: the answer is not understood")))
}

/// What a refused write means for the object.
fn explain<K: Kind>(object: &K, error: &ApiError, steps: &[Step<K::Body>], place: &Place) -> Problem {
    let names = portolan_core::text::join_some(steps.iter().map(Step::label), 3);
    let problem = error.problem(&format!("writing the {} {names} in {}", K::NOUN, place.label));
    let deleting = object.meta().deletion_timestamp.is_some();
    match error.class {
        // What a deletion waits for may go without the object changing.
        ErrorClass::Validation | ErrorClass::Conflict if deleting => {
            Problem::waiting(reasons::DEPENDENCY_ERROR, problem.message)
        }
        // The snapshot was wrong, and has been corrected: decide again soon.
        ErrorClass::NotFound => Problem::transient(problem.reason, problem.message).with_retry_after(SOON),
        // Something else is in the way: a drift pass looks again when what stands there has changed.
        ErrorClass::Conflict => Problem::invalid(reasons::CONFLICT_ERROR, problem.message),
        ErrorClass::Auth
        | ErrorClass::Validation
        | ErrorClass::Quota
        | ErrorClass::RateLimit
        | ErrorClass::Transient
        | ErrorClass::Unknown => problem,
    }
}

pub(crate) fn key_of<K: kube::Resource<DynamicType = ()>>(object: &K) -> ObjectKey {
    let meta = object.meta();
    ObjectKey { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() }
}
