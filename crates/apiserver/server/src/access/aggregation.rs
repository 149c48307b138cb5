//! Follows `ClusterRole`s and writes into the aggregated ones what their parts allow.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use portolan_rbac::aggregation::aggregated_rules;
use serde_json::{Value, json};

use crate::api::Api;
use crate::controllers;
use crate::registry::Resource;
use crate::request::Query;
use crate::store::{Compacted, Event, EventKind, Range, StoredObject, Watch};

const MANAGER: &str = "clusterrole-aggregation-controller";
/// Events that are read at once.
const BATCH: usize = 1024;

/// The cluster's roles as they were last seen.
pub(crate) struct Aggregation {
    api: Arc<Api>,
    resource: Arc<Resource>,
    roles: BTreeMap<String, Value>,
    watch: Watch,
}

impl Aggregation {
    /// Brings every aggregated role up to date, and is ready to follow.
    pub(crate) async fn start(api: &Arc<Api>) -> Option<Self> {
        let resource = api.registry().find("rbac.authorization.k8s.io", "v1", "clusterroles")?.clone();
        let (roles, watch) = read(api, &resource).ok()?;
        let mut aggregation = Self { api: api.clone(), resource, roles, watch };
        aggregation.settle().await;
        Some(aggregation)
    }

    /// Follows for good.
    pub(crate) async fn run(mut self) {
        while self.watch.changed().await {
            self.catch_up();
            self.settle().await;
        }
    }

    /// Takes note of what has happened meanwhile.
    fn catch_up(&mut self) {
        loop {
            match self.watch.ready(BATCH) {
                Ok((events, _)) => {
                    for event in &events {
                        self.see(event);
                    }
                    if events.len() < BATCH {
                        return;
                    }
                }
                // The history no longer reaches back.
                Err(_) => {
                    if let Ok((roles, watch)) = read(&self.api, &self.resource) {
                        (self.roles, self.watch) = (roles, watch);
                        return;
                    }
                }
            }
        }
    }

    fn see(&mut self, event: &Event) {
        let name = event.object.key.name().to_owned();
        match event.kind {
            EventKind::Deleted => self.roles.remove(&name),
            EventKind::Added | EventKind::Modified => {
                self.roles.insert(name, self.api.object(&self.resource, &event.object))
            }
        };
    }

    /// Writes until nothing differs. Roles may be parts of each other in a circle, which ends because rules are only
    /// gathered, and the parts of a part usually come later by name.
    async fn settle(&mut self) {
        for _ in 0..=self.roles.len() {
            let mut settled = true;
            let aggregated: Vec<String> = self
                .roles
                .iter()
                .filter(|(_, role)| !role["aggregationRule"].is_null())
                .map(|(n, _)| n.clone())
                .collect();
            for name in aggregated.iter().rev() {
                settled &= !self.aggregate(name).await;
            }
            if settled {
                return;
            }
        }
    }

    /// Writes one role if it differs; answers whether it did.
    async fn aggregate(&mut self, name: &str) -> bool {
        let Some(role) = self.roles.get(name) else { return false };
        let Some(rules) = aggregated_rules(role, self.roles.values()) else { return false };
        if let Err(error) = self.apply(name, &rules).await {
            tracing::warn!(name, error, "Could not write an aggregated role");
            return false;
        }
        if let Some(role) = self.roles.get_mut(name) {
            role["rules"] = rules;
        }
        true
    }

    async fn apply(&self, name: &str, rules: &Value) -> Result<(), String> {
        let mut call = controllers::call(&self.api, &self.resource, "", name);
        let mut config = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        });
        if rules.as_array().is_some_and(|rules| !rules.is_empty()) {
            config["rules"] = rules.clone();
        }
        "application/apply-patch+yaml".clone_into(&mut call.content_type);
        call.body = Bytes::from(config.to_string());
        call.query = Query::parse(&format!("fieldManager={MANAGER}&force=true"));
        match call.run(&Method::PATCH).await {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.message),
        }
    }
}

/// Every role by name, and a watch that goes on from there.
fn read(api: &Api, resource: &Resource) -> Result<(BTreeMap<String, Value>, Watch), Compacted> {
    let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
    let listing = api.store.list(&range)?;
    let named = |stored: &Arc<StoredObject>| (stored.key.name().to_owned(), api.object(resource, stored));
    Ok((listing.objects.iter().map(named).collect(), api.store.watch(&resource.collection, listing.version)?))
}
