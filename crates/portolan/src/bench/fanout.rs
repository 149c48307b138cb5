//! Watch fan-out: every write is seen by every watcher. For new objects first one writer for the delay, then many for the
//! rate.

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
use super::connection::{Connection, SentBody};
use super::target::BenchServer;
use super::timing::Figures;
use super::workload::collection;

const SEEN_TIMEOUT: Duration = Duration::from_mins(2);
/// Marks the objects of a round, so that watchers see nothing else.
const LABEL: &str = "fanout";

/// The request that writes one object, by its number.
pub(super) type Write = Arc<dyn Fn(usize) -> (Method, String, SentBody<'static>) + Send + Sync>;

/// What watchers look at, and what happens to each object meanwhile.
pub(super) struct Round {
    /// The collection with a query that begins the watch.
    pub(super) watch: String,
    /// The type of event that each object makes once.
    pub(super) event: &'static str,
    /// How many objects are written.
    pub(super) objects: usize,
    /// How each is written.
    pub(super) write: Write,
}

/// Runs both parts.
pub(super) async fn run(
    target: &BenchServer,
    namespace: &str,
    load: Load,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let few = (load.objects / 10).clamp(10, 1_000);
    let quiet = Fanout::start(target, new_objects(namespace, "quiet", few), load.watchers).await?;
    let (elapsed, latencies) = quiet.write(target, 1).await?;
    figures.rate("watch_delivery_1_writer", elapsed, latencies);
    let many = (load.objects / 2).clamp(10, 5_000);
    let burst = Fanout::start(target, new_objects(namespace, "burst", many), load.watchers).await?;
    let (elapsed, latencies) = burst.write(target, load.clients).await?;
    figures.rate(&format!("watch_delivery_{}_writers", load.clients), elapsed, latencies);
    Ok(())
}

/// A round in which objects are made.
fn new_objects(namespace: &str, round: &'static str, objects: usize) -> Round {
    let path = collection(namespace);
    let watch = format!("{path}?watch=true&resourceVersion=0&labelSelector={LABEL}%3D{round}");
    let write = move |index| (Method::POST, path.clone(), SentBody::json(&event_object(round, index)));
    Round { watch, event: "ADDED", objects, write: Arc::new(write) }
}

/// Watchers that wait for the events of one round.
pub(super) struct Fanout {
    round: Round,
    watchers: JoinSet<anyhow::Result<Vec<Instant>>>,
}

impl Fanout {
    /// Begins the watches, each on a connection of its own.
    pub(super) async fn start(target: &BenchServer, round: Round, watchers: usize) -> anyhow::Result<Self> {
        let mut set = JoinSet::new();
        let (ready, mut readied) = mpsc::channel(watchers);
        for _ in 0..watchers {
            let mut connection = Connection::open(target).await?;
            let (status, body) = connection.start(Method::GET, &round.watch, SentBody::none()).await?;
            ensure!(status.is_success(), "a watch was answered {status}");
            let (ready, event, objects) = (ready.clone(), round.event, round.objects);
            set.spawn(async move {
                ready.send(()).await.context("nobody waits for the watcher")?;
                // The connection must outlive its stream.
                let seen = receive(body, event, objects).await;
                drop(connection);
                seen
            });
        }
        for _ in 0..watchers {
            readied.recv().await.context("a watcher ended before its start")?;
        }
        Ok(Self { round, watchers: set })
    }

    /// Writes the objects and waits until every watcher has seen each once; one latency for each delivery.
    pub(super) async fn write(
        mut self,
        target: &BenchServer,
        writers: usize,
    ) -> anyhow::Result<(Duration, Vec<Duration>)> {
        let mut connections = Vec::new();
        for _ in 0..writers {
            connections.push(Connection::open(target).await?);
        }
        let start = Instant::now();
        let sent = write_all(connections, &self.round).await?;
        let mut latencies = Vec::with_capacity(self.round.objects * self.watchers.len());
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

/// Writes objects from several writers; for each object when its request was sent.
async fn write_all(connections: Vec<Connection>, round: &Round) -> anyhow::Result<Vec<Instant>> {
    let (writers, objects) = (connections.len(), round.objects);
    let mut tasks = JoinSet::new();
    for (writer, mut connection) in connections.into_iter().enumerate() {
        let write = Arc::clone(&round.write);
        tasks.spawn(async move {
            let mut sent = Vec::new();
            for index in (writer..objects).step_by(writers) {
                let (method, path, body) = write(index);
                sent.push((index, Instant::now()));
                connection.send(method, &path, body).await?;
            }
            anyhow::Ok(sent)
        });
    }
    let mut all = vec![None; objects];
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
async fn receive(mut body: Incoming, event: &str, events: usize) -> anyhow::Result<Vec<Instant>> {
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
            let index = index_in(line, event)?;
            ensure!(seen[index].replace(now).is_none(), "object {index} was seen twice");
            missing -= 1;
        }
        pending.drain(..complete);
    }
    Ok(seen.into_iter().flatten().collect())
}

/// The object number in an event, found without parsing all of it.
fn index_in(line: &[u8], event: &str) -> anyhow::Result<usize> {
    let text = std::str::from_utf8(line).context("an event is not UTF-8")?;
    let kind = format!("{{\"type\":\"{event}\"");
    ensure!(text.starts_with(&kind), "an unexpected event came: {}", &text[..text.len().min(200)]);
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

        assert_eq!(index_in(line, "ADDED").unwrap(), 42);
        assert!(index_in(line, "MODIFIED").is_err());
        assert!(index_in(br#"{"type":"ERROR"}"#, "ADDED").is_err());
    }
}
