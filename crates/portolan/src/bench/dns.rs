//! `bench dns`: many records in one zone, from cold and live, with and without the API's limit; idle latency; memory.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::processes::{self, Load};
use super::report::spent;
use super::timing::{milliseconds, quantile, rounded};
use super::world::{ApiPace, BenchWorld, QUIET, record_name};

const ZONE: &str = "example.com";
/// As many clients as the live scenario has.
const CLIENTS: usize = 8;
/// How long the API takes in the creation scenarios.
const LATENCY: Duration = Duration::from_millis(150);
/// How long the API takes when idle latency is measured, and how many objects are then created one by one.
const IDLE_LATENCY: Duration = Duration::from_millis(20);
const IDLE_COUNT: usize = 40;
/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(900);

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DnsPart {
    /// Controllers start with all objects present
    Cold,
    /// Eight clients create objects while the controllers run
    Live,
    /// Single creations with nothing else to do
    Idle,
    /// `portolan run` as a process of its own: resident memory
    Memory,
}

/// Runs the parts and reports them.
pub(crate) async fn run(records: usize, parts: &[DnsPart]) -> anyhow::Result<Value> {
    let mut report = Map::new();
    report.insert("bench".to_owned(), json!("dns"));
    report.insert("version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    report.insert("cores".to_owned(), json!(std::thread::available_parallelism().map_or(0, usize::from)));
    report.insert("records".to_owned(), json!(records));
    report.insert("api_latency_ms".to_owned(), json!(LATENCY.as_millis()));
    let mut add = |name: &str, value: Value| {
        eprintln!("dns: {name} {value}");
        report.insert(name.to_owned(), value);
    };
    for part in parts {
        match part {
            DnsPart::Cold => {
                add("cold", cold(records, ApiPace::Unlimited).await?);
                add("cold_rate_limited", cold(records, ApiPace::Limited).await?);
            }
            DnsPart::Live => {
                add("live", live(records, ApiPace::Unlimited).await?);
                add("live_rate_limited", live(records, ApiPace::Limited).await?);
            }
            DnsPart::Idle => add("idle", idle().await?),
            DnsPart::Memory => add("memory", processes::memory(Load::Records, &[5_000, 10_000]).await?),
        }
    }
    Ok(Value::Object(report))
}

/// All objects are there when the controllers start; then the controllers start once more on the settled world.
async fn cold(records: usize, pace: ApiPace) -> anyhow::Result<Value> {
    let mut world = BenchWorld::with_zones(&[ZONE.to_owned()], LATENCY, pace).await?;
    world.create_records(ZONE, 0..records, CLIENTS).await?;
    let began = Instant::now();
    world.start_controllers();
    world.settled(records, PATIENCE).await?;
    let mut figures = spent(&world, began);
    world.stop_controllers();
    let began = Instant::now();
    world.start_controllers();
    world.settled(records, PATIENCE).await?;
    figures["restart"] = spent(&world, began);
    Ok(figures)
}

/// Objects are created while the controllers run.
async fn live(records: usize, pace: ApiPace) -> anyhow::Result<Value> {
    let mut world = BenchWorld::with_zones(&[ZONE.to_owned()], LATENCY, pace).await?;
    world.start_controllers();
    world.settled(0, PATIENCE).await?;
    world.simulator().take_requests();
    let began = Instant::now();
    world.create_records(ZONE, 0..records, CLIENTS).await?;
    let created = began.elapsed();
    world.settled(records, PATIENCE).await?;
    let mut figures = spent(&world, began);
    figures["creating_s"] = json!(rounded(created.as_secs_f64()));
    Ok(figures)
}

/// One object at a time, with pauses: how long until its request is at the API.
async fn idle() -> anyhow::Result<Value> {
    let mut world = BenchWorld::with_zones(&[ZONE.to_owned()], IDLE_LATENCY, ApiPace::Unlimited).await?;
    world.start_controllers();
    world.settled(0, PATIENCE).await?;
    let mut sent = Vec::new();
    for number in 0..IDLE_COUNT {
        sent.push((record_name(ZONE, number), Instant::now()));
        world.create_record(ZONE, number).await?;
        tokio::time::sleep(QUIET).await;
    }
    world.settled(IDLE_COUNT, PATIENCE).await?;
    let waited = sent.iter().filter_map(|(name, at)| Some(world.written_at(name)?.duration_since(*at)));
    let mut waited: Vec<Duration> = waited.collect();
    waited.sort_unstable();
    Ok(json!({
        "count": waited.len(),
        "p50_ms": milliseconds(quantile(&waited, 50)),
        "p99_ms": milliseconds(quantile(&waited, 99)),
        "max_ms": milliseconds(quantile(&waited, 100)),
    }))
}
