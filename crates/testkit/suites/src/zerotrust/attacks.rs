//! Random histories that attack: what protection is made of vanishes, breaks and comes back, edits are taken back, another
//! cluster works on the same account, others delete and edit at Cloudflare, the edge hears of everything late.
//!
//! By a fold over our own requests no rule and no record of a name that asked for protection is without its application;
//! at the edge, prompt or late, no such name is open; and once all is back, everything is as the users last said.

mod begin;
mod deeds;
mod restore;

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use super::guard::Guard;
use super::histories::wanted::Users;
use super::histories::{end, whole_story};
use super::soundness;
use crate::world::World;

/// How many things happen in a history.
const EVENTS: usize = 16;
/// A history has two hours to come to rest once nothing fails and everything is back.
const PASSES: usize = 24;
const BETWEEN_PASSES: Duration = Duration::from_secs(300);

/// What a history was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttackTally {
    /// Requests that Cloudflare got until all was calm.
    pub requests: usize,
    /// How often the operator was killed.
    pub crashes: usize,
    /// How often the edge was asked.
    pub questions: usize,
    /// Things that were deleted or broken, and deeds of others at Cloudflare.
    pub attacks: usize,
    /// What happened, in order; the same seed gives the same.
    pub events: Vec<String>,
}

/// Something that protection is made of and that can be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Template(&'static str),
    /// The Secret with the API token of the namespace.
    Secret(&'static str),
    /// The definition of templates, and with it all of them.
    Definition,
    /// The namespace `shop`, with all that is in it.
    Shop,
    /// A tenant.
    Tenant(&'static str),
}

struct AttackHistory {
    seed: u64,
    world: World,
    /// Another cluster on the same account, in some histories.
    other: Option<World>,
    guard: Guard,
    users: Users,
    random: StdRng,
    down: BTreeSet<Thing>,
    /// The definition of templates, as it comes back.
    definition: Value,
    /// Routes of the crowd that stand; they go all at once.
    crowd: usize,
    told: AttackTally,
}

/// Lives through the attacked history of a seed. Panics where something does not hold.
pub async fn live(seed: u64) -> AttackTally {
    let mut history = AttackHistory::begin(seed).await;
    history.tell(format!("seed {seed}"));
    for _ in 0..EVENTS {
        history.something_happens().await;
    }
    history.calm_down().await;
    history.told
}

impl AttackHistory {
    fn random_of(seed: u64) -> StdRng {
        // Histories of the same seed without attacks draw other numbers.
        StdRng::seed_from_u64(seed ^ 0x0a77_ac4e_d000_0000)
    }

    fn tell(&mut self, event: String) {
        let at = self.world.now();
        self.told.events.push(format!("{at} {event}"));
    }

    async fn something_happens(&mut self) {
        match self.random.random_range(0..100) {
            0..28 => self.user_applies_route().await,
            28..33 => self.user_takes_an_edit_back().await,
            33..38 => self.user_deletes_route().await,
            38..42 => self.user_edits_template().await,
            42..56 => self.something_goes().await,
            56..62 => self.something_comes_back().await,
            62..74 => self.others_at_cloudflare(),
            74..80 => self.other_cluster().await,
            80..88 => self.operator_dies().await,
            88..92 => self.drift_is_looked_for().await,
            92..94 => self.crowd_goes().await,
            _ => self.time_passes().await,
        }
        let pause = Duration::from_millis(*[0, 0, 30, 400, 5_000].choose(&mut self.random).unwrap_or(&0));
        tokio::time::sleep(pause).await;
    }

    async fn calm_down(&mut self) {
        self.tell("all is calm".to_owned());
        self.world.cloudflare.simulator.clear_faults();
        self.told.requests = self.world.cloudflare.simulator.request_count();
        self.other_cluster_ends().await;
        self.others_clean_up();
        for _ in 0..PASSES {
            self.restore().await;
            self.world.drift_pass().await;
            let _ = self.world.rests_within(Duration::from_secs(600)).await;
            let (users, whole) = (&self.users, self.down.is_empty());
            let finished = async |world: &World| whole && end::unfinished(world, users).await.is_empty();
            if self.world.holds_within(BETWEEN_PASSES, finished).await {
                break;
            }
        }
        // A Secret that was asked for a moment ago is kept from vanishing for a minute more: that write is no unrest.
        tokio::time::sleep(Duration::from_secs(90)).await;
        let _ = self.world.rests_within(Duration::from_secs(600)).await;
        let mut rest = end::unfinished(&self.world, &self.users).await;
        rest.extend(self.down.iter().map(|thing| format!("{thing:?} does not come back")));
        assert!(rest.is_empty(), "not as wanted after two hours of calm: {rest:#?}\n{}", self.story().await);
        self.assert_closed().await;
        self.resurrected_rules_go();
        let found = soundness::found(&self.world).await;
        assert!(found.is_empty(), "unsound: {found:#?}\n{}", self.story().await);
    }

    async fn assert_closed(&mut self) {
        self.told.questions = self.guard.questions();
        let (edge, log) = (self.guard.seen_at_edge(), self.guard.seen_in_log(&self.world));
        let late = self.guard.seen_late(&self.world, self.seed);
        let shown: Vec<String> = edge.iter().chain(&log).chain(&late).map(ToString::to_string).collect();
        assert!(shown.is_empty(), "names stood open: {shown:#?}\n{}", self.story().await);
    }

    async fn story(&self) -> String {
        whole_story(&self.world, &self.told.events).await
    }
}
