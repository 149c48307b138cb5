//! How what went comes back: as users do it, who wait until what is going is gone.

use std::time::Duration;

use super::begin::{TEMPLATES_DEFINITION, secret_object, standing, template_object, tenant_object};
use super::deeds::is_going;
use super::{AttackHistory, Thing, story};
use crate::cluster::condition;
use crate::history::History;
use crate::manifests::{self as m, id};
use crate::world::World;

impl AttackHistory {
    /// Everything that is missing comes back, as far as it can by now; held deletions are let go.
    pub(super) async fn restore(&mut self, history: &mut History) {
        self.crowd_goes(history).await;
        for thing in self.down.clone() {
            self.bring_back(history, thing).await;
        }
        release_held(history).await;
    }

    pub(super) async fn bring_back(&mut self, history: &mut History, thing: Thing) {
        let back = match thing {
            // Without its kind or its namespace nothing can be made.
            Thing::Template(_) if self.down.contains(&Thing::Definition) => return,
            Thing::Template("default") | Thing::Secret("shop") if self.down.contains(&Thing::Shop) => true,
            Thing::Template(name) => applied(&history.world, template_object(&self.users, name)).await,
            Thing::Secret(namespace) => applied(&history.world, secret_object(namespace)).await,
            Thing::Tenant(name) => self.tenant_back(history, name).await,
            Thing::Definition => self.definition_back(history).await,
            Thing::Shop => self.shop_back(history).await,
        };
        if back {
            history.tell(format!("{thing:?} is back"));
            self.down.remove(&thing);
        }
    }

    /// A tenant goes when nothing is published with it any more: its routes move to another first.
    async fn tenant_back(&mut self, history: &mut History, name: &'static str) -> bool {
        let object = tenant_object(&self.users, name);
        if !history.world.cluster.get(&id(&object)).await.as_ref().is_some_and(is_going) {
            return applied(&history.world, object).await;
        }
        let of_tenant = self.users.routes.iter().filter(|(_, asked)| asked.tenant == name);
        let numbers: Vec<usize> = of_tenant.map(|(number, _)| *number).collect();
        for number in numbers {
            history.tell(format!("r{number} goes, so that tenant {name} can"));
            self.forget_route(&history.world, number);
            history.world.cluster.delete(&format!("HTTPRoute/default/r{number}")).await;
        }
        false
    }

    async fn definition_back(&mut self, history: &mut History) -> bool {
        let name = format!("CustomResourceDefinition/{TEMPLATES_DEFINITION}");
        if history.world.cluster.get(&name).await.as_ref().is_some_and(is_going) {
            return false;
        }
        history.world.cluster.replace_definition(&self.definition).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        for object in standing(&self.users).iter().filter(|one| one["kind"] == "CloudflareZeroTrustTemplate") {
            if object["metadata"]["namespace"] != "shop" || !self.down.contains(&Thing::Shop) {
                history.world.cluster.apply(object).await;
            }
        }
        self.down.retain(|thing| !matches!(thing, Thing::Template(_)));
        true
    }

    async fn shop_back(&mut self, history: &mut History) -> bool {
        if history.world.cluster.get("Namespace/shop").await.is_some() || self.down.contains(&Thing::Definition) {
            return false;
        }
        history.world.cluster.apply(&m::namespace("shop")).await;
        for object in standing(&self.users).iter().filter(|one| one["metadata"]["namespace"] == "shop") {
            history.world.cluster.apply(object).await;
        }
        self.down.retain(|thing| !matches!(thing, Thing::Template("default") | Thing::Secret("shop")));
        true
    }

    /// The other cluster withdraws everything and stops.
    pub(super) async fn other_cluster_ends(&mut self, history: &mut History) {
        let Some(other) = self.other.take() else { return };
        for route in other.cluster.list("HTTPRoute").await {
            other.cluster.delete(&id(&route)).await;
        }
        let gone = async |other: &World| other.cluster.list("HTTPRoute").await.is_empty();
        let ended = other.holds_within(Duration::from_secs(7200), gone).await;
        other.crash().await;
        assert!(ended, "the other cluster withdraws its routes\n{}", story(&history.world).await);
    }
}

/// Applies an object, unless one of its name is still going.
async fn applied(world: &World, object: serde_json::Value) -> bool {
    if world.cluster.get(&id(&object)).await.as_ref().is_some_and(is_going) {
        return false;
    }
    world.cluster.apply(&object).await;
    true
}

/// Lets go what the budget holds, as its tenant asks for it.
async fn release_held(history: &mut History) {
    for tenant in history.world.cluster.list("CloudflareZeroTrustTenant").await {
        let stalled = condition(&tenant, "Stalled").filter(|one| one["status"] == "True");
        let message = stalled.and_then(|one| one["message"].as_str()).unwrap_or_default();
        let Some((_, rest)) = message.split_once("release-deletions: \"") else { continue };
        let digest = rest.split('"').next().unwrap_or_default().to_owned();
        history.tell(format!("held deletions of {} are released", id(&tenant)));
        history.world.cluster.annotate(&id(&tenant), "portolan.dev/release-deletions", &digest).await;
    }
}
