//! Random histories of routes, templates and tenants: users edit, somebody deletes in the dashboard, Cloudflare fails, the
//! operator dies; after every request nothing stands open, and in the end everything is as the users last said.

pub(super) mod end;
pub(super) mod wanted;

use std::time::Duration;

use portolan_cloudflare_sim::{Count, Effect, Fault, Grant};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::guard::Guard;
use super::{ACCOUNT, TUNNEL, add_tunnel, template, tenant, token_secret, world};
use crate::manifests::{self as m, ZONE};
use crate::world::World;
use crate::zerotrust::RouteWorld as _;
use wanted::{RouteWish, Users};

/// The tunnel of the second tenant.
pub(crate) const SECOND_TUNNEL: &str = "99999999-2222-3333-4444-555555555555";
/// A history has an hour to come to rest once nothing fails any more.
const PASSES: usize = 12;
const BETWEEN_PASSES: Duration = Duration::from_secs(300);
/// How many things happen in a history.
const EVENTS: usize = 14;

/// What a history was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTally {
    /// Requests that Cloudflare got until all was calm.
    pub requests: usize,
    /// Of those, how many went wrong.
    pub failed: usize,
    /// How often the operator was killed.
    pub crashes: usize,
    /// How often the edge was asked.
    pub questions: usize,
    /// What happened, in order; the same seed gives the same.
    pub events: Vec<String>,
}

/// Lives through the history of a seed. Panics where something does not hold.
pub async fn live(seed: u64) -> RouteTally {
    let mut history = RouteHistory::begin(seed).await;
    history.tell(format!("seed {seed}"));
    for _ in 0..EVENTS {
        history.something_happens().await;
    }
    history.calm_down().await;
    history.told
}

struct RouteHistory {
    world: World,
    guard: Guard,
    users: Users,
    random: StdRng,
    token: String,
    told: RouteTally,
}

impl RouteHistory {
    async fn begin(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let latency = Duration::from_millis(random.random_range(0..300));
        let world = world().seed(seed).latency(latency).start().await;
        add_tunnel(&world, ACCOUNT, SECOND_TUNNEL, "second");
        for n in 0..2 {
            let record = json!({ "type": "A", "name": format!("theirs{n}.{ZONE}"), "content": "203.0.113.7", "ttl": 1, "comment": "by hand" });
            world.cloudflare.plant_foreign("dns_records", &record);
            let app = json!({ "name": "theirs", "domain": format!("theirs{n}.{ZONE}"), "type": "self_hosted" });
            world.cloudflare.plant_in("access_apps", ACCOUNT, &app);
        }
        world.cloudflare.keep_seeded();
        let mut second = tenant("second");
        second["spec"]["tunnelId"] = json!(SECOND_TUNNEL);
        world.cluster.apply(&second).await;
        let users = Users::default();
        for name in wanted::TEMPLATES {
            world.cluster.apply(&template(name, users.template(name))).await;
        }
        world.settle().await;
        let guard = Guard::post(&world);
        misfortune(&world);
        Self { world, guard, users, random, token: m::CANARY.to_owned(), told: RouteTally::default() }
    }

    fn tell(&mut self, event: String) {
        self.told.events.push(event);
    }

    async fn something_happens(&mut self) {
        match self.random.random_range(0..100) {
            0..42 => self.user_applies_route().await,
            42..52 => self.user_deletes_route().await,
            52..62 => self.user_edits_template().await,
            62..66 => self.user_edits_tenant().await,
            66..72 => self.dashboard_deletes(),
            72..82 => self.operator_dies().await,
            82..87 => self.drift_is_looked_for().await,
            87..90 => self.token_is_rotated().await,
            _ => self.time_passes().await,
        }
        let pause = Duration::from_millis(*[0, 0, 30, 400, 5_000].choose(&mut self.random).unwrap_or(&0));
        tokio::time::sleep(pause).await;
    }

    /// What users now wish is known before they say it to the cluster.
    fn wishes_change(&mut self, change: impl FnOnce(&mut Users)) {
        let before = self.users.wishes();
        change(&mut self.users);
        for (hostname, wish) in self.users.wishes_since(&before) {
            self.guard.wish(&self.world, &hostname, wish);
        }
    }

    async fn user_applies_route(&mut self) {
        let number = self.random.random_range(0..4);
        let asked = RouteWish::any(number, &mut self.random);
        self.tell(format!("apply r{number}: {asked:?}"));
        let route = asked.route(number);
        // A route that is going cannot be taken back: its name is free when it is gone.
        let going = self
            .world
            .cluster
            .get(&route.id())
            .await
            .is_some_and(|one| !one["metadata"]["deletionTimestamp"].is_null());
        if going {
            return;
        }
        self.wishes_change(|users| users.ask(number, asked));
        self.world.cluster.apply(&route.into()).await;
    }

    async fn user_deletes_route(&mut self) {
        let number = self.random.random_range(0..4);
        self.tell(format!("delete r{number}"));
        self.wishes_change(|users| users.drop_route(number));
        self.world.cluster.delete(&format!("HTTPRoute/default/r{number}")).await;
    }

    async fn user_edits_template(&mut self) {
        let name = *wanted::TEMPLATES.choose(&mut self.random).unwrap_or(&wanted::TEMPLATES[0]);
        let choice = self.random.random_range(0..3);
        self.wishes_change(|users| users.edit_template(name, choice));
        let spec = self.users.template(name);
        self.tell(format!("template {name}: {spec}"));
        self.world.cluster.apply(&template(name, spec)).await;
    }

    async fn user_edits_tenant(&mut self) {
        let origin = format!("http://traefik{}.traefik.svc:80", self.random.random_range(0..2));
        self.tell(format!("tenant prod: {origin}"));
        self.users.origin.clone_from(&origin);
        let mut prod = tenant("prod");
        prod["spec"]["defaults"]["originService"] = json!(origin);
        self.world.cluster.apply(&prod).await;
    }

    fn dashboard_deletes(&mut self) {
        let collection = *["dns_records", "access_apps"].choose(&mut self.random).unwrap_or(&"dns_records");
        let field = if collection == "dns_records" { "name" } else { "domain" };
        let ours: Vec<Value> = self
            .world
            .cloudflare
            .all(collection)
            .into_iter()
            .filter(|one| !one[field].as_str().unwrap_or_default().starts_with("theirs"))
            .collect();
        let Some(object) = ours.choose(&mut self.random) else { return };
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        let hostname = object[field].as_str().unwrap_or_default().to_owned();
        self.tell(format!("somebody deletes {collection} {hostname}"));
        self.world.cloudflare.remove(collection, &id);
        match collection {
            "access_apps" => self.guard.forgive(&self.world, &hostname),
            _ => self.guard.changed(&self.world),
        }
    }

    async fn operator_dies(&mut self) {
        let after = Duration::from_millis(self.random.random_range(0..20_000));
        self.tell(format!("the operator dies and comes back after {after:?}"));
        self.told.crashes += 1;
        self.world.crash().await;
        tokio::time::sleep(after).await;
        self.world.restart().await;
    }

    async fn drift_is_looked_for(&mut self) {
        self.tell("drift is looked for".to_owned());
        // A pass may hang on a silent API; what follows does not wait for it for ever.
        let _ = tokio::time::timeout(Duration::from_secs(20), self.world.drift_pass()).await;
    }

    async fn token_is_rotated(&mut self) {
        let number: u32 = self.random.random();
        self.tell("the token is rotated".to_owned());
        let (simulator, token) = (&self.world.cloudflare.simulator, format!("canary-token-{number}"));
        simulator.add_token(&token, Grant::all());
        self.world.cluster.apply(&token_secret("default", "cloudflare-api-token", &token)).await;
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..5_000))).await;
        simulator.revoke_token(&self.token);
        self.token = token;
    }

    async fn time_passes(&mut self) {
        let time = Duration::from_secs(self.random.random_range(1..120));
        self.tell(format!("{time:?} pass"));
        tokio::time::sleep(time).await;
        if self.world.rests_within(Duration::from_secs(2)).await && self.world.tasks().await.is_empty() {
            self.guard.rested(&self.world);
        }
    }

    async fn calm_down(&mut self) {
        self.world.cloudflare.simulator.clear_faults();
        let world = &self.world;
        let requests = world.cloudflare.simulator.requests();
        self.told.requests = requests.len();
        self.told.failed = requests.iter().filter(|request| !(200..300).contains(&request.status)).count();
        for _ in 0..PASSES {
            world.drift_pass().await;
            world.settle().await;
            let users = &self.users;
            let finished = async |world: &World| end::unfinished(world, users).await.is_empty();
            if world.holds_within(BETWEEN_PASSES, finished).await {
                break;
            }
        }
        // The last result may just have been collected: statuses follow.
        world.settle().await;
        let rest = end::unfinished(world, &self.users).await;
        assert!(rest.is_empty(), "not as wanted after an hour of calm: {rest:#?}\n{}", self.whole_story().await);
        self.told.questions = self.guard.questions();
        let closed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.guard.assert_closed(world, "in the history");
        }));
        assert!(closed.is_ok(), "{}", self.whole_story().await);
        let found = super::soundness::found(world).await;
        assert!(found.is_empty(), "unsound: {found:#?}\n{}", self.whole_story().await);
    }

    async fn whole_story(&self) -> String {
        whole_story(&self.world, &self.told.events).await
    }
}

/// What happened, and what stands at Cloudflare now.
pub(super) async fn whole_story(world: &World, events: &[String]) -> String {
    let requests = world.cloudflare.simulator.requests();
    let writes: Vec<String> = requests
        .iter()
        .filter(|one| one.is_write() || one.path.contains("configurations"))
        .map(|one| format!("{} {} {}", one.at_ms, crate::cloudflare::shown(one), crop(&one.body.to_string())))
        .collect();
    let tasks: Vec<String> = world.tasks().await.iter().map(|task| task["status"].to_string()).collect();
    let config = super::config(world, TUNNEL);
    format!("{events:#?}\n{writes:#?}\ntasks {tasks:#?}\n{config}")
}

fn crop(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Three of ten requests go wrong before they have their effect, and a sixth of all writes after it.
pub(super) fn misfortune(world: &World) {
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
