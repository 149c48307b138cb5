//! The phases: creates by one and by many clients, gets, lists at growing sizes, merge patches, applies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use http::Method;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::Load;
use super::connection::{Connection, SentBody};
use super::target::BenchServer;
use super::timing::Figures;

/// Data of each `ConfigMap`.
pub(super) const DATA_BYTES: usize = 1024;
/// Sizes at which the collection is listed while it grows.
const LIST_SIZES: [usize; 3] = [1_000, 5_000, 10_000];
const LIST_ROUNDS: usize = 10;

/// A set of connected clients and the namespace they work in.
pub(super) struct Workload {
    clients: Vec<Arc<Mutex<Connection>>>,
    namespace: String,
    load: Load,
}

/// What a phase sends for object number `index`.
pub(super) type BenchRequest = fn(namespace: &str, index: usize) -> (Method, String, SentBody<'static>);

impl Workload {
    /// Connects all clients before anything is measured.
    pub(super) async fn connect(target: &BenchServer, namespace: &str, load: Load) -> anyhow::Result<Self> {
        let mut clients = Vec::new();
        for _ in 0..load.clients {
            clients.push(Arc::new(Mutex::new(Connection::open(target).await?)));
        }
        Ok(Self { clients, namespace: namespace.to_owned(), load })
    }

    /// One client creates a tenth (at most 1,000), all clients the rest; lists in between.
    pub(super) async fn create_and_list(&self, figures: &mut Figures, pids: &[u32]) -> anyhow::Result<()> {
        let alone = (self.load.objects / 10).clamp(1, LIST_SIZES[0]);
        let (elapsed, latencies) = self.spread(1, 0..alone, create).await?;
        figures.rate("create_1_client", elapsed, latencies);
        let (mut done, mut elapsed, mut latencies) = (alone, Duration::ZERO, Vec::new());
        for size in LIST_SIZES.into_iter().filter(|size| *size < self.load.objects).chain([self.load.objects]) {
            if size > done {
                let (took, each) = self.spread(self.load.clients, done..size, create).await?;
                elapsed += took;
                latencies.extend(each);
                done = size;
            }
            self.list(figures, done).await?;
        }
        figures.rate(&format!("create_{}_clients", self.load.clients), elapsed, latencies);
        figures.memory("rss_after_creates_mib", pids);
        Ok(())
    }

    /// Reads single objects.
    pub(super) async fn read(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let (elapsed, latencies) = self.spread(1, 0..self.load.objects.min(2_000), get).await?;
        figures.rate("get_1_client", elapsed, latencies);
        let (elapsed, latencies) = self.spread(self.load.clients, 0..self.load.objects, get).await?;
        figures.rate(&format!("get_{}_clients", self.load.clients), elapsed, latencies);
        Ok(())
    }

    /// Changes half of the objects by merge patch and by server-side apply.
    pub(super) async fn patch(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let half = 0..self.load.objects.div_ceil(2);
        let (elapsed, latencies) = self.spread(self.load.clients, half.clone(), merge_patch).await?;
        figures.rate(&format!("merge_patch_{}_clients", self.load.clients), elapsed, latencies);
        let (elapsed, latencies) = self.spread(self.load.clients, half, apply).await?;
        figures.rate(&format!("apply_{}_clients", self.load.clients), elapsed, latencies);
        Ok(())
    }

    async fn list(&self, figures: &mut Figures, expected: usize) -> anyhow::Result<()> {
        let mut client = self.clients[0].lock().await;
        let path = collection(&self.namespace);
        let mut latencies = Vec::new();
        let mut bytes = 0;
        for _ in 0..LIST_ROUNDS {
            let start = Instant::now();
            let answer = client.send(Method::GET, &path, SentBody::none()).await?;
            latencies.push(start.elapsed());
            bytes = answer.len();
            let found = count(&answer, b"\"uid\":\"");
            // kube-root-ca.crt appears where a controller manager runs.
            ensure!(found >= expected && found <= expected + 1, "a list has {found} objects instead of {expected}");
        }
        figures.durations(&format!("list_{expected}"), latencies, bytes);
        Ok(())
    }

    /// Sends `request` for each index, spread over `clients` clients; the whole time and each one's.
    pub(super) async fn spread(
        &self,
        clients: usize,
        indexes: std::ops::Range<usize>,
        request: BenchRequest,
    ) -> anyhow::Result<(Duration, Vec<Duration>)> {
        let next = Arc::new(AtomicUsize::new(indexes.start));
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for client in self.clients.iter().take(clients) {
            let (client, next, namespace) = (Arc::clone(client), Arc::clone(&next), self.namespace.clone());
            tasks.spawn(async move { send_until(&client, &next, indexes.end, &namespace, request).await });
        }
        let mut latencies = Vec::with_capacity(indexes.len());
        while let Some(outcome) = tasks.join_next().await {
            latencies.extend(outcome.context("a client ended early")??);
        }
        Ok((start.elapsed(), latencies))
    }
}

async fn send_until(
    client: &Mutex<Connection>,
    next: &AtomicUsize,
    end: usize,
    namespace: &str,
    request: BenchRequest,
) -> anyhow::Result<Vec<Duration>> {
    let mut client = client.lock().await;
    let mut latencies = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= end {
            return Ok(latencies);
        }
        let (method, path, body) = request(namespace, index);
        let start = Instant::now();
        client.send(method, &path, body).await?;
        latencies.push(start.elapsed());
    }
}

/// Makes the namespace all phases work in.
pub(super) async fn create_namespace(client: &mut Connection, name: &str) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client
        .send(Method::POST, "/api/v1/namespaces", SentBody::json(&namespace))
        .await
        .context("making the namespace")?;
    Ok(())
}

/// Asks for the namespace's deletion, which takes everything in it along.
pub(super) async fn delete_namespace(client: &mut Connection, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{name}");
    client.send(Method::DELETE, &path, SentBody::none()).await.context("deleting the namespace")?;
    Ok(())
}

/// The path of the namespace's `ConfigMaps`.
pub(super) fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn name_of(index: usize) -> String {
    format!("object-{index:07}")
}

fn object(namespace: &str, index: usize) -> String {
    format!("{}/{}", collection(namespace), name_of(index))
}

fn create(namespace: &str, index: usize) -> (Method, String, SentBody<'static>) {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name_of(index), "labels": {"bench": "apiserver"}},
        "data": {"payload": "x".repeat(DATA_BYTES)},
    });
    (Method::POST, collection(namespace), SentBody::json(&object))
}

fn get(namespace: &str, index: usize) -> (Method, String, SentBody<'static>) {
    (Method::GET, object(namespace, index), SentBody::none())
}

fn merge_patch(namespace: &str, index: usize) -> (Method, String, SentBody<'static>) {
    let bytes = json!({"data": {"patched": index.to_string()}}).to_string().into_bytes();
    (Method::PATCH, object(namespace, index), SentBody { content_type: "application/merge-patch+json", bytes })
}

fn apply(namespace: &str, index: usize) -> (Method, String, SentBody<'static>) {
    let applied = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name_of(index)},
        "data": {"applied": index.to_string()},
    });
    let path = format!("{}?fieldManager=bench-apply", object(namespace, index));
    (
        Method::PATCH,
        path,
        SentBody { content_type: "application/apply-patch+yaml", bytes: applied.to_string().into_bytes() },
    )
}

/// How often `needle` stands in `haystack`.
pub(super) fn count(haystack: &[u8], needle: &[u8]) -> usize {
    let first = needle[0];
    let mut found = 0;
    let mut rest = haystack;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        found += usize::from(rest[at..].starts_with(needle));
        rest = &rest[at + 1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted() {
        assert_eq!(count(br#"{"uid":"a"},{"uid":"b"}"#, b"\"uid\":\""), 2);
        assert_eq!(count(b"", b"x"), 0);
    }
}
