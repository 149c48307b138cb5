//! A published name as tests look at it: what stands for it at Cloudflare, in the cluster, and at the edge.

use portolan_cloudflare_sim::{EdgeDecision, EdgeRequest};
use serde_json::Value;

use super::manifests::PREFIX;
use super::{OPERATOR_NAMESPACE, TUNNEL, rules};
use crate::world::World;

/// A hostname in a world.
pub struct WorldName<'a> {
    world: &'a World,
    hostname: &'a str,
}

/// What tests ask a world in which routes are published.
pub trait RouteWorld {
    /// A hostname, to be looked at.
    fn name<'a>(&'a self, hostname: &'a str) -> WorldName<'a>;

    /// The value of one of our annotations on a route of `default`.
    fn output(&self, route: &str, suffix: &str) -> impl Future<Output = Option<String>>;

    /// The state of a route of `default`, as it is kept.
    fn state_of(&self, route: &str) -> impl Future<Output = Option<Value>>;

    /// All tasks that are there.
    fn tasks(&self) -> impl Future<Output = Vec<Value>>;

    /// The Secret with a route's service token, as text.
    fn token_secret(&self, route: &str) -> impl Future<Output = Option<(String, String)>>;
}

impl RouteWorld for World {
    fn name<'a>(&'a self, hostname: &'a str) -> WorldName<'a> {
        WorldName { world: self, hostname }
    }

    async fn output(&self, route: &str, suffix: &str) -> Option<String> {
        let route = self.cluster.get(&route_id(route)).await?;
        route["metadata"]["annotations"][format!("{PREFIX}{suffix}")].as_str().map(str::to_owned)
    }

    async fn state_of(&self, route: &str) -> Option<Value> {
        self.cluster.get(&format!("ConfigMap/{OPERATOR_NAMESPACE}/cfzt-{}", state_name(route))).await
    }

    async fn tasks(&self) -> Vec<Value> {
        self.cluster.list("CloudflareTask").await
    }

    async fn token_secret(&self, route: &str) -> Option<(String, String)> {
        let place = in_default(route);
        let (namespace, _) = place.split_once('/').unwrap_or_default();
        // Secrets of older operators keep the name and the keys that they have.
        let secret = match self.output(route, "serviceTokenSecretName").await {
            Some(name) => self.cluster.get(&format!("Secret/{namespace}/{name}")).await?,
            None => self.cluster.get(&format!("Secret/{place}-cfzt-service-token")).await?,
        };
        let value =
            |keys: [&str; 2]| keys.iter().map(|key| decoded(&secret["data"][*key])).find(|text| !text.is_empty());
        Some((
            value(["client_id", "CF_ACCESS_CLIENT_ID"]).unwrap_or_default(),
            value(["client_secret", "CF_ACCESS_CLIENT_SECRET"]).unwrap_or_default(),
        ))
    }
}

fn in_default(route: &str) -> String {
    if route.contains('/') { route.to_owned() } else { format!("default/{route}") }
}

fn route_id(route: &str) -> String {
    format!("HTTPRoute/{}", in_default(route))
}

fn state_name(route: &str) -> String {
    in_default(route).replace('/', "-")
}

fn decoded(value: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

impl WorldName<'_> {
    /// The rules for it in the world's tunnel.
    pub fn rules(&self) -> Vec<Value> {
        rules(self.world, TUNNEL, self.hostname)
    }

    /// Its one rule.
    pub fn rule(&self) -> Value {
        let mut all = self.rules();
        assert_eq!(all.len(), 1, "one rule for {}: {all:#?}", self.hostname);
        all.remove(0)
    }

    /// Its records.
    pub fn records(&self) -> Vec<Value> {
        self.world.cloudflare.all("dns_records").into_iter().filter(|one| one["name"] == self.hostname).collect()
    }

    /// Its one record.
    pub fn record(&self) -> Value {
        let mut all = self.records();
        assert_eq!(all.len(), 1, "one record for {}: {all:#?}", self.hostname);
        all.remove(0)
    }

    /// The Access applications for it.
    pub fn apps(&self) -> Vec<Value> {
        self.world.cloudflare.all("access_apps").into_iter().filter(|one| one["domain"] == self.hostname).collect()
    }

    /// The one Access application for it.
    pub fn app(&self) -> Value {
        let mut all = self.apps();
        assert_eq!(all.len(), 1, "one application for {}: {all:#?}", self.hostname);
        all.remove(0)
    }

    /// Whether anything stands for it.
    pub fn is_published(&self) -> bool {
        !self.rules().is_empty() || !self.records().is_empty()
    }

    /// Whether nothing at all stands for it.
    pub fn is_gone(&self) -> bool {
        !self.is_published() && self.apps().is_empty()
    }

    /// What the edge does with a visitor who shows these headers.
    pub fn visited(&self, headers: &[(&str, &str)]) -> EdgeDecision {
        self.world.cloudflare.simulator.decide(&EdgeRequest::get(self.hostname, "/", headers))
    }

    /// Whether a visitor with these headers gets to a service.
    pub fn opens(&self, headers: &[(&str, &str)]) -> bool {
        self.visited(headers).is_served()
    }

    /// Whether anybody gets to a service.
    pub fn is_public(&self) -> bool {
        self.opens(&[])
    }

    /// Whether the service token in a route's Secret gets to a service.
    pub async fn opens_with_token_of(&self, route: &str) -> bool {
        let Some((id, secret)) = self.world.token_secret(route).await else { return false };
        self.opens(&[("CF-Access-Client-Id", &id), ("CF-Access-Client-Secret", &secret)])
    }

    /// Whether somebody with this address gets to a service.
    pub fn lets_in(&self, email: &str) -> bool {
        self.opens(&[("Cf-Access-Test-Email", email)])
    }
}
