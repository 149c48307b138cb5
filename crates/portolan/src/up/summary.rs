//! What `up` has to say once everything is Ready, or is not in time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::published::{Published, published};
use crate::colour::{Colours, Tone};
use crate::duration;
use crate::health_view::{Health, HealthView};
use crate::prometheus_text;

/// The facts of a summary.
pub(crate) struct Summary<'a> {
    pub(crate) objects: &'a [HealthView],
    /// The controllers' metrics as text.
    pub(crate) metrics: &'a str,
    pub(crate) took: Duration,
    /// Whether the Cloudflare API is simulated.
    pub(crate) is_simulated: bool,
}

impl Summary<'_> {
    /// What is published, and what it cost.
    pub(crate) fn render(&self, colours: Colours) -> String {
        let mut text = String::new();
        let published = published(self.objects);
        if !published.is_empty() {
            let place = if self.is_simulated { "the simulated Cloudflare API" } else { "Cloudflare" };
            line(&mut text, &colours.tone(Tone::Strong, &format!("Published at {place}:")));
            write_published(&mut text, &published);
        }
        let ready = self.objects.iter().filter(|seen| seen.health() == Health::Ready).count();
        let calls = calls(self.metrics);
        let total: i64 = calls.values().sum();
        let took = duration::shown(self.took);
        let headline = format!("{ready} of {} objects Ready after {took} and {total} API calls", self.objects.len());
        line(&mut text, &colours.tone(if ready == self.objects.len() { Tone::Good } else { Tone::Bad }, &headline));
        for (call, count) in &calls {
            line(&mut text, &format!("  {count:>4}  {call}"));
        }
        text
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

fn write_published(text: &mut String, published: &[Published]) {
    let width = |of: fn(&Published) -> usize| published.iter().map(of).max().unwrap_or(0);
    let sort = width(|one| one.sort.chars().count());
    let name = width(|one| one.name.chars().count());
    for one in published {
        let arrow = if one.content.is_empty() { "" } else { "→" };
        let proxied = if one.is_proxied { "  (proxied)" } else { "" };
        let shown = format!("  {:sort$}  {:name$}  {arrow} {}{proxied}", one.sort, one.name, one.content);
        line(text, shown.trim_end());
    }
}

/// `GET /zones/{zone_id}/dns_records` → how often.
fn calls(metrics: &str) -> BTreeMap<String, i64> {
    let mut calls = BTreeMap::new();
    for sample in prometheus_text::ending(metrics, "cloudflare_requests_total") {
        let label = |name: &str| sample.labels.get(name).map_or("", String::as_str);
        *calls.entry(format!("{:<6} {}", label("method"), label("template"))).or_default() += sample.value;
    }
    calls
}

/// The objects that are not Ready, each with its reason.
pub(crate) fn unready(objects: &[HealthView]) -> String {
    let mut text = String::new();
    for seen in objects.iter().filter(|seen| seen.health() != Health::Ready) {
        line(&mut text, &format!("  {}: {}, {}", seen.title(), seen.health().as_str(), seen.reason()));
    }
    text
}

/// What to try after `up --once`.
pub(crate) fn next_steps(paths: &[PathBuf], data_dir: &Path) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let data =
        if data_dir == Path::new(".portolan") { String::new() } else { format!(" --data-dir {}", data_dir.display()) };
    let kubeconfig = data_dir.join("kubeconfig");
    let kubeconfig = kubeconfig.display();
    let paths = paths.join(" ");
    format!(
        "What to try next:\n  \
         portolan up{data} {paths}\n      the same, but it stays and follows every change of the files; then, in another terminal:\n  \
         kubectl --kubeconfig {kubeconfig} get dnsrecords -A\n  \
         portolan status --kubeconfig {kubeconfig}\n  \
         portolan plan --kubeconfig {kubeconfig} -f {paths}\n      what a change of the files would change, before it does\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_method_and_path_whatever_their_answer() {
        let metrics = "portolan_cloudflare_requests_total{template=\"/zones\",method=\"GET\",status=\"200\"} 2\n\
            portolan_cloudflare_requests_total{template=\"/zones\",method=\"GET\",status=\"429\"} 1\n";

        assert_eq!(calls(metrics), BTreeMap::from([("GET    /zones".to_owned(), 3)]));
    }
}
