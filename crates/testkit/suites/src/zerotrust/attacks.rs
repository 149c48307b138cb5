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

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;

use super::edge_monitor::EdgeMonitor;
use super::histories::wanted::Users;
use super::histories::{end, note_rest, story};
use super::invariants;
use crate::history::{History, HistoryEvent, HistoryJob};
use crate::world::World;
use deeds::operator_dies;

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

/// What is an attacked history's own: who looks on, what users said, what is missing.
pub struct AttackHistory {
    /// Another cluster on the same account, in some histories.
    other: Option<World>,
    monitor: EdgeMonitor,
    users: Users,
    down: BTreeSet<Thing>,
    /// The definition of templates, as it comes back.
    definition: Value,
    /// Routes of the crowd that stand; they go all at once.
    crowd: usize,
}

/// What happens in these histories alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttackDeed {
    /// A user applies a route.
    Applies,
    /// A user applies one, and takes that back.
    TakesAnEditBack,
    /// A user deletes one.
    Deletes,
    /// A user edits a template.
    EditsTemplate,
    /// Something that protection is made of is deleted or broken.
    SomethingGoes,
    /// Something of that comes back.
    SomethingComesBack,
    /// Others delete and edit at Cloudflare.
    OthersAtCloudflare,
    /// Another cluster publishes or withdraws.
    OtherCluster,
    /// A process of the operator is killed, perhaps once more while it recovers.
    OperatorDies,
    /// Many routes go at once.
    CrowdGoes,
}

impl HistoryJob for AttackHistory {
    type Deed = AttackDeed;

    const CHANCES: &'static [(u32, HistoryEvent<AttackDeed>)] = &[
        (28, HistoryEvent::Own(AttackDeed::Applies)),
        (5, HistoryEvent::Own(AttackDeed::TakesAnEditBack)),
        (5, HistoryEvent::Own(AttackDeed::Deletes)),
        (4, HistoryEvent::Own(AttackDeed::EditsTemplate)),
        (14, HistoryEvent::Own(AttackDeed::SomethingGoes)),
        (6, HistoryEvent::Own(AttackDeed::SomethingComesBack)),
        (12, HistoryEvent::Own(AttackDeed::OthersAtCloudflare)),
        (6, HistoryEvent::Own(AttackDeed::OtherCluster)),
        (8, HistoryEvent::Own(AttackDeed::OperatorDies)),
        (4, HistoryEvent::DriftPass),
        (2, HistoryEvent::Own(AttackDeed::CrowdGoes)),
        (6, HistoryEvent::TimePasses(240)),
    ];
    const EVENTS: usize = 16;
    /// Two hours, since what went must come back first.
    const PASSES: usize = 24;

    /// Histories of the same seed without attacks draw other numbers.
    fn random(seed: u64) -> StdRng {
        StdRng::seed_from_u64(seed ^ 0x0a77_ac4e_d000_0000)
    }

    async fn begin(seed: u64, random: &mut StdRng) -> (World, Self) {
        begin::begin(seed, random).await
    }

    fn token_secret(token: &str) -> Value {
        super::token_secret("default", "cloudflare-api-token", token)
    }

    async fn happens(&mut self, history: &mut History, deed: AttackDeed) {
        match deed {
            AttackDeed::Applies => self.user_applies_route(history).await,
            AttackDeed::TakesAnEditBack => self.user_takes_an_edit_back(history).await,
            AttackDeed::Deletes => self.user_deletes_route(history).await,
            AttackDeed::EditsTemplate => self.user_edits_template(history).await,
            AttackDeed::SomethingGoes => self.something_goes(history).await,
            AttackDeed::SomethingComesBack => self.something_comes_back(history).await,
            AttackDeed::OthersAtCloudflare => self.others_at_cloudflare(history),
            AttackDeed::OtherCluster => self.other_cluster(history).await,
            AttackDeed::OperatorDies => operator_dies(history).await,
            AttackDeed::CrowdGoes => self.crowd_goes(history).await,
        }
    }

    async fn time_passed(&mut self, history: &mut History) {
        note_rest(&self.monitor, &history.world).await;
    }

    async fn calms(&mut self, history: &mut History) {
        self.other_cluster_ends(history).await;
        self.others_clean_up(history);
    }

    async fn mend(&mut self, history: &mut History) {
        self.restore(history).await;
    }

    /// What is still missing is asked for again and again.
    fn must_rest(&self) -> bool {
        false
    }

    /// A Secret that was asked for a moment ago is kept from vanishing for a minute more: that write is no unrest.
    async fn ends(&mut self, history: &mut History) {
        tokio::time::sleep(Duration::from_secs(90)).await;
        let _ = history.world.rests_within(Duration::from_secs(600)).await;
    }

    async fn unfinished(&self, world: &World) -> Vec<String> {
        let missing: Vec<String> = self.down.iter().map(|thing| format!("{thing:?} does not come back")).collect();
        if missing.is_empty() { end::unfinished(world, &self.users).await } else { missing }
    }

    async fn unsound(&mut self, history: &mut History) -> Vec<String> {
        history.count("questions", self.monitor.questions());
        let mut found = self.monitor.seen_open(&history.world);
        let late = self.monitor.seen_late(&history.world, history.seed());
        found.extend(late.iter().map(|one| format!("at an edge that hears late {one}")));
        self.resurrected_rules_go(history);
        found.extend(invariants::found(&history.world).await);
        found
    }

    async fn story(&self, world: &World) -> String {
        story(world).await
    }
}
