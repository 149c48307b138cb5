//! Metrics in the Prometheus text form → samples with their labels.

use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(2);

/// One line of a metrics text.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample {
    /// Labels by name.
    pub(crate) labels: BTreeMap<String, String>,
    /// The value, without what is behind the point.
    pub(crate) value: i64,
}

/// All samples whose name ends so.
pub(crate) fn ending(text: &str, name: &str) -> Vec<Sample> {
    text.lines().filter_map(|line| sample(line, name)).collect()
}

fn sample(line: &str, wanted: &str) -> Option<Sample> {
    let (name, rest) = line.split_once('{')?;
    if !name.ends_with(wanted) {
        return None;
    }
    let (labels, value) = rest.rsplit_once('}')?;
    let value: f64 = value.split_whitespace().next()?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "counters and gauges of ours are whole numbers")]
    Some(Sample { labels: pairs(labels), value: value as i64 })
}

/// `a="b",c="d"`; values of ours hold no quotes.
fn pairs(labels: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    let mut rest = labels;
    while let Some((name, after)) = rest.split_once("=\"") {
        let Some((value, further)) = after.split_once('"') else { break };
        pairs.insert(name.trim_start_matches(',').to_owned(), value.to_owned());
        rest = further;
    }
    pairs
}

/// Requests left in the API's window, by credential. Nothing where the metrics cannot be read: who asks does without.
pub(crate) async fn budgets(url: &str) -> Option<BTreeMap<String, i64>> {
    let client = reqwest::Client::builder().timeout(TIMEOUT).build().ok()?;
    let text = client.get(url).send().await.ok()?.error_for_status().ok()?.text().await.ok()?;
    let named = |mut sample: Sample| Some((sample.labels.remove("credential")?, sample.value));
    let budgets: BTreeMap<String, i64> = ending(&text, "budget_left").into_iter().filter_map(named).collect();
    (!budgets.is_empty()).then_some(budgets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_the_end_of_their_name() {
        let text =
            "# HELP x\nportolan_requests_total{template=\"/zones/{zone_id}\",method=\"GET\"} 12\nother{a=\"b\"} 3\n";

        let found = ending(text, "requests_total");

        assert_eq!(found.len(), 1);
        assert_eq!((found[0].labels["template"].as_str(), found[0].value), ("/zones/{zone_id}", 12));
    }
}
