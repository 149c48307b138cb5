//! Figures of one or two servers → one JSON document. A ratio over 1 means that the embedded server did better.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::timing::{Figures, rounded};
use super::world::{BenchWorld, by_call};

/// Calls and time since the last look at a world.
pub(super) fn spent(world: &BenchWorld, began: Instant) -> Value {
    let requests = world.simulator().take_requests();
    json!({
        "calls": requests.len(),
        "writes": requests.iter().filter(|request| request.is_write()).count(),
        "refused": requests.iter().filter(|request| request.status == 429).count(),
        "by_call": by_call(&requests),
        "wall_s": rounded(began.elapsed().as_secs_f64()),
        "rss_mib": super::memory::resident_mib(&[std::process::id()]).map(rounded),
    })
}

/// The document: setting, embedded, peer, ratio.
pub(super) fn render(setting: &Value, embedded: &Figures, peer: Option<&Figures>) -> Value {
    let mut report = setting.clone();
    report["embedded"] = Value::Object(embedded.values().clone());
    if let Some(peer) = peer {
        report["peer"] = Value::Object(peer.values().clone());
        report["ratio"] = Value::Object(ratios(embedded.values(), peer.values()));
    }
    report
}

fn ratios(embedded: &Map<String, Value>, peer: &Map<String, Value>) -> Map<String, Value> {
    let both = embedded.iter().filter_map(|(name, own)| Some((name, own, peer.get(name)?)));
    both.filter_map(|(name, own, other)| Some((name.clone(), ratio(own, other)?))).collect()
}

/// How many times better `own` is: rates up, durations and memory down.
fn ratio(own: &Value, other: &Value) -> Option<Value> {
    if let (Some(own), Some(other)) = (own.as_f64(), other.as_f64()) {
        return divided(other, own);
    }
    let mut ratios = Map::new();
    for (name, value) in own.as_object()? {
        let (Some(own), Some(other)) = (value.as_f64(), other[name].as_f64()) else {
            continue;
        };
        let better = match name.as_str() {
            "per_second" => divided(own, other),
            name if name.ends_with("_ms") => divided(other, own),
            _ => None,
        };
        ratios.extend(better.map(|better| (name.clone(), better)));
    }
    Some(Value::Object(ratios))
}

fn divided(above: f64, below: f64) -> Option<Value> {
    (below > 0.0).then(|| json!(rounded(above / below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_over_one_is_always_better_for_the_embedded_server() {
        let own = json!({"per_second": 200.0, "p50_ms": 1.0, "count": 5});
        let other = json!({"per_second": 100.0, "p50_ms": 4.0, "count": 5});

        assert_eq!(ratio(&own, &other), Some(json!({"per_second": 2.0, "p50_ms": 4.0})));
        assert_eq!(ratio(&json!(100.0), &json!(450.0)), Some(json!(4.5)));
    }

    #[test]
    fn a_figure_that_one_server_lacks_has_no_ratio() {
        assert_eq!(ratio(&json!(null), &json!(450.0)), None);
    }
}
