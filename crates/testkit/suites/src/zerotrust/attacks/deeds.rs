//! What happens in an attacked history, one deed at a time.

use std::time::Duration;

use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use super::super::histories::wanted::{FIRST_OF_SHOP, IMPLICIT, RouteWish, TEMPLATES, Users};
use super::super::histories::wishes_change;
use super::super::wishes::NameWish;
use super::super::{ACCOUNT, RouteManifest, TUNNEL, as_somebody, config};
use super::begin::TEMPLATES_DEFINITION;
use super::{AttackHistory, Thing};
use crate::cloudflare::live;
use crate::failpoints::{Stop, StopSide};
use crate::history::{History, misfortune};
use crate::manifests::{self as m, ZONE};
use crate::process::OperatorProcess;
use crate::world::World;
use crate::zerotrust::RouteWorld as _;

/// How many routes there are: four in `default`, two in `shop`.
const ROUTES: usize = 6;

impl AttackHistory {
    /// What users now wish is known before they say it to the cluster.
    fn wishes_change(&mut self, world: &World, change: impl FnOnce(&mut Users)) {
        wishes_change(&mut self.users, &self.monitor, world, change);
    }

    /// A route is nobody's wish any more.
    pub(super) fn forget_route(&mut self, world: &World, number: usize) {
        self.wishes_change(world, |users| users.drop_route(number));
    }

    fn is_down(&self, asked: &RouteWish) -> bool {
        let templates = asked.implicit().into_iter().any(|name| self.down.contains(&Thing::Template(name)));
        let shop = asked.namespace() == "shop" && self.down.contains(&Thing::Shop);
        let definition = asked.implicit().is_some() && self.down.contains(&Thing::Definition);
        // What takes part without being named must be there when a route first comes: nobody could know of it later.
        templates || shop || definition || self.down.contains(&Thing::Tenant(asked.tenant))
    }

    async fn apply(&mut self, history: &mut History, number: usize, asked: &RouteWish) {
        let route = asked.route(number);
        // A route that is going cannot be taken back: its name is free when it is gone.
        let there = history.world.cluster.get(&route.id()).await;
        if there.is_some_and(|one| !one["metadata"]["deletionTimestamp"].is_null()) || self.is_down(asked) {
            return;
        }
        history.tell(format!("apply r{number}: {asked:?}"));
        self.wishes_change(&history.world, |users| users.ask(number, asked.clone()));
        history.world.cluster.apply(&route.into()).await;
    }

    pub(super) async fn user_applies_route(&mut self, history: &mut History) {
        let number = history.random.random_range(0..ROUTES);
        let asked = RouteWish::attacked(number, &mut history.random);
        self.apply(history, number, &asked).await;
    }

    /// An edit that is taken back before anybody can have ended what it asked for.
    pub(super) async fn user_takes_an_edit_back(&mut self, history: &mut History) {
        let number = history.random.random_range(0..ROUTES);
        let Some(before) = self.users.routes.get(&number).cloned() else { return };
        let edited = RouteWish::attacked(number, &mut history.random);
        self.apply(history, number, &edited).await;
        tokio::time::sleep(Duration::from_millis(history.random.random_range(0..600))).await;
        history.tell("which is taken back".to_owned());
        self.apply(history, number, &before).await;
    }

    pub(super) async fn user_deletes_route(&mut self, history: &mut History) {
        let number = history.random.random_range(0..ROUTES);
        let namespace = if number >= FIRST_OF_SHOP { "shop" } else { "default" };
        history.tell(format!("delete r{number}"));
        self.forget_route(&history.world, number);
        history.world.cluster.delete(&format!("HTTPRoute/{namespace}/r{number}")).await;
    }

    pub(super) async fn user_edits_template(&mut self, history: &mut History) {
        let names: Vec<&'static str> = TEMPLATES.into_iter().chain(IMPLICIT).collect();
        let name = *names.choose(&mut history.random).unwrap_or(&names[0]);
        let gone = [Thing::Template(name), Thing::Definition].iter().any(|thing| self.down.contains(thing));
        if gone || (name == IMPLICIT[1] && self.down.contains(&Thing::Shop)) {
            return;
        }
        // Templates that nobody names always protect: what they end would be nobody's wish.
        let choice = history.random.random_range(0..if IMPLICIT.contains(&name) { 2 } else { 3 });
        self.wishes_change(&history.world, |users| users.edit_template(name, choice));
        history.tell(format!("template {name}: choice {choice}"));
        history.world.cluster.apply(&super::begin::template_object(&self.users, name)).await;
    }

    pub(super) async fn something_goes(&mut self, history: &mut History) {
        let things = [
            Thing::Template(TEMPLATES[0]),
            Thing::Template(IMPLICIT[0]),
            Thing::Template(IMPLICIT[0]),
            Thing::Template(IMPLICIT[1]),
            Thing::Secret("default"),
            Thing::Secret("shop"),
            Thing::Definition,
            Thing::Shop,
            Thing::Tenant("walled"),
            Thing::Tenant("second"),
        ];
        let thing = *things.choose(&mut history.random).unwrap_or(&things[0]);
        if self.down.contains(&thing) || self.down.contains(&Thing::Definition) || self.down.contains(&Thing::Shop) {
            return;
        }
        // Names whose credential went long before their namespace are taken down by an administrator who names another.
        if thing == Thing::Shop && self.down.contains(&Thing::Secret("shop")) {
            return;
        }
        // Only what took part can be missed.
        if matches!(thing, Thing::Template(_) | Thing::Definition | Thing::Tenant(_))
            && !self.is_settled(&history.world).await
        {
            return;
        }
        history.count("attacks", 1);
        let breaks = history.random.random_bool(0.4);
        self.take_down(history, thing, breaks).await;
    }

    /// Whether everything that users asked for is published, so that what took part is known.
    async fn is_settled(&self, world: &World) -> bool {
        let rests = world.rests_within(Duration::from_secs(30)).await;
        rests && world.tasks().await.is_empty() && super::end::unfinished(world, &self.users).await.is_empty()
    }

    async fn take_down(&mut self, history: &mut History, thing: Thing, breaks: bool) {
        history.tell(format!("{thing:?} {}", if breaks { "breaks" } else { "goes" }));
        let cluster = &history.world.cluster;
        match thing {
            Thing::Template(name) => {
                let mut broken = super::begin::template_object(&self.users, name);
                if breaks {
                    broken["spec"] = json!({ "accessApplication": "closed, please" });
                    cluster.apply(&broken).await;
                } else {
                    cluster.delete(&m::id(&broken)).await;
                }
            }
            Thing::Secret(namespace) if breaks => {
                let mut broken = super::begin::secret_object(namespace);
                broken["stringData"] = json!({ "token": "no token at all" });
                cluster.apply(&broken).await;
            }
            Thing::Secret(namespace) => cluster.delete(&format!("Secret/{namespace}/cloudflare-api-token")).await,
            Thing::Definition => cluster.delete(&format!("CustomResourceDefinition/{TEMPLATES_DEFINITION}")).await,
            Thing::Tenant(name) => {
                let mut broken = super::begin::tenant_object(&self.users, name);
                if breaks {
                    broken["spec"]["tunnelId"] = json!("00000000-0000-4000-8000-000000000000");
                    cluster.apply(&broken).await;
                } else {
                    cluster.delete(&m::id(&broken)).await;
                }
            }
            Thing::Shop => {
                self.wishes_change(&history.world, |users| {
                    (FIRST_OF_SHOP..ROUTES).for_each(|number| users.drop_route(number));
                });
                history.world.cluster.delete("Namespace/shop").await;
            }
        }
        self.down.insert(thing);
    }

    pub(super) async fn something_comes_back(&mut self, history: &mut History) {
        let down: Vec<Thing> = self.down.iter().copied().collect();
        let Some(thing) = down.choose(&mut history.random).copied() else { return };
        self.bring_back(history, thing).await;
    }

    /// Deeds in the dashboard.
    pub(super) fn others_at_cloudflare(&mut self, history: &mut History) {
        let deed = history.random.random_range(0..10);
        let collection = if deed < 6 { "access_apps" } else { "dns_records" };
        let field = if collection == "dns_records" { "name" } else { "domain" };
        let all = live(&history.world.cloudflare.simulator.state(), collection);
        let Some(object) = all.choose(&mut history.random) else { return };
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (id, hostname) = (text("id"), text(field));
        history.count("attacks", 1);
        match deed {
            0..4 => {
                history.tell(format!("somebody deletes the application of {hostname}"));
                history.world.cloudflare.remove("access_apps", &id);
                self.monitor.lost(&history.world, &hostname);
            }
            4..5 => {
                history.tell(format!("somebody takes the policies of {hostname}"));
                history.world.cloudflare.edit("access_apps", &id, |app| app["policies"] = json!([]));
                self.monitor.lost(&history.world, &hostname);
            }
            5..6 => {
                history.tell(format!("somebody points the application of {hostname} elsewhere"));
                history.world.cloudflare.edit("access_apps", &id, |app| {
                    app["domain"] = json!(format!("elsewhere.{ZONE}"));
                    app["destinations"] = json!([{ "type": "public", "uri": format!("elsewhere.{ZONE}") }]);
                    app["self_hosted_domains"] = json!([format!("elsewhere.{ZONE}")]);
                });
                self.monitor.lost(&history.world, &hostname);
            }
            6..8 => {
                history.tell(format!("somebody deletes the record {hostname}"));
                history.world.cloudflare.remove("dns_records", &id);
                self.monitor.changed(&history.world);
            }
            _ => self.others_edit_the_document(history),
        }
    }

    /// Who pointed an application elsewhere takes it away at last: nobody else may.
    pub(super) fn others_clean_up(&mut self, history: &mut History) {
        let elsewhere = format!("elsewhere.{ZONE}");
        for app in history.world.cloudflare.all("access_apps") {
            if app["domain"] == elsewhere.as_str() {
                history.world.cloudflare.remove("access_apps", app["id"].as_str().unwrap_or_default());
                self.monitor.changed(&history.world);
            }
        }
    }

    /// The API has no If-Match: a rule that one cluster took out between the other's read and write is written again by
    /// the other, which says so and may not touch it. It leads nowhere without a record; a person takes it out.
    pub(super) fn resurrected_rules_go(&mut self, history: &mut History) {
        let (revived, claims) = (self.monitor.revived(&history.world), self.users.claims());
        let mut document = config(&history.world, TUNNEL);
        let Some(rules) = document["ingress"].as_array_mut() else { return };
        let count = rules.len();
        rules.retain(|rule| {
            let name = rule["hostname"].as_str().unwrap_or_default();
            !revived.contains(name) || claims.contains_key(name)
        });
        if rules.len() < count {
            history.tell("a rule that came back is taken out by hand".to_owned());
            let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
            as_somebody(&history.world, "PUT", &path, &json!({ "config": document }));
        }
    }

    /// One of our rules goes from the document that everybody writes.
    fn others_edit_the_document(&mut self, history: &mut History) {
        let mut document = config(&history.world, TUNNEL);
        let Some(rules) = document["ingress"].as_array_mut() else { return };
        let ours = rules.iter().position(|rule| {
            let name = rule["hostname"].as_str().unwrap_or_default();
            self.users.claims().contains_key(name)
        });
        let Some(place) = ours else { return };
        let gone = rules.remove(place)["hostname"].as_str().unwrap_or_default().to_owned();
        history.tell(format!("somebody takes the rule of {gone}"));
        // Nothing goes wrong for somebody else.
        history.world.cloudflare.simulator.clear_faults();
        let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
        as_somebody(&history.world, "PUT", &path, &json!({ "config": document }));
        misfortune(&history.world);
        self.monitor.rule_taken(&history.world, &gone);
    }

    /// The same manifest in another cluster of the account, or its end there.
    pub(super) async fn other_cluster(&mut self, history: &mut History) {
        let number = history.random.random_range(0..3);
        let Some(other) = &self.other else { return };
        let (name, hostname) = (format!("r{number}"), format!("g{number}.{ZONE}"));
        let id = format!("HTTPRoute/default/{name}");
        let there = other.cluster.get(&id).await;
        let event = match there {
            Some(route) if route["metadata"]["deletionTimestamp"].is_null() => {
                other.cluster.delete(&id).await;
                format!("another cluster withdraws {hostname}")
            }
            Some(_) => return,
            None => {
                self.monitor.wish(&history.world, &hostname, NameWish::Protected);
                let route = RouteManifest::to(&name, &hostname).with("tenant", "prod").with("access.enabled", "true");
                other.cluster.apply(&route.with("access.allowEmails", "ann@example.com").into()).await;
                format!("another cluster publishes {hostname}")
            }
        };
        history.count("attacks", 1);
        history.tell(event);
    }

    /// Many routes go at once: more than the budget for deletions lets go.
    pub(super) async fn crowd_goes(&mut self, history: &mut History) {
        let names: Vec<String> = (0..std::mem::take(&mut self.crowd)).map(|number| format!("c{number}")).collect();
        if names.is_empty() {
            return;
        }
        history.tell("a crowd of routes goes at once".to_owned());
        history.count("attacks", 1);
        for name in names {
            self.monitor.wish(&history.world, &format!("{name}.{ZONE}"), NameWish::Gone);
            history.world.cluster.delete(&format!("HTTPRoute/default/{name}")).await;
        }
    }
}

/// Dies, comes back, and in half of all cases dies again at some step of what it does then.
pub(super) async fn operator_dies(history: &mut History) {
    let after = Duration::from_millis(history.random.random_range(0..20_000));
    let parts = history.world.parts();
    let part = parts.choose(&mut history.random).copied().unwrap_or(parts[0]);
    let whole = history.random.random_bool(0.5);
    history.tell(format!(
        "{} dies and comes back after {after:?}",
        if whole { "the operator".to_owned() } else { format!("{part:?}") }
    ));
    history.crashed();
    if whole {
        history.world.crash().await;
    } else {
        history.world.crash_part(part).await;
    }
    tokio::time::sleep(after).await;
    if whole {
        history.world.restart().await;
    } else {
        history.world.restart_part(part).await;
    }
    if history.random.random_bool(0.5) {
        dies_in_recovery(history, part).await;
    }
}

async fn dies_in_recovery(history: &mut History, part: OperatorProcess) {
    let side = if history.random.random_bool(0.5) { StopSide::Before } else { StopSide::After };
    let stop = Stop { step: history.random.random_range(1..15), side };
    let failpoints = history.world.failpoints_of(part).clone();
    failpoints.stop_at(stop);
    let halted = tokio::time::timeout(Duration::from_secs(20), failpoints.halted()).await.is_ok();
    if halted {
        history.tell(format!("{part:?} dies while it recovers, at step {}", stop.step));
        history.crashed();
        history.world.restart_part(part).await;
    } else {
        failpoints.open();
    }
}

/// Whether an object is on its way out.
pub(super) fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
