//! `bench publish`: many annotated routes through one tunnel in one zone, open and protected, from cold and live, with and
//! without the API's limit; one route when idle; memory.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::processes::{self, Load};
use super::report::spent;
use super::timing::{milliseconds, quantile, rounded};
use super::world::{ApiPace, BenchWorld, Protected, QUIET, record_name};

const ZONE: &str = "example.com";
/// As many clients as the live scenario has.
const CLIENTS: usize = 8;
/// How long the API takes.
const LATENCY: Duration = Duration::from_millis(150);
/// How long the API takes when idle latency is measured, and how many routes are then published one by one.
const IDLE_LATENCY: Duration = Duration::from_millis(20);
const IDLE_COUNT: usize = 25;
/// How long a settled world is watched for calls.
const REST: Duration = Duration::from_secs(5);
/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(900);

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PublishPart {
    /// Open names: controllers start with all routes present
    Cold,
    /// Open names: eight clients create routes while the controllers run
    Live,
    /// Protected names, from cold and live
    Access,
    /// Single routes with nothing else to do
    Idle,
    /// `portolan run` as a process of its own: resident memory
    Memory,
}

/// Runs the parts and reports them.
pub(crate) async fn run(routes: usize, protected: usize, parts: &[PublishPart]) -> anyhow::Result<Value> {
    let mut report = Map::new();
    report.insert("bench".to_owned(), json!("publish"));
    report.insert("version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    report.insert("cores".to_owned(), json!(std::thread::available_parallelism().map_or(0, usize::from)));
    report.insert("routes".to_owned(), json!(routes));
    report.insert("protected_routes".to_owned(), json!(protected));
    report.insert("api_latency_ms".to_owned(), json!(LATENCY.as_millis()));
    let mut add = |name: &str, value: Value| {
        eprintln!("publish: {name} {value}");
        report.insert(name.to_owned(), value);
    };
    for part in parts {
        match part {
            PublishPart::Cold => {
                add("cold", cold(routes, Protected::Open, ApiPace::Unlimited).await?);
                add("cold_rate_limited", cold(routes, Protected::Open, ApiPace::Limited).await?);
            }
            PublishPart::Live => {
                add("live", live(routes, Protected::Open, ApiPace::Unlimited).await?);
                add("live_rate_limited", live(routes, Protected::Open, ApiPace::Limited).await?);
            }
            PublishPart::Access => {
                add("access_cold_rate_limited", cold(protected, Protected::Emails, ApiPace::Limited).await?);
                add("access_live_rate_limited", live(protected, Protected::Emails, ApiPace::Limited).await?);
            }
            PublishPart::Idle => {
                add("idle", idle(Protected::Open).await?);
                add("access_idle", idle(Protected::Emails).await?);
            }
            PublishPart::Memory => add("memory", processes::memory(Load::Routes, &[500, 1_000]).await?),
        }
    }
    Ok(Value::Object(report))
}

/// All routes are there when the controllers start; then they start once more on the settled world, and rest.
async fn cold(routes: usize, access: Protected, pace: ApiPace) -> anyhow::Result<Value> {
    let mut world = BenchWorld::with_tenant(ZONE, LATENCY, pace).await?;
    world.create_routes(ZONE, 0..routes, CLIENTS, access).await?;
    let began = Instant::now();
    world.start_controllers();
    world.settled(routes, PATIENCE).await?;
    let mut figures = spent(&world, began);
    let began = Instant::now();
    tokio::time::sleep(REST).await;
    figures["settled"] = spent(&world, began);
    world.stop_controllers();
    let began = Instant::now();
    world.start_controllers();
    world.settled(routes, PATIENCE).await?;
    figures["restart"] = spent(&world, began);
    Ok(figures)
}

/// Routes are created while the controllers run.
async fn live(routes: usize, access: Protected, pace: ApiPace) -> anyhow::Result<Value> {
    let mut world = BenchWorld::with_tenant(ZONE, LATENCY, pace).await?;
    world.start_controllers();
    world.settled(0, PATIENCE).await?;
    world.simulator().take_requests();
    let began = Instant::now();
    world.create_routes(ZONE, 0..routes, CLIENTS, access).await?;
    let created = began.elapsed();
    world.settled(routes, PATIENCE).await?;
    let mut figures = spent(&world, began);
    figures["creating_s"] = json!(rounded(created.as_secs_f64()));
    Ok(figures)
}

/// One route at a time, with pauses: calls, time until its first request is at the API, and until its name is live.
async fn idle(access: Protected) -> anyhow::Result<Value> {
    let mut world = BenchWorld::with_tenant(ZONE, IDLE_LATENCY, ApiPace::Unlimited).await?;
    world.start_controllers();
    world.create_route(ZONE, 0, access).await?;
    world.settled(1, PATIENCE).await?;
    world.simulator().take_requests();
    let (mut first, mut live) = (Vec::new(), Vec::new());
    for number in 1..=IDLE_COUNT {
        tokio::time::sleep(QUIET).await;
        let (name, began) = (record_name(ZONE, number), Instant::now());
        world.create_route(ZONE, number, access).await?;
        world.settled(number + 1, PATIENCE).await?;
        first.extend(world.written_at(&name).map(|at| at.duration_since(began)));
        live.extend(world.answered_at(&name).map(|at| at.duration_since(began)));
    }
    let calls = world.simulator().take_requests().len();
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
    let each = calls as f64 / IDLE_COUNT as f64;
    Ok(json!({
        "routes": IDLE_COUNT,
        "api_latency_ms": IDLE_LATENCY.as_millis(),
        "calls_per_route": rounded(each),
        "first_write": quantiles(first),
        "live": quantiles(live),
    }))
}

fn quantiles(mut durations: Vec<Duration>) -> Value {
    durations.sort_unstable();
    json!({
        "p50_ms": milliseconds(quantile(&durations, 50)),
        "p99_ms": milliseconds(quantile(&durations, 99)),
        "max_ms": milliseconds(quantile(&durations, 100)),
    })
}
