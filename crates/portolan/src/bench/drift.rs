//! `bench drift`: one pass over many zones, when nothing differs and when something does.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::timing::rounded;
use super::world::{ApiPace, BenchWorld, by_call};

/// Records that somebody edits before the second pass.
const EDITED: usize = 10;
const PATIENCE: Duration = Duration::from_secs(900);

/// Makes `zones` × `records`, and passes over them.
pub(crate) async fn run(zones: usize, records: usize) -> anyhow::Result<Value> {
    let names: Vec<String> = (0..zones).map(|number| format!("zone-{number:03}.example")).collect();
    let mut world = BenchWorld::with_zones(&names, Duration::ZERO, ApiPace::Unlimited).await?;
    for name in &names {
        world.create_records(name, 0..records, 8).await?;
    }
    world.start_controllers();
    world.settled(zones * records, PATIENCE).await?;
    world.simulator().take_requests();
    let settled = pass(&world, zones * records).await?;
    edit(&world);
    let edited = pass(&world, zones * records).await?;
    Ok(json!({
        "bench": "drift",
        "version": env!("CARGO_PKG_VERSION"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "zones": zones,
        "records": zones * records,
        "settled": settled,
        "edited": edited,
        "edited_records": EDITED,
    }))
}

async fn pass(world: &BenchWorld, count: usize) -> anyhow::Result<Value> {
    let began = Instant::now();
    let job = world.operator()?.job(portolan_cloudflare::JOB.sheet.name).context("the job does not run")?;
    let passed = job.drift_pass().await;
    let looked = began.elapsed();
    world.settled(count, PATIENCE).await?;
    let requests = world.simulator().take_requests();
    Ok(json!({
        "calls": requests.len(),
        "writes": requests.iter().filter(|request| request.is_write()).count(),
        "by_call": by_call(&requests),
        "drifted": passed.drifted,
        "pass_s": rounded(looked.as_secs_f64()),
        "repaired_s": rounded(began.elapsed().as_secs_f64()),
    }))
}

/// Somebody changes records in the dashboard.
fn edit(world: &BenchWorld) {
    let zones = world.simulator().objects("zones", "");
    for zone in zones.iter().take(EDITED) {
        let records = world.simulator().objects("dns_records", zone["id"].as_str().unwrap_or_default());
        if let Some(id) = records.first().and_then(|record| record["id"].as_str()) {
            world.simulator().edit("dns_records", id, |record| record["content"] = json!("192.0.2.99"));
        }
    }
}
