//! `bench drift`: one pass over many zones, when nothing differs and when something does.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::timing::rounded;
use super::world::{ApiPace, Arena, by_call};

/// Records that somebody edits before the second pass.
const EDITED: usize = 10;
const PATIENCE: Duration = Duration::from_secs(900);

/// Makes `zones` × `records`, and passes over them.
pub(crate) async fn run(zones: usize, records: usize) -> anyhow::Result<Value> {
    let names: Vec<String> = (0..zones).map(|number| format!("zone-{number:03}.example")).collect();
    let mut arena = Arena::with_zones(&names, Duration::ZERO, ApiPace::Unlimited).await?;
    for name in &names {
        arena.create_records(name, 0..records, 8).await?;
    }
    arena.start_controllers();
    arena.settled(zones * records, PATIENCE).await?;
    arena.simulator().take_requests();
    let settled = pass(&arena, zones * records).await?;
    edit(&arena);
    let edited = pass(&arena, zones * records).await?;
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

async fn pass(arena: &Arena, count: usize) -> anyhow::Result<Value> {
    let began = Instant::now();
    let job = arena.operator()?.job(portolan_cloudflare::JOB.sheet.name).context("the job does not run")?;
    let passed = job.drift_pass().await;
    let looked = began.elapsed();
    arena.settled(count, PATIENCE).await?;
    let requests = arena.simulator().take_requests();
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
fn edit(arena: &Arena) {
    let zones = arena.simulator().objects("zones", "");
    for zone in zones.iter().take(EDITED) {
        let records = arena.simulator().objects("dns_records", zone["id"].as_str().unwrap_or_default());
        if let Some(id) = records.first().and_then(|record| record["id"].as_str()) {
            arena.simulator().edit("dns_records", id, |record| record["content"] = json!("192.0.2.99"));
        }
    }
}
