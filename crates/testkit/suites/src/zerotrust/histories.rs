//! Random histories of routes, templates and tenants: users edit, somebody deletes in the dashboard, Cloudflare fails, the
//! operator dies; after every request nothing stands open, and in the end everything is as the users last said.

pub(super) mod end;
pub(super) mod wanted;

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use super::edge_monitor::EdgeMonitor;
use super::{ACCOUNT, TUNNEL, add_tunnel, template, tenant, token_secret, world};
use crate::history::{History, HistoryEvent, HistoryJob, misfortune};
use crate::manifests::ZONE;
use crate::world::World;
use crate::zerotrust::RouteWorld as _;
use wanted::{RouteWish, Users};

/// The tunnel of the second tenant.
pub(crate) const SECOND_TUNNEL: &str = "99999999-2222-3333-4444-555555555555";

/// What is the zerotrust job's own of a history: who looks on at the edge, and what its users said.
pub struct RouteHistory {
    monitor: EdgeMonitor,
    users: Users,
}

/// What happens in these histories alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteDeed {
    /// A user applies a route.
    Applies,
    /// A user deletes one.
    Deletes,
    /// A user edits a template.
    EditsTemplate,
    /// A user edits the tenant.
    EditsTenant,
    /// Somebody deletes one of ours in the dashboard.
    DashboardDeletes,
}

impl HistoryJob for RouteHistory {
    type Deed = RouteDeed;

    const CHANCES: &'static [(u32, HistoryEvent<RouteDeed>)] = &[
        (42, HistoryEvent::Own(RouteDeed::Applies)),
        (10, HistoryEvent::Own(RouteDeed::Deletes)),
        (10, HistoryEvent::Own(RouteDeed::EditsTemplate)),
        (4, HistoryEvent::Own(RouteDeed::EditsTenant)),
        (6, HistoryEvent::Own(RouteDeed::DashboardDeletes)),
        (10, HistoryEvent::OperatorDies),
        (5, HistoryEvent::DriftPass),
        (3, HistoryEvent::TokenRotated),
        (10, HistoryEvent::TimePasses(120)),
    ];
    const EVENTS: usize = 14;
    const PASSES: usize = 12;

    async fn begin(seed: u64, random: &mut StdRng) -> (World, Self) {
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
        let monitor = EdgeMonitor::post(&world);
        misfortune(&world);
        (world, Self { monitor, users })
    }

    fn token_secret(token: &str) -> Value {
        token_secret("default", "cloudflare-api-token", token)
    }

    async fn happens(&mut self, history: &mut History, deed: RouteDeed) {
        match deed {
            RouteDeed::Applies => self.user_applies_route(history).await,
            RouteDeed::Deletes => self.user_deletes_route(history).await,
            RouteDeed::EditsTemplate => self.user_edits_template(history).await,
            RouteDeed::EditsTenant => self.user_edits_tenant(history).await,
            RouteDeed::DashboardDeletes => self.dashboard_deletes(history),
        }
    }

    async fn time_passed(&mut self, history: &mut History) {
        note_rest(&self.monitor, &history.world).await;
    }

    /// The last result may just have been collected: statuses follow.
    async fn ends(&mut self, history: &mut History) {
        history.world.settle().await;
    }

    async fn unfinished(&self, world: &World) -> Vec<String> {
        end::unfinished(world, &self.users).await
    }

    async fn unsound(&mut self, history: &mut History) -> Vec<String> {
        history.count("questions", self.monitor.questions());
        let mut found = self.monitor.seen_open(&history.world);
        found.extend(super::invariants::found(&history.world).await);
        found
    }

    async fn story(&self, world: &World) -> String {
        story(world).await
    }
}

impl RouteHistory {
    /// What users now wish is known before they say it to the cluster.
    fn wishes_change(&mut self, world: &World, change: impl FnOnce(&mut Users)) {
        wishes_change(&mut self.users, &self.monitor, world, change);
    }

    async fn user_applies_route(&mut self, history: &mut History) {
        let number = history.random.random_range(0..4);
        let asked = RouteWish::any(number, &mut history.random);
        history.tell(format!("apply r{number}: {asked:?}"));
        let route = asked.route(number);
        // A route that is going cannot be taken back: its name is free when it is gone.
        let there = history.world.cluster.get(&route.id()).await;
        if there.is_some_and(|one| !one["metadata"]["deletionTimestamp"].is_null()) {
            return;
        }
        self.wishes_change(&history.world, |users| users.ask(number, asked));
        history.world.cluster.apply(&route.into()).await;
    }

    async fn user_deletes_route(&mut self, history: &mut History) {
        let number = history.random.random_range(0..4);
        history.tell(format!("delete r{number}"));
        self.wishes_change(&history.world, |users| users.drop_route(number));
        history.world.cluster.delete(&format!("HTTPRoute/default/r{number}")).await;
    }

    async fn user_edits_template(&mut self, history: &mut History) {
        let name = *wanted::TEMPLATES.choose(&mut history.random).unwrap_or(&wanted::TEMPLATES[0]);
        let choice = history.random.random_range(0..3);
        self.wishes_change(&history.world, |users| users.edit_template(name, choice));
        let spec = self.users.template(name);
        history.tell(format!("template {name}: {spec}"));
        history.world.cluster.apply(&template(name, spec)).await;
    }

    async fn user_edits_tenant(&mut self, history: &mut History) {
        let origin = format!("http://traefik{}.traefik.svc:80", history.random.random_range(0..2));
        history.tell(format!("tenant prod: {origin}"));
        self.users.origin.clone_from(&origin);
        let mut prod = tenant("prod");
        prod["spec"]["defaults"]["originService"] = json!(origin);
        history.world.cluster.apply(&prod).await;
    }

    fn dashboard_deletes(&mut self, history: &mut History) {
        let collection = *["dns_records", "access_apps"].choose(&mut history.random).unwrap_or(&"dns_records");
        let field = if collection == "dns_records" { "name" } else { "domain" };
        let mut ours: Vec<Value> = history.world.cloudflare.all(collection);
        ours.retain(|one| !one[field].as_str().unwrap_or_default().starts_with("theirs"));
        let Some(object) = ours.choose(&mut history.random) else { return };
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        let hostname = object[field].as_str().unwrap_or_default().to_owned();
        history.tell(format!("somebody deletes {collection} {hostname}"));
        history.world.cloudflare.remove(collection, &id);
        match collection {
            "access_apps" => self.monitor.forgive(&history.world, &hostname),
            _ => self.monitor.changed(&history.world),
        }
    }
}

/// Changes what users wish; who looks on is told of every name whose wish is another one now.
pub(super) fn wishes_change(users: &mut Users, monitor: &EdgeMonitor, world: &World, change: impl FnOnce(&mut Users)) {
    let before = users.wishes();
    change(users);
    for (hostname, wish) in users.wishes_since(&before) {
        monitor.wish(world, &hostname, wish);
    }
}

/// Notes that the operator has nothing left to do, where that is so.
pub(super) async fn note_rest(monitor: &EdgeMonitor, world: &World) {
    if world.rests_within(Duration::from_secs(2)).await && world.tasks().await.is_empty() {
        monitor.rested(world);
    }
}

/// What was written to Cloudflare, and what stands.
pub(super) async fn story(world: &World) -> String {
    let requests = world.cloudflare.simulator.requests();
    let writes: Vec<String> = requests
        .iter()
        .filter(|one| one.is_write() || one.path.contains("configurations"))
        .map(|one| format!("{} {} {}", one.at_ms, crate::cloudflare::shown(one), crop(&one.body.to_string())))
        .collect();
    let tasks: Vec<String> = world.tasks().await.iter().map(|task| task["status"].to_string()).collect();
    let config = super::config(world, TUNNEL);
    format!("{writes:#?}\ntasks {tasks:#?}\n{config}")
}

fn crop(text: &str) -> String {
    text.chars().take(300).collect()
}
