//! Watch fan-out: every write is seen by every watcher. First one writer for the delay, then many for the rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Load;
use super::connection::{Body, Connection};
use super::target::Target;
use super::timing::Figures;
use super::workload::collection;

const SEEN_TIMEOUT: Duration = Duration::from_mins(2);
/// Marks the objects of this phase, so that watchers see nothing else.
const LABEL: &str = "fanout";

/// Runs both parts.
pub(super) async fn run(target: &Target, namespace: &str, load: Load, figures: &mut Figures) -> anyhow::Result<()> {
    let few = (load.objects / 10).clamp(10, 1_000);
    let (elapsed, latencies) =
        Fanout::start(target, namespace, "quiet", load.watchers, few).await?.write(target, 1).await?;
    figures.rate("watch_delivery_1_writer", elapsed, latencies);
    let many = (load.objects / 2).clamp(10, 5_000);
    let burst = Fanout::start(target, namespace, "burst", load.watchers, many).await?;
    let (elapsed, latencies) = burst.write(target, load.clients).await?;
    figures.rate(&format!("watch_delivery_{}_writers", load.clients), elapsed, latencies);
    Ok(())
}

/// Watchers that wait for `events` objects of one round.
struct Fanout {
    namespace: String,
    round: &'static str,
    events: usize,
    watchers: JoinSet<anyhow::Result<Vec<Instant>>>,
}

impl Fanout {
    async fn start(
        target: &Target,
        namespace: &str,
        round: &'static str,
        watchers: usize,
        events: usize,
    ) -> anyhow::Result<Self> {
        let mut set = JoinSet::new();
        let (ready, mut readied) = mpsc::channel(watchers);
        for _ in 0..watchers {
            let mut connection = Connection::open(target).await?;
            let path =
                format!("{}?watch=true&resourceVersion=0&labelSelector={LABEL}%3D{round}", collection(namespace));
            let (status, body) = connection.start(Method::GET, &path, Body::none()).await?;
            ensure!(status.is_success(), "a watch was answered {status}");
            let ready = ready.clone();
            set.spawn(async move {
                ready.send(()).await.context("nobody waits for the watcher")?;
                // The connection must outlive its stream.
                let seen = receive(body, events).await;
                drop(connection);
                seen
            });
        }
        for _ in 0..watchers {
            readied.recv().await.context("a watcher ended before its start")?;
        }
        Ok(Self { namespace: namespace.to_owned(), round, events, watchers: set })
    }

    /// Creates the objects and waits until every watcher has seen each once; one latency for each delivery.
    async fn write(mut self, target: &Target, writers: usize) -> anyhow::Result<(Duration, Vec<Duration>)> {
        let mut connections = Vec::new();
        for _ in 0..writers {
            connections.push(Connection::open(target).await?);
        }
        let start = Instant::now();
        let sent = write_all(connections, &self.namespace, self.round, self.events).await?;
        let mut latencies = Vec::with_capacity(self.events * self.watchers.len());
        let seen = async {
            while let Some(seen) = self.watchers.join_next().await {
                let seen = seen.context("a watcher ended early")??;
                latencies.extend(seen.iter().zip(&sent).map(|(seen, sent)| seen.saturating_duration_since(*sent)));
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(SEEN_TIMEOUT, seen).await.context("watchers did not see all events in time")??;
        Ok((start.elapsed(), latencies))
    }
}

/// Creates objects from several writers; for each object when its request was sent.
async fn write_all(
    connections: Vec<Connection>,
    namespace: &str,
    round: &'static str,
    events: usize,
) -> anyhow::Result<Vec<Instant>> {
    let writers = connections.len();
    let path: Arc<str> = collection(namespace).into();
    let mut tasks = JoinSet::new();
    for (writer, mut connection) in connections.into_iter().enumerate() {
        let path = Arc::clone(&path);
        tasks.spawn(async move {
            let mut sent = Vec::new();
            for index in (writer..events).step_by(writers) {
                sent.push((index, Instant::now()));
                connection.send(Method::POST, &path, Body::json(&event_object(round, index))).await?;
            }
            anyhow::Ok(sent)
        });
    }
    let mut all = vec![None; events];
    while let Some(sent) = tasks.join_next().await {
        for (index, at) in sent.context("a writer ended early")?? {
            all[index] = Some(at);
        }
    }
    all.into_iter().collect::<Option<Vec<_>>>().context("an object was not written")
}

fn event_object(round: &str, index: usize) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("{round}-{index:07}"), "labels": {LABEL: round}},
        "data": {"payload": "x".repeat(super::workload::DATA_BYTES)},
    })
}

/// Reads events until all objects were seen, each exactly once; when each was.
async fn receive(mut body: Incoming, events: usize) -> anyhow::Result<Vec<Instant>> {
    let mut seen: Vec<Option<Instant>> = vec![None; events];
    let mut missing = events;
    let mut pending = Vec::new();
    while missing > 0 {
        let Some(frame) = body.frame().await else { bail!("a watch ended with {missing} events missing") };
        let Ok(data) = frame.context("reading a watch")?.into_data() else {
            continue;
        };
        let now = Instant::now();
        pending.extend_from_slice(&data);
        let complete = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        for line in pending[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let index = index_in(line)?;
            ensure!(seen[index].replace(now).is_none(), "object {index} was seen twice");
            missing -= 1;
        }
        pending.drain(..complete);
    }
    Ok(seen.into_iter().flatten().collect())
}

/// The object number in an event, found without parsing all of it.
fn index_in(line: &[u8]) -> anyhow::Result<usize> {
    let text = std::str::from_utf8(line).context("an event is not UTF-8")?;
    ensure!(text.contains("\"type\":\"ADDED\""), "an unexpected event came: {}", &text[..text.len().min(200)]);
    let name = text.split("\"name\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let number = name.and_then(|name| name.rsplit('-').next()).and_then(|number| number.parse().ok());
    number.with_context(|| format!("an event names no object of ours: {}", &text[..text.len().min(200)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_read_from_an_events_name() {
        let line = br#"{"type":"ADDED","object":{"metadata":{"name":"burst-0000042","namespace":"n"}}}"#;

        assert_eq!(index_in(line).unwrap(), 42);
        assert!(index_in(br#"{"type":"ERROR"}"#).is_err());
    }
}
