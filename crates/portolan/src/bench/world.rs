//! API server, simulator and controllers in this process, for measuring the three together.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use futures::future::BoxFuture;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_apiserver::store::Range;
use portolan_apiserver::{ApiServer, Config};
use portolan_cloudflare as cloudflare;
use portolan_cloudflare_api::{Limit, Transport, TransportError};
use portolan_cloudflare_sim::{Dropped, Options, RecordedRequest, Simulator};
use portolan_core::OwnerId;
use portolan_engine::{Drift, JobDefinition, Provisions};
use portolan_zerotrust as zerotrust;
use serde_json::{Value, json};

use crate::definitions::{self, GATEWAY_GROUP};
use crate::health_view::GROUP;
use crate::operator::{self, Operator};
use crate::server::Server;

/// The account that everything belongs to.
pub(super) const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
/// The tunnel of names that are published through one.
pub(super) const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
/// Where tasks are stored.
const TASKS: &str = "cloudflaretasks.cfzt.cloudflare.com";
/// Longer than a document's writes keep their distance after the last one: what comes then comes to an idle operator.
pub(super) const QUIET: Duration = Duration::from_millis(2_500);
/// How often it is looked whether everything is done.
const LOOK: Duration = Duration::from_millis(10);

/// What limits the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiPace {
    /// Cloudflare's own limit.
    Limited,
    /// None at all.
    Unlimited,
}

impl ApiPace {
    const COUNT: u32 = 1200;
    const WINDOW: Duration = Duration::from_secs(300);
}

/// All three.
pub(super) struct BenchWorld {
    job: &'static JobDefinition,
    client: kube::Client,
    simulator: Simulator,
    transport: Arc<Tap>,
    operator: Option<Operator>,
    pace: ApiPace,
    api: ApiServer,
}

impl BenchWorld {
    /// An API server and a simulator with an account; no objects and no controllers yet.
    async fn start(job: &'static JobDefinition, latency: Duration, pace: ApiPace) -> anyhow::Result<Self> {
        let rate_limit = (pace == ApiPace::Limited).then_some((ApiPace::COUNT, ApiPace::WINDOW));
        let simulator = Simulator::new(Options { latency, rate_limit, ..Options::default() });
        simulator.add_account_with_id(ACCOUNT, "Bench");
        let api = ApiServer::open(Config::default()).await.context("starting the API server")?;
        let client = kube::Client::new(api.service(), "default");
        let server = Server::of_client(client.clone(), "in process");
        definitions::install(&server).await.map_err(|failure| anyhow!("{failure}"))?;
        definitions::install_routes(&server).await.map_err(|failure| anyhow!("{failure}"))?;
        let transport = Arc::new(Tap { simulator: simulator.clone(), writes: Mutex::default() });
        Ok(Self { job, client, simulator, transport, operator: None, pace, api })
    }

    /// One with zones, and objects for them.
    pub(super) async fn with_zones(zones: &[String], latency: Duration, pace: ApiPace) -> anyhow::Result<Self> {
        let world = Self::start(&cloudflare::JOB, latency, pace).await?;
        world.add_zones(zones)?;
        world.prepare(zones).await?;
        Ok(world)
    }

    /// One with a zone and a tunnel, and a tenant for them.
    pub(super) async fn with_tenant(zone: &str, latency: Duration, pace: ApiPace) -> anyhow::Result<Self> {
        let world = Self::start(&zerotrust::JOB, latency, pace).await?;
        world.add_zones(&[zone.to_owned()])?;
        let tunnel = json!({"id": TUNNEL, "name": "bench", "config_src": "cloudflare"});
        world.simulator.put("cfd_tunnel", ACCOUNT, tunnel).map_err(|error| anyhow!("making the tunnel: {error}"))?;
        let namespace = json!({"metadata": {"name": zerotrust::NAMESPACE}});
        world.create("", "v1", "Namespace", None, namespace).await?;
        let secret = json!({"metadata": {"name": "token"}, "stringData": {"token": "bench"}});
        world.create("", "v1", "Secret", Some("default"), secret).await?;
        let tenant = json!({"metadata": {"name": "bench"}, "spec": tenant_spec()});
        world.create(zerotrust::model::GROUP, "v1alpha1", "CloudflareZeroTrustTenant", Some("default"), tenant).await?;
        Ok(world)
    }

    fn add_zones(&self, zones: &[String]) -> anyhow::Result<()> {
        for zone in zones {
            let made = self.simulator.add_zone(zone, ACCOUNT, "enterprise");
            made.map_err(|error| anyhow!("making zone {zone}: {error}"))?;
        }
        Ok(())
    }

    async fn prepare(&self, zones: &[String]) -> anyhow::Result<()> {
        let namespace = json!({"metadata": {"name": operator::NAMESPACE}});
        self.create("", "v1", "Namespace", None, namespace).await?;
        let secret = json!({"metadata": {"name": "token"}, "stringData": {"CLOUDFLARE_API_TOKEN": "bench"}});
        self.create("", "v1", "Secret", Some(operator::NAMESPACE), secret).await?;
        let spec =
            json!({"accountId": ACCOUNT, "authType": "apiToken", "isDefault": true, "secretRef": {"name": "token"}});
        self.create_ours("CloudflareCredentials", None, "main", spec).await?;
        for zone in zones {
            self.create_ours("CloudflareDomain", None, zone, json!({"domain": zone})).await?;
        }
        Ok(())
    }

    /// Starts the controllers.
    pub(super) fn start_controllers(&mut self) {
        let mut options =
            operator::OperatorOptions::new(OwnerId::derive("bench"), "http://simulator.invalid/client/v4");
        options.jobs = vec![self.job];
        let mut settings = zerotrust::Settings::default();
        settings.routes.drift = Drift::Off;
        options.provisions = Provisions::default().with(Drift::Off).with(settings);
        if self.pace == ApiPace::Unlimited {
            options.api.limit = Limit { quota: 1_000_000, window: ApiPace::WINDOW };
        }
        self.operator = Some(Operator::start_with(self.client.clone(), options, self.transport.clone()));
    }

    /// Stops them at once.
    pub(super) fn stop_controllers(&mut self) {
        self.operator = None;
    }

    /// Creates records by several clients at once.
    pub(super) async fn create_records(
        &self,
        zone: &str,
        numbers: std::ops::Range<usize>,
        clients: usize,
    ) -> anyhow::Result<()> {
        each(numbers, clients, async |number| self.create_record(zone, number).await).await
    }

    /// Creates routes by several clients at once.
    pub(super) async fn create_routes(
        &self,
        zone: &str,
        numbers: std::ops::Range<usize>,
        clients: usize,
        access: Protected,
    ) -> anyhow::Result<()> {
        each(numbers, clients, async |number| self.create_route(zone, number, access).await).await
    }

    /// Creates one route.
    pub(super) async fn create_route(&self, zone: &str, number: usize, access: Protected) -> anyhow::Result<()> {
        let route = route(zone, number, access);
        self.create(GATEWAY_GROUP, "v1", "HTTPRoute", Some("default"), route).await
    }

    /// Creates one record.
    pub(super) async fn create_record(&self, zone: &str, number: usize) -> anyhow::Result<()> {
        let spec = record_spec(zone, number);
        self.create_ours("DNSRecord", Some("default"), &record_object(zone, number), spec).await
    }

    /// Waits until the zones hold `count` records and nothing is under way.
    pub(super) async fn settled(&self, count: usize, within: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + within;
        while Instant::now() < until {
            if self.is_at_rest() && self.record_count() == count && self.is_at_rest() {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("only {} of {count} records are there after {} s", self.record_count(), within.as_secs())
    }

    /// Whether nothing is under way: no object at work, no task left.
    fn is_at_rest(&self) -> bool {
        let range = Range { collection: TASKS, prefix: "", after: "", at: None };
        let tasks = self.api.store().list(&range).map_or(0, |listing| listing.objects.len());
        tasks == 0 && self.operator.as_ref().map_or(0, Operator::busy) == 0
    }

    fn record_count(&self) -> usize {
        let zones = self.simulator.objects("zones", "");
        zones
            .iter()
            .map(|zone| self.simulator.objects("dns_records", zone["id"].as_str().unwrap_or_default()).len())
            .sum()
    }

    /// The controllers, once they were started.
    pub(super) fn operator(&self) -> anyhow::Result<&Operator> {
        self.operator.as_ref().ok_or_else(|| anyhow!("the controllers were not started"))
    }

    /// The simulator.
    pub(super) fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// When a name was first written at the simulator.
    pub(super) fn written_at(&self, name: &str) -> Option<Instant> {
        let writes = self.transport.writes.lock().expect("nothing panics while it is held");
        writes.iter().find(|write| contains(&write.body, name)).map(|write| write.sent)
    }

    /// When the last write of a name was answered.
    pub(super) fn answered_at(&self, name: &str) -> Option<Instant> {
        let writes = self.transport.writes.lock().expect("nothing panics while it is held");
        writes.iter().filter(|write| contains(&write.body, name)).filter_map(|write| write.answered).max()
    }

    async fn create_ours(
        &self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        mut spec: Value,
    ) -> anyhow::Result<()> {
        if !matches!(kind, "CloudflareCredentials" | "CloudflareDomain") {
            spec["cloudflare"] = json!({});
        }
        self.create(GROUP, "v1alpha2", kind, namespace, json!({"metadata": {"name": name}, "spec": spec})).await
    }

    async fn create(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
        mut object: Value,
    ) -> anyhow::Result<()> {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let plural = format!("{}s", kind.to_lowercase()).replace("credentialss", "credentials");
        let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
        object["apiVersion"] = json!(resource.api_version);
        object["kind"] = json!(kind);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let object: DynamicObject = serde_json::from_value(object).context("an object")?;
        api.create(&PostParams::default(), &object).await.with_context(|| format!("creating a {kind}"))?;
        Ok(())
    }
}

/// Does something for each number, so many at once.
async fn each(
    numbers: std::ops::Range<usize>,
    clients: usize,
    work: impl AsyncFn(usize) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let next = std::sync::atomic::AtomicUsize::new(numbers.start);
    let client = async || {
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if number >= numbers.end {
                return anyhow::Ok(());
            }
            work(number).await?;
        }
    };
    futures::future::try_join_all((0..clients).map(|_| client())).await?;
    Ok(())
}

/// Whether names are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protected {
    /// They are open.
    Open,
    /// By an application with a list of e-mail addresses.
    Emails,
}

/// The spec of the tenant.
pub(super) fn tenant_spec() -> Value {
    json!({
        "accountId": ACCOUNT, "tunnelId": TUNNEL, "credentialRef": {"name": "token"},
        "defaults": {"originService": "http://traefik.traefik.svc:80"},
    })
}

/// A route that asks to be published.
pub(super) fn route(zone: &str, number: usize, access: Protected) -> Value {
    let mut annotations = json!({
        "cfzt.cloudflare.com/enabled": "true", "cfzt.cloudflare.com/hostname": record_name(zone, number),
    });
    if access == Protected::Emails {
        annotations["cfzt.cloudflare.com/access.enabled"] = json!("true");
        let addresses = format!("owner{number}@example.com,team{number}@example.com");
        annotations["cfzt.cloudflare.com/access.allowEmails"] = json!(addresses);
    }
    json!({"metadata": {"name": format!("r{number:05}"), "annotations": annotations}, "spec": {}})
}

/// The name at Cloudflare of a record.
pub(super) fn record_name(zone: &str, number: usize) -> String {
    format!("r{number:05}.{zone}")
}

/// The name of a record's object.
fn record_object(zone: &str, number: usize) -> String {
    format!("r{number:05}-{}", zone.replace('.', "-"))
}

/// The spec of a record.
pub(super) fn record_spec(zone: &str, number: usize) -> Value {
    let content = format!("10.{}.{}.{}", number / 62_500 % 250, number / 250 % 250, number % 250 + 1);
    json!({"name": record_name(zone, number), "type": "A", "content": content})
}

/// How many requests of each kind: `GET /zones/…/dns_records`.
pub(super) fn by_call(requests: &[RecordedRequest]) -> Value {
    let mut calls = std::collections::BTreeMap::<String, usize>::new();
    for request in requests {
        *calls.entry(format!("{} {}", request.method, template(request.route()))).or_default() += 1;
    }
    json!(calls)
}

/// A path with its ids left out.
fn template(path: &str) -> String {
    let is_id = |part: &str| part.len() >= 32 && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    path.split('/').map(|part| if is_id(part) { "{id}" } else { part }).collect::<Vec<_>>().join("/")
}

fn contains(body: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    body.windows(quoted.len()).any(|window| window == quoted.as_bytes())
}

/// Sends requests into the simulator, and remembers when each write was sent and answered.
struct Tap {
    simulator: Simulator,
    writes: Mutex<Vec<TimedWrite>>,
}

struct TimedWrite {
    sent: Instant,
    answered: Option<Instant>,
    body: Bytes,
}

impl Tap {
    /// Notes a write, and says where.
    fn note(&self, request: &http::Request<Bytes>) -> Option<usize> {
        let mut writes = self.writes.lock().expect("nothing panics while it is held");
        let write = TimedWrite { sent: Instant::now(), answered: None, body: request.body().clone() };
        (request.method() != http::Method::GET).then(|| {
            writes.push(write);
            writes.len() - 1
        })
    }
}

impl Transport for Tap {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let place = self.note(&request);
            let answer = self.simulator.answer(request).await;
            if let Some(place) = place {
                self.writes.lock().expect("nothing panics while it is held")[place].answered = Some(Instant::now());
            }
            answer.map_err(|dropped| TransportError { sent: dropped != Dropped::Refused, message: dropped.to_string() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_left_out_of_paths() {
        assert_eq!(template("/zones/0123456789abcdef0123456789abcdef/dns_records"), "/zones/{id}/dns_records");
        assert_eq!(template("/accounts"), "/accounts");
    }

    #[test]
    fn every_record_has_a_name_and_an_address_of_its_own() {
        let specs: std::collections::BTreeSet<String> =
            (0..70_000).map(|number| record_spec("example.com", number)["content"].to_string()).collect();

        assert_eq!(specs.len(), 70_000);
    }
}
