//! Random histories: what a job brings in, what happened out. Users edit, others click in the dashboard, requests fail, the
//! operator dies; then all is calm, and everything must be as its users last said. The same seed gives the same history.
//!
//! [`live`] knows no job: a [`HistoryJob`] says what its world begins with, what can happen in it and how often, and what must
//! hold in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_cloudflare_sim::{Count, Effect, Fault, Grant};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use crate::world::World;

/// How long a drift pass may take while requests fail: it may hang on a silent API, and what follows does not wait for ever.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the operator may be at work between two drift passes once nothing fails any more.
const REST: Duration = Duration::from_secs(600);
/// How much time there is between two drift passes then.
const BETWEEN_PASSES: Duration = Duration::from_secs(300);

/// What a job brings to its histories.
pub trait HistoryJob: Sized {
    /// What happens in histories of this job alone.
    type Deed: Copy + 'static;
    /// What can happen, each with how often it does in comparison with the others.
    const CHANCES: &'static [(u32, HistoryEvent<Self::Deed>)];
    /// How many things happen.
    const EVENTS: usize;
    /// How many drift passes a history has to come to rest, five minutes apart, once nothing fails any more.
    const PASSES: usize;

    /// Where the random numbers of a seed come from.
    fn random(seed: u64) -> StdRng {
        StdRng::seed_from_u64(seed)
    }

    /// Makes the world, its operator at rest, and what is known of its users.
    fn begin(seed: u64, random: &mut StdRng) -> impl Future<Output = (World, Self)>;

    /// The Secret that holds the operator's token.
    fn token_secret(token: &str) -> Value;

    /// Does one thing of the job's own, and tells it.
    fn happens(&mut self, history: &mut History, deed: Self::Deed) -> impl Future<Output = ()>;

    /// Time has passed in which nothing was done.
    fn time_passed(&mut self, _: &mut History) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Nothing fails from now on; whatever else troubles the operator ends.
    fn calms(&mut self, _: &mut History) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// What users do between two drift passes so that all comes to its end.
    fn mend(&mut self, _: &mut History) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Whether the operator must come to rest between two drift passes.
    fn must_rest(&self) -> bool {
        true
    }

    /// The last drift pass is over: waits for what follows from it.
    fn ends(&mut self, _: &mut History) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// What is not as the users last said.
    fn unfinished(&self, world: &World) -> impl Future<Output = Vec<String>>;

    /// What does not hold though it must, whatever happened.
    fn unsound(&mut self, history: &mut History) -> impl Future<Output = Vec<String>>;

    /// What stands now, for whoever looks for the cause of a failure.
    fn story(&self, world: &World) -> impl Future<Output = String>;
}

/// Something that happens in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryEvent<D> {
    /// Something of the job's own.
    Own(D),
    /// The operator is killed and comes back.
    OperatorDies,
    /// Everything is compared with what stands at Cloudflare.
    DriftPass,
    /// The operator's token is replaced, and the old one revoked.
    TokenRotated,
    /// Up to so many seconds pass.
    TimePasses(u64),
}

/// What a history was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryTally {
    /// Requests that Cloudflare got until all was calm.
    pub requests: usize,
    /// Of those, how many went wrong.
    pub failed: usize,
    /// How often the operator was killed.
    pub crashes: usize,
    /// What else the job counts.
    counts: BTreeMap<&'static str, usize>,
    /// What happened, in order, with the milliseconds since 1970; the same seed gives the same.
    events: Vec<(i64, String)>,
}

impl HistoryTally {
    /// How many the job counted of something.
    pub fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// What happened, in order.
    pub fn what_happened(&self) -> Vec<&str> {
        self.events.iter().map(|(_, what)| what.as_str()).collect()
    }
}

/// A history while it is lived.
pub struct History {
    /// The world that it happens in.
    pub world: World,
    /// Where everything random comes from.
    pub random: StdRng,
    seed: u64,
    token: String,
    told: HistoryTally,
}

/// Lives through the history of a seed. Panics where something does not hold.
pub async fn live<J: HistoryJob>(seed: u64) -> HistoryTally {
    let mut random = J::random(seed);
    let (world, mut job) = J::begin(seed, &mut random).await;
    let token = world.job().token.to_owned();
    let mut history = History { world, random, seed, token, told: HistoryTally::default() };
    for _ in 0..J::EVENTS {
        history.something_happens(&mut job).await;
    }
    history.calm_down(&mut job).await;
    history.told
}

/// Three of ten requests go wrong before they have their effect, and a sixth of all writes after it.
pub fn misfortune(world: &World) {
    let before = [
        Fault::on("", "", Effect::status(429)).retry_after(Duration::from_secs(2)),
        Fault::on("", "", Effect::status(500)),
        Fault::on("", "", Effect::status(502)),
        Fault::on("", "", Effect::Timeout),
        Fault::on("", "", Effect::Reset),
        Fault::on("", "", Effect::Refused),
    ];
    let after =
        [Effect::status(500), Effect::Timeout, Effect::Reset].map(|effect| Fault::on("", "", effect).after_write());
    for fault in before.into_iter().chain(after) {
        world.cloudflare.fault(fault.count(Count::Probability(0.06)));
    }
}

impl History {
    /// Where the seed that this history is from began.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Notes what happens.
    pub fn tell(&mut self, event: impl Into<String>) {
        self.told.events.push((self.world.now(), event.into()));
    }

    /// Counts something by the job's word for it.
    pub fn count(&mut self, what: &'static str, more: usize) {
        *self.told.counts.entry(what).or_default() += more;
    }

    /// Notes that the operator was killed.
    pub fn crashed(&mut self) {
        self.told.crashes += 1;
    }

    async fn something_happens<J: HistoryJob>(&mut self, job: &mut J) {
        match drawn(J::CHANCES, &mut self.random) {
            HistoryEvent::Own(deed) => job.happens(self, deed).await,
            HistoryEvent::OperatorDies => self.operator_dies().await,
            HistoryEvent::DriftPass => self.drift_is_looked_for().await,
            HistoryEvent::TokenRotated => self.token_is_rotated::<J>().await,
            HistoryEvent::TimePasses(most) => self.time_passes(job, most).await,
        }
        // Often the next thing happens while the operator is still at work.
        let pause = Duration::from_millis(*[0, 0, 30, 400, 5_000].choose(&mut self.random).unwrap_or(&0));
        tokio::time::sleep(pause).await;
    }

    async fn operator_dies(&mut self) {
        let after = Duration::from_millis(self.random.random_range(0..20_000));
        self.tell(format!("the operator dies and comes back after {after:?}"));
        self.crashed();
        self.world.crash().await;
        tokio::time::sleep(after).await;
        self.world.restart().await;
    }

    async fn drift_is_looked_for(&mut self) {
        self.tell("drift is looked for");
        // Whether it came to its end is the history's next matter.
        let _ = tokio::time::timeout(PATIENCE, self.world.drift_pass()).await;
    }

    async fn token_is_rotated<J: HistoryJob>(&mut self) {
        let number: u32 = self.random.random();
        self.tell("the token is rotated");
        let (simulator, token) = (&self.world.cloudflare.simulator, format!("canary-token-{number}"));
        simulator.add_token(&token, Grant::all());
        self.world.cluster.apply(&J::token_secret(&token)).await;
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..5_000))).await;
        simulator.revoke_token(&self.token);
        self.token = token;
    }

    async fn time_passes<J: HistoryJob>(&mut self, job: &mut J, most: u64) {
        let time = Duration::from_secs(self.random.random_range(1..most));
        self.tell(format!("{time:?} pass"));
        tokio::time::sleep(time).await;
        job.time_passed(self).await;
    }

    async fn calm_down<J: HistoryJob>(&mut self, job: &mut J) {
        self.tell("all is calm");
        self.world.cloudflare.simulator.clear_faults();
        let requests = self.world.cloudflare.simulator.requests();
        self.told.requests = requests.len();
        self.told.failed = requests.iter().filter(|request| !(200..300).contains(&request.status)).count();
        job.calms(self).await;
        self.come_to_rest(job).await;
        job.ends(self).await;
        let rest = job.unfinished(&self.world).await;
        assert!(rest.is_empty(), "not as wanted in the end: {rest:#?}\n{}", self.story(job).await);
        let found = job.unsound(self).await;
        assert!(found.is_empty(), "unsound: {found:#?}\n{}", self.story(job).await);
    }

    /// As in real life, drift is looked for from time to time, until everything is as the users said.
    async fn come_to_rest<J: HistoryJob>(&mut self, job: &mut J) {
        for _ in 0..J::PASSES {
            job.mend(self).await;
            self.world.drift_pass().await;
            let rested = self.world.rests_within(REST).await;
            assert!(rested || !job.must_rest(), "not at rest after {REST:?}\n{}", self.story(job).await);
            let finished = async |world: &World| job.unfinished(world).await.is_empty();
            if self.world.holds_within(BETWEEN_PASSES, finished).await {
                break;
            }
        }
    }

    /// What happened, and what stands now.
    async fn story<J: HistoryJob>(&self, job: &J) -> String {
        format!("seed {}: {:#?}\n{}", self.seed, self.told.events, job.story(&self.world).await)
    }
}

/// One of what can happen.
fn drawn<D: Copy>(chances: &[(u32, HistoryEvent<D>)], random: &mut StdRng) -> HistoryEvent<D> {
    let all: u32 = chances.iter().map(|(weight, _)| weight).sum();
    let mut left = random.random_range(0..all);
    let fits = chances.iter().find(|(weight, _)| {
        let fits = left < *weight;
        left = left.saturating_sub(*weight);
        fits
    });
    fits.map(|(_, event)| *event).expect("what is drawn is below the sum of all")
}

#[cfg(test)]
mod tests {
    use portolan_core::job::JobSheet;
    use portolan_engine::{Job, JobDefinition, JobStart, Task};
    use serde_json::json;

    use super::*;
    use crate::{Builder, WorldJob, paused};

    const ZONE: &str = "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0";
    static IDLE: JobDefinition = JobDefinition::of(JobSheet::named("idle", "idle.example.com"), idles);
    static JOB: WorldJob = WorldJob::bare(
        &IDLE,
        &["default"],
        |simulator, plan| {
            simulator.add_account_with_id("a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0", "Example");
            let added = simulator.add_zone_with_id(ZONE, "example.com", "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0", plan);
            added.expect("the plan exists");
        },
        |_| Vec::new(),
    );

    fn idles(_: &JobStart<'_>) -> Job {
        Job::new("idle", |shutdown| {
            let shutdown = shutdown.clone();
            vec![Task::new("idle", || 0, async move { shutdown.cancelled().await })]
        })
    }

    /// Somebody writes records by hand; a history in which more stand than this is not as wished.
    struct ByHand<const MOST: usize>;

    impl<const MOST: usize> HistoryJob for ByHand<MOST> {
        type Deed = ();

        const CHANCES: &'static [(u32, HistoryEvent<()>)] = &[
            (6, HistoryEvent::Own(())),
            (1, HistoryEvent::OperatorDies),
            (1, HistoryEvent::DriftPass),
            (1, HistoryEvent::TokenRotated),
            (2, HistoryEvent::TimePasses(60)),
        ];
        const EVENTS: usize = 20;
        const PASSES: usize = 2;

        async fn begin(seed: u64, _: &mut StdRng) -> (World, Self) {
            let world = Builder::of(&JOB).seed(seed).start().await;
            misfortune(&world);
            (world, Self)
        }

        fn token_secret(token: &str) -> Value {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token", "namespace": "default" },
                "stringData": { "token": token },
            })
        }

        async fn happens(&mut self, history: &mut History, (): ()) {
            let host = history.random.random_range(1..255);
            history.tell(format!("somebody writes {host}"));
            let record = json!({ "type": "A", "name": format!("r{host}.example.com"), "content": format!("192.0.2.{host}"), "ttl": 1 });
            if history.world.cloudflare.simulator.put("dns_records", ZONE, record).is_ok() {
                history.count("records", 1);
            }
        }

        async fn unfinished(&self, world: &World) -> Vec<String> {
            let standing = world.cloudflare.all("dns_records").len();
            if standing > MOST { vec![format!("{standing} records stand")] } else { Vec::new() }
        }

        async fn unsound(&mut self, _: &mut History) -> Vec<String> {
            Vec::new()
        }

        async fn story(&self, _: &World) -> String {
            "the end of the story".to_owned()
        }
    }

    #[test]
    fn events_are_drawn_as_often_as_their_chances_say() {
        let chances = [(1, HistoryEvent::Own('a')), (3, HistoryEvent::DriftPass), (4, HistoryEvent::Own('b'))];
        let mut random = StdRng::seed_from_u64(1);

        let all: Vec<HistoryEvent<char>> = (0..8000).map(|_| drawn(&chances, &mut random)).collect();

        let share = |event| all.iter().filter(|one| **one == event).count();
        assert!((900..1100).contains(&share(HistoryEvent::Own('a'))), "{}", share(HistoryEvent::Own('a')));
        assert!((2800..3200).contains(&share(HistoryEvent::DriftPass)), "{}", share(HistoryEvent::DriftPass));
        assert!((3800..4200).contains(&share(HistoryEvent::Own('b'))), "{}", share(HistoryEvent::Own('b')));
    }

    #[test]
    fn a_job_of_its_own_lives_the_same_history_from_the_same_seed() {
        let told = paused(live::<ByHand<1000>>(7));

        assert_eq!(told, paused(live::<ByHand<1000>>(7)));
        assert_ne!(told.what_happened(), paused(live::<ByHand<1000>>(8)).what_happened());
        assert_eq!(told.what_happened().len(), 21, "twenty events and the calm");
        assert!(told.crashes > 0 && told.count("records") > 3, "{told:?}");
    }

    #[test]
    fn a_history_that_does_not_end_as_wished_fails_with_its_seed_and_its_story() {
        let lived = std::panic::catch_unwind(|| paused(live::<ByHand<0>>(7)));

        let said = lived.expect_err("records stand").downcast::<String>().expect("a message");
        for part in ["records stand", "seed 7", "somebody writes", "the end of the story"] {
            assert!(said.contains(part), "{part} is missing: {said}");
        }
    }
}
