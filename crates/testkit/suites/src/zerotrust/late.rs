//! An edge that hears of changes late: Access, rules and records each by themselves, by up to ten seconds.
//!
//! Nothing says in which order what was written in one order arrives: an application may reach the edge after the rule and
//! the record that were written after it. A name that must be protected has to stay closed in every such order.

use std::collections::VecDeque;

use portolan_cloudflare_sim::{Options, Simulator};
use portolan_core::Clock;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::edge_monitor::{CatchAll, at_edge};
use super::wishes::{Duties, Exposed, NameWish};

/// The longest that a change takes to the edge, in milliseconds.
const LATEST: i64 = 10_000;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Moment {
    /// Users wish something for a name.
    Wished(String, NameWish),
    /// Somebody changed something: all objects, as the simulator keeps them.
    Stands(Value),
    /// Somebody else took a name's protection away while it was on its way to the edge.
    Forgiven(String),
    /// The operator has nothing left to do.
    Rested,
}

/// What reaches the edge by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Access,
    Rules,
    Records,
}

impl Way {
    const ALL: [Self; 3] = [Self::Access, Self::Rules, Self::Records];

    /// Where in a snapshot that stands which goes this way.
    fn places(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Access => &[
                &["objects", "access_apps"],
                &["objects", "access_policies"],
                &["objects", "access_groups"],
                &["objects", "service_tokens"],
                &["service_tokens"],
            ],
            Self::Rules => &[&["tunnels"]],
            Self::Records => &[&["objects", "dns_records"]],
        }
    }
}

/// Every instant at which a name stood open at an edge that heard of each change as late as the seed says.
pub fn check(story: &[(i64, Moment)], seed: u64, clock: &Clock) -> Vec<Exposed> {
    let mut edge = Late::new(seed, clock);
    let mut found = Vec::new();
    for (at, moment) in story {
        edge.until(*at, &mut found);
        match moment {
            Moment::Wished(hostname, wish) => edge.duties.wish(hostname, *wish),
            Moment::Stands(all) => edge.send(*at, all),
            Moment::Forgiven(hostname) => edge.duties.forgive(hostname),
            Moment::Rested => edge.rest(),
        }
    }
    edge.until(i64::MAX, &mut found);
    found
}

fn standing_at<'a>(all: &'a Value, place: &[&str]) -> Option<&'a Value> {
    place.iter().try_fold(all, |inside, name| inside.get(*name))
}

/// The edge, and what is on its way there.
struct Late {
    simulator: Simulator,
    /// What the edge knows.
    known: Value,
    /// What was sent last, by way.
    sent: Value,
    arriving: VecDeque<Arrival>,
    duties: Duties,
    random: StdRng,
    /// The longest that each way takes in this history.
    latest: [i64; 3],
}

struct Arrival {
    at: i64,
    way: usize,
    all: Value,
}

impl Late {
    fn new(seed: u64, clock: &Clock) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let latest = Way::ALL.map(|_| if random.random_bool(0.3) { 0 } else { random.random_range(0..=LATEST) });
        Self {
            simulator: Simulator::new(Options { clock: clock.clone(), ..Options::default() }),
            known: Value::Null,
            sent: Value::Null,
            arriving: VecDeque::new(),
            duties: Duties::default(),
            random,
            latest,
        }
    }

    /// What stands now goes to the edge, each part in its own time; what was sent earlier the same way arrives earlier.
    fn send(&mut self, at: i64, all: &Value) {
        if self.known.is_null() {
            self.known = all.clone();
        }
        for (number, way) in Way::ALL.into_iter().enumerate() {
            let changed = way.places().iter().any(|place| standing_at(&self.sent, place) != standing_at(all, place));
            if changed {
                let takes = self.random.random_range(0..=self.latest[number]);
                let before = self.arriving.iter().rev().find(|one| one.way == number).map_or(0, |one| one.at);
                self.arriving.push_back(Arrival { at: (at + takes).max(before), way: number, all: all.clone() });
            }
        }
        self.sent = all.clone();
    }

    /// Lets arrive what does so before a time, and looks at every name after each.
    fn until(&mut self, time: i64, found: &mut Vec<Exposed>) {
        loop {
            let next = self.arriving.iter().enumerate().min_by_key(|(place, one)| (one.at, *place));
            let Some(place) = next.filter(|(_, one)| one.at < time).map(|(place, _)| place) else { return };
            let Some(arrival) = self.arriving.remove(place) else { return };
            self.arrives(&arrival);
            let after = format!("{:?} arrived at {} ms", Way::ALL[arrival.way], arrival.at);
            for hostname in self.duties.names() {
                let sight = at_edge(&self.simulator, &hostname, None, CatchAll::IsNothing);
                if self.duties.see(&hostname, sight).is_some() {
                    let missing = "protection at an edge that hears late";
                    found.push(Exposed { hostname, missing, after: after.clone() });
                }
            }
        }
    }

    fn arrives(&mut self, arrival: &Arrival) {
        // What no way is for, as zones, is known at once.
        let mut known = arrival.all.clone();
        let others = Way::ALL.into_iter().enumerate().filter(|(number, _)| *number != arrival.way);
        for place in others.flat_map(|(_, way)| way.places()) {
            let old = standing_at(&self.known, place).cloned().unwrap_or_else(|| json!({}));
            *place.iter().fold(&mut known, |inside, name| &mut inside[*name]) = old;
        }
        self.known = known;
        self.simulator.restore(self.known.clone()).expect("parts of snapshots are a snapshot");
    }

    /// With nothing on its way either, names that stand protected are so for good.
    fn rest(&mut self) {
        if self.arriving.is_empty() {
            let simulator = &self.simulator;
            self.duties.rest(|name| at_edge(simulator, name, None, CatchAll::IsNothing));
        }
    }
}
