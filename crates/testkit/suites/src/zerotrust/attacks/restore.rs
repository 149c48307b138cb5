//! How what went comes back: as users do it, who wait until what is going is gone.

use std::time::Duration;

use super::begin::{TEMPLATES_DEFINITION, secret_object, standing, template_object, tenant_object};
use super::deeds::is_going;
use super::{AttackHistory, Thing};
use crate::cluster::condition;
use crate::manifests::{self as m, id};

impl AttackHistory {
    /// Everything that is missing comes back, as far as it can by now; held deletions are let go.
    pub(super) async fn restore(&mut self) {
        self.crowd_goes().await;
        for thing in self.down.clone() {
            self.bring_back(thing).await;
        }
        self.release_held().await;
    }

    pub(super) async fn bring_back(&mut self, thing: Thing) {
        let back = match thing {
            // Without its kind or its namespace nothing can be made.
            Thing::Template(_) if self.down.contains(&Thing::Definition) => return,
            Thing::Template("default") | Thing::Secret("shop") if self.down.contains(&Thing::Shop) => true,
            Thing::Template(name) => self.applied(template_object(&self.users, name)).await,
            Thing::Secret(namespace) => self.applied(secret_object(namespace)).await,
            Thing::Tenant(name) => self.tenant_back(name).await,
            Thing::Definition => self.definition_back().await,
            Thing::Shop => self.shop_back().await,
        };
        if back {
            self.tell(format!("{thing:?} is back"));
            self.down.remove(&thing);
        }
    }

    /// Applies an object, unless one of its name is still going.
    async fn applied(&self, object: serde_json::Value) -> bool {
        if self.world.cluster.get(&id(&object)).await.as_ref().is_some_and(is_going) {
            return false;
        }
        self.world.cluster.apply(&object).await;
        true
    }

    /// A tenant goes when nothing is published with it any more: its routes move to another first.
    async fn tenant_back(&mut self, name: &'static str) -> bool {
        let object = tenant_object(&self.users, name);
        if !self.world.cluster.get(&id(&object)).await.as_ref().is_some_and(is_going) {
            return self.applied(object).await;
        }
        let of_tenant = self.users.routes.iter().filter(|(_, asked)| asked.tenant == name);
        let numbers: Vec<usize> = of_tenant.map(|(number, _)| *number).collect();
        for number in numbers {
            self.tell(format!("r{number} goes, so that tenant {name} can"));
            self.forget_route(number);
            self.world.cluster.delete(&format!("HTTPRoute/default/r{number}")).await;
        }
        false
    }

    async fn definition_back(&mut self) -> bool {
        let name = format!("CustomResourceDefinition/{TEMPLATES_DEFINITION}");
        if self.world.cluster.get(&name).await.as_ref().is_some_and(is_going) {
            return false;
        }
        self.world.cluster.replace_definition(&self.definition).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        for object in standing(&self.users).iter().filter(|one| one["kind"] == "CloudflareZeroTrustTemplate") {
            if object["metadata"]["namespace"] != "shop" || !self.down.contains(&Thing::Shop) {
                self.world.cluster.apply(object).await;
            }
        }
        self.down.retain(|thing| !matches!(thing, Thing::Template(_)));
        true
    }

    async fn shop_back(&mut self) -> bool {
        if self.world.cluster.get("Namespace/shop").await.is_some() || self.down.contains(&Thing::Definition) {
            return false;
        }
        self.world.cluster.apply(&m::namespace("shop")).await;
        for object in standing(&self.users).iter().filter(|one| one["metadata"]["namespace"] == "shop") {
            self.world.cluster.apply(object).await;
        }
        self.down.retain(|thing| !matches!(thing, Thing::Template("default") | Thing::Secret("shop")));
        true
    }

    /// Lets go what the budget holds, as its tenant asks for it.
    async fn release_held(&mut self) {
        for tenant in self.world.cluster.list("CloudflareZeroTrustTenant").await {
            let stalled = condition(&tenant, "Stalled").filter(|one| one["status"] == "True");
            let message = stalled.and_then(|one| one["message"].as_str()).unwrap_or_default();
            let Some((_, rest)) = message.split_once("release-deletions: \"") else { continue };
            let digest = rest.split('"').next().unwrap_or_default().to_owned();
            self.tell(format!("held deletions of {} are released", id(&tenant)));
            self.world.cluster.annotate(&id(&tenant), "portolan.dev/release-deletions", &digest).await;
        }
    }

    /// The other cluster withdraws everything and stops.
    pub(super) async fn other_cluster_ends(&mut self) {
        let Some(other) = self.other.take() else { return };
        for route in other.cluster.list("HTTPRoute").await {
            other.cluster.delete(&id(&route)).await;
        }
        let gone = async |other: &crate::World| other.cluster.list("HTTPRoute").await.is_empty();
        let ended = other.holds_within(Duration::from_secs(7200), gone).await;
        other.crash().await;
        assert!(ended, "the other cluster withdraws its routes\n{}", self.story().await);
    }
}
