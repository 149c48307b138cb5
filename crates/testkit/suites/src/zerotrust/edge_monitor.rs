//! Looks on at everything that happens to names: asks the edge after every request, and keeps the story for the fold.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_cloudflare_sim::{EdgeRequest, RecordedRequest, Simulator};
use serde_json::Value;

use super::fail_closed::{self, Moment};
use super::late;
use super::wishes::{Duties, Exposed, KnownObject, NameWish, Sight};
use crate::failpoints::StopSide;
use crate::hooks::HookedCall;
use crate::world::World;

/// Watches that no name stands open. Clones share what they saw.
#[derive(Clone, Default)]
pub struct EdgeMonitor {
    seen: Arc<Mutex<EdgeView>>,
}

#[derive(Default)]
struct EdgeView {
    duties: Duties,
    /// What happened beside requests, each with how many requests there were before.
    beside: Vec<(usize, Moment)>,
    exposed: Vec<Exposed>,
    questions: usize,
    /// Names whose application or rule others took away.
    taken: BTreeSet<String>,
    /// Everything that an edge that hears of changes late is told from, where somebody will ask for it.
    story: Vec<(i64, late::Moment)>,
    keeps_story: bool,
}

impl EdgeMonitor {
    /// Begins to look on, also for an edge that hears of everything late.
    pub fn post_late(world: &World) -> Self {
        let monitor = Self::default();
        monitor.seen().keeps_story = true;
        monitor.look_on(world);
        monitor
    }

    /// Begins to look on. Nobody may take the simulator's requests from now on. What a sound world is includes what the
    /// first monitor sees.
    pub fn post(world: &World) -> Self {
        let monitor = Self::default();
        monitor.look_on(world);
        monitor
    }

    fn look_on(&self, world: &World) {
        let monitor = self;
        // Later guards look on for their tests alone.
        world.keep(monitor.clone());
        world.forget();
        monitor.changed(world);
        let (watching, clock) = (monitor.clone(), world.clock().clone());
        world.cloudflare.hooks.add(StopSide::After, move |call, simulator| {
            if call.is_write() {
                watching.ask_edge(call, simulator);
                watching.stands(clock().as_millisecond(), simulator);
            }
        });
    }

    /// Users wish something for a name from now on; to be said before they say it to the cluster.
    pub fn wish(&self, world: &World, hostname: &str, wish: NameWish) {
        {
            let mut seen = self.seen();
            seen.duties.wish(hostname, wish);
            seen.story.push((world.now(), late::Moment::Wished(hostname.to_owned(), wish)));
        }
        self.note(world, Moment::Wished(hostname.to_owned(), wish));
    }

    /// Somebody else changed something at Cloudflare.
    pub fn changed(&self, world: &World) {
        self.note(world, Moment::Changed(world.cloudflare.simulator.state()));
        self.stands(world.now(), &world.cloudflare.simulator);
    }

    /// Somebody else took a name's protection away, which the operator cannot know at once.
    pub fn forgive(&self, world: &World, hostname: &str) {
        self.seen().duties.forgive(hostname);
        self.lost(world, hostname);
    }

    /// Several clusters publish a name, each by its own wishes: what one of them takes away was somebody else's deed for the
    /// others. None of them may publish it anew without an application.
    pub fn contested(&self, world: &World, hostname: &str) {
        let (watching, clock, name) = (self.clone(), world.clock().clone(), hostname.to_owned());
        world.cloudflare.hooks.add(StopSide::Before, move |call, simulator| {
            let app = (call.method == http::Method::DELETE).then(|| call.path.rsplit_once("/access/apps/")).flatten();
            let app = app.and_then(|(_, id)| simulator.object("access_apps", id)).unwrap_or_default();
            if app["domain"] == name.as_str() {
                watching.seen().taken.insert(name.clone());
                let moment = Moment::Forgiven(name.clone(), clock().as_millisecond());
                watching.seen().beside.push((simulator.request_count(), moment));
            }
        });
    }

    /// Another cluster writes with this credential. What a write of it takes out of a document that changed since it was
    /// read was somebody else's deed, and so was what it brings back.
    pub fn neighbour(&self, world: &World, credential: &str) {
        self.note(world, Moment::Neighbour(credential.to_owned()));
        let (watching, theirs) = (self.clone(), credential.to_owned());
        world.cloudflare.hooks.add(StopSide::Before, move |call, simulator| {
            if call.credential == theirs && call.method == http::Method::PUT {
                let gone = dropped(call, &simulator.state());
                watching.seen().taken.extend(gone);
            }
        });
    }

    /// Somebody else took a name's rule out: its record leads to nothing of the name's own until it is back.
    pub fn rule_taken(&self, world: &World, hostname: &str) {
        self.seen().taken.insert(hostname.to_owned());
        self.changed(world);
    }

    /// Somebody else took a name's application away: what our own requests did is judged by that, but the name must stay
    /// closed at the edge, unless it was public and its protection is on the way.
    pub fn lost(&self, world: &World, hostname: &str) {
        self.changed(world);
        let at = world.now();
        {
            let mut seen = self.seen();
            seen.taken.insert(hostname.to_owned());
            if !seen.duties.is_walled(hostname) {
                seen.duties.forgive(hostname);
                seen.story.push((at, late::Moment::Forgiven(hostname.to_owned())));
            }
        }
        self.note(world, Moment::Forgiven(hostname.to_owned(), at));
    }

    /// The operator has nothing left to do.
    pub fn rested(&self, world: &World) {
        {
            let mut seen = self.seen();
            seen.duties.rest(|name| at_edge(&world.cloudflare.simulator, name, None, CatchAll::Counts));
            seen.story.push((world.now(), late::Moment::Rested));
        }
        self.note(world, Moment::Rested);
    }

    fn note(&self, world: &World, moment: Moment) {
        let before = world.cloudflare.simulator.request_count();
        self.seen().beside.push((before, moment));
    }

    /// What strangers saw at an edge that every change reaches late, by up to ten seconds of its own.
    pub fn seen_late(&self, world: &World, seed: u64) -> Vec<Exposed> {
        late::check(&self.seen().story, seed, world.clock())
    }

    fn stands(&self, at: i64, simulator: &Simulator) {
        let mut seen = self.seen();
        if seen.keeps_story {
            seen.story.push((at, late::Moment::Stands(simulator.snapshot())));
        }
    }

    fn ask_edge(&self, call: &HookedCall, simulator: &Simulator) {
        let mut seen = self.seen();
        for hostname in seen.duties.names() {
            seen.questions += 1;
            let catch_all = if seen.taken.contains(&hostname) { CatchAll::IsNothing } else { CatchAll::Counts };
            if seen.duties.see(&hostname, at_edge(simulator, &hostname, Some(call), catch_all)).is_some() {
                let after = format!("{} {}", call.method, call.path);
                seen.exposed.push(Exposed { hostname, missing: "protection at the edge", after });
            }
        }
    }

    /// Every instant at which a visitor nobody knows got to a service that had to be protected.
    pub fn seen_at_edge(&self) -> Vec<Exposed> {
        self.seen().exposed.clone()
    }

    /// How often the edge was asked.
    pub fn questions(&self) -> usize {
        self.seen().questions
    }

    /// Every instant at which a name stood open by the request log.
    pub fn seen_in_log(&self, world: &World) -> Vec<Exposed> {
        self.verdict(world).exposed
    }

    /// Names whose rule another cluster's stale write brought back.
    pub fn revived(&self, world: &World) -> BTreeSet<String> {
        self.verdict(world).revived
    }

    fn verdict(&self, world: &World) -> fail_closed::FoldVerdict {
        fail_closed::judge(self.story(&world.cloudflare.simulator.requests()))
    }

    fn story(&self, log: &[RecordedRequest]) -> Vec<Moment> {
        let beside = self.seen().beside.clone();
        let mut beside = beside.into_iter().peekable();
        let mut story = Vec::new();
        for (number, request) in log.iter().enumerate() {
            while let Some((_, moment)) = beside.next_if(|(before, _)| *before <= number) {
                story.push(moment);
            }
            story.push(Moment::Asked(request.to_json()));
        }
        story.extend(beside.map(|(_, moment)| moment));
        story
    }

    /// What either way of looking saw stand open.
    pub fn seen_open(&self, world: &World) -> Vec<String> {
        let edge = self.seen_at_edge().into_iter().map(|one| format!("the edge let strangers in: {one}"));
        let log = self.seen_in_log(world).into_iter().map(|one| format!("by the request log {one}"));
        edge.chain(log).collect()
    }

    /// Panics if either way of looking saw a name stand open.
    pub fn assert_closed(&self, world: &World, place: &str) {
        let open = self.seen_open(world);
        assert!(open.is_empty(), "{place}: {}", open.join("; "));
    }

    fn seen(&self) -> MutexGuard<'_, EdgeView> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names that a request takes out of a tunnel's document.
fn dropped(call: &HookedCall, state: &Value) -> BTreeSet<String> {
    let tunnel = call.path.strip_suffix("/configurations").and_then(|path| path.rsplit_once('/'));
    let Some((_, tunnel)) = tunnel else { return BTreeSet::new() };
    let before = fail_closed::hostnames(&state["configurations"][tunnel]["config"]);
    before.difference(&fail_closed::hostnames(&call.body()["config"])).cloned().collect()
}

/// Whether a name that only the tunnel's last rule takes, which is its owner's, stands open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CatchAll {
    /// A record alone is too much: it was written before its application.
    Counts,
    /// Others took rule or application away, or they are on their way: the record leads to nothing of the name's own.
    IsNothing,
}

/// A name as a visitor sees it whom nobody knows.
pub(super) fn at_edge(simulator: &Simulator, hostname: &str, call: Option<&HookedCall>, catch_all: CatchAll) -> Sight {
    let known = |yes| if yes { KnownObject::Yes } else { KnownObject::No };
    // A wildcard stands for names of any depth; an application's own covers a few.
    let visited = hostname.replacen('*', "a.b.c.d.e", 1);
    let decision = simulator.decide(&EdgeRequest::get(&visited, "/", &[]));
    let policies = decision.app.as_ref().map_or(0, |app| app.policies.len());
    // The edge asks nobody for a name that has no way to a service.
    let is_own = decision.rule.as_ref().is_some_and(|rule| !rule.hostname.is_empty());
    let published = match (decision.is_served() && (is_own || catch_all == CatchAll::Counts), &decision.record) {
        (true, _) => KnownObject::Yes,
        (false, None) => KnownObject::No,
        (false, Some(_)) => KnownObject::Perhaps,
    };
    let writes =
        |call: &HookedCall| call.is_write() && call.path.contains("/access/apps") && call.body()["domain"] == hostname;
    let just_written = call.is_some_and(writes);
    Sight {
        published,
        app: known(decision.app.is_some()),
        policy: known(policies > 0),
        just_written,
        just_published: false,
    }
}
