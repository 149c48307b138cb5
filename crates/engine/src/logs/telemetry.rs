//! Tracing spans in, OTLP/HTTP JSON out: what OpenTelemetry collectors take at `/v1/traces`.
//!
//! [`spans`] makes a layer for the subscriber and an exporter that batches what the layer saw. A full buffer drops
//! spans and counts them; nothing ever waits for a collector.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_core::Clock;
use portolan_core::job::LogScope;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::levels::SCOPE;

/// Spans that wait for the exporter at most.
const BUFFER: usize = 4096;
/// Spans in one request at most.
const BATCH: usize = 512;
/// How long spans gather before they are sent.
const GATHER: Duration = Duration::from_secs(5);
/// The kind of a span within one process.
const INTERNAL: u8 = 1;
/// The code of a span in which an error was logged.
const ERROR: u8 = 2;

/// A layer that sees spans, and the exporter that sends them.
pub fn spans(clock: Clock, seed: u64) -> (SpanLayer, Exporter) {
    let (sender, receiver) = mpsc::channel(BUFFER);
    let dropped = Arc::new(AtomicU64::new(0));
    let random = Mutex::new(StdRng::seed_from_u64(seed));
    (SpanLayer { sender, dropped: dropped.clone(), random, clock, scope: SCOPE }, Exporter { receiver, dropped })
}

/// Sees spans begin and end.
pub struct SpanLayer {
    sender: mpsc::Sender<Value>,
    dropped: Arc<AtomicU64>,
    random: Mutex<StdRng>,
    clock: Clock,
    scope: LogScope,
}

/// What is known of a span while it is open.
struct Open {
    trace: u128,
    id: u64,
    parent: Option<u64>,
    start: jiff::Timestamp,
    attributes: OtlpFields,
    events: Vec<Value>,
    failed: bool,
}

impl SpanLayer {
    /// The same in the words of a job for log scopes.
    #[must_use]
    pub fn naming(self, scope: LogScope) -> Self {
        Self { scope, ..self }
    }

    /// What a span or a field is called there.
    fn named<'a>(&self, name: &'a str) -> &'a str {
        match name {
            plain if plain == SCOPE.name => self.scope.name,
            plain if plain == SCOPE.namespace => self.scope.namespace,
            other => other,
        }
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.random.lock().expect("nothing panics while drawing"))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Open>().map(|open| (open.trace, open.id))
        });
        let mut fields = OtlpFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(Open {
            trace: parent.map_or_else(|| self.draw(StdRng::random), |(trace, _)| trace),
            id: self.draw(StdRng::random),
            parent: parent.map(|(_, id)| id),
            start: (self.clock)(),
            attributes: fields,
            events: Vec::new(),
            failed: false,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            values.record(&mut open.attributes);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<Open>() else { return };
        let mut fields = OtlpFields::default();
        event.record(&mut fields);
        open.failed |= *event.metadata().level() == tracing::Level::ERROR;
        open.events.push(json!({
            "timeUnixNano": nanoseconds((self.clock)()),
            "name": fields.message.take().unwrap_or_else(|| event.metadata().name().to_owned()),
            "attributes": fields.pairs,
        }));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(mut open) = span.extensions_mut().remove::<Open>() else { return };
        for pair in &mut open.attributes.pairs {
            pair["key"] = json!(self.named(pair["key"].as_str().unwrap_or_default()));
        }
        if self.sender.try_send(closed(open, self.named(span.name()), (self.clock)())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A span as OTLP writes it.
fn closed(open: Open, name: &str, end: jiff::Timestamp) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", open.trace),
        "spanId": format!("{:016x}", open.id),
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(open.start),
        "endTimeUnixNano": nanoseconds(end),
        "attributes": open.attributes.pairs,
        "events": open.events,
        "status": if open.failed { json!({"code": ERROR}) } else { json!({}) },
    });
    if let Some(parent) = open.parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    span
}

/// OTLP writes 64-bit numbers as text.
fn nanoseconds(time: jiff::Timestamp) -> String {
    time.as_nanosecond().to_string()
}

/// Fields as OTLP attributes; the message apart.
#[derive(Default)]
struct OtlpFields {
    pairs: Vec<Value>,
    message: Option<String>,
}

impl OtlpFields {
    fn push(&mut self, field: &Field, value: Value) {
        self.pairs.push(json!({"key": field.name(), "value": value}));
    }
}

impl Visit for OtlpFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = Some(text);
        } else {
            self.push(field, json!({"stringValue": text}));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, json!({"stringValue": value}));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, json!({"intValue": value.to_string()}));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, json!({"intValue": value.to_string()}));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, json!({"boolValue": value}));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, json!({"doubleValue": value}));
    }
}

/// Sends spans in batches.
pub struct Exporter {
    receiver: mpsc::Receiver<Value>,
    dropped: Arc<AtomicU64>,
}

impl Exporter {
    /// Hands every batch to `post`, which sends it to the collector; ends after the last one when it is told to stop.
    /// A batch that cannot be sent is lost.
    pub async fn run<F, E>(mut self, shutdown: CancellationToken, post: impl Fn(Value) -> F)
    where
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        loop {
            let stopping = tokio::select! {
                () = shutdown.cancelled() => true,
                () = tokio::time::sleep(GATHER) => false,
            };
            while let Some(batch) = self.batch() {
                if let Err(error) = post(batch).await {
                    // Not an error: that would be a span's event, and never end.
                    tracing::debug!(%error, "Spans could not be sent");
                    break;
                }
            }
            if stopping {
                return;
            }
        }
    }

    /// Spans that were dropped because nobody sent them in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn batch(&mut self) -> Option<Value> {
        let spans: Vec<Value> = std::iter::from_fn(|| self.receiver.try_recv().ok()).take(BATCH).collect();
        (!spans.is_empty()).then(|| request(spans))
    }
}

/// The body of a request to `/v1/traces`.
fn request(spans: Vec<Value>) -> Value {
    let service = json!([{"key": "service.name", "value": {"stringValue": "portolan"}}]);
    let scope = json!({"name": "portolan", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"scope": scope, "spans": spans}]}]})
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::logs::testing::heard_by;

    fn clock() -> Clock {
        Arc::new(|| jiff::Timestamp::from_second(7).unwrap())
    }

    /// What the exporter sends of what happens in `act`.
    fn sent(act: impl FnOnce()) -> Vec<Value> {
        let (layer, mut exporter) = spans(clock(), 1);
        heard_by(tracing_subscriber::registry().with(layer), act);
        let body = exporter.batch().unwrap_or_default();
        body.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    #[test]
    fn spans_are_sent_with_their_fields_events_and_times() {
        let spans = sent(|| {
            let span = tracing::info_span!("reconcile", kind = "DNSRecord", attempt = 2, late = true);
            span.in_scope(|| tracing::info!(count = 3_u64, "Created a record"));
        });

        assert_eq!(spans.len(), 1);
        assert_eq!((&spans[0]["name"], &spans[0]["startTimeUnixNano"]), (&json!("reconcile"), &json!("7000000000")));
        let attributes = json!([
            {"key": "kind", "value": {"stringValue": "DNSRecord"}},
            {"key": "attempt", "value": {"intValue": "2"}},
            {"key": "late", "value": {"boolValue": true}},
        ]);
        assert_eq!(spans[0]["attributes"], attributes);
        assert_eq!(spans[0]["events"][0]["name"], "Created a record");
        assert_eq!(spans[0]["status"], json!({}));
    }

    #[test]
    fn children_share_the_trace_of_their_parent_and_name_it() {
        let spans = sent(|| {
            tracing::info_span!("outer").in_scope(|| tracing::info_span!("inner").in_scope(|| {}));
            tracing::info_span!("another").in_scope(|| {});
        });

        let [inner, outer, another] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!((&inner["traceId"], &inner["parentSpanId"]), (&outer["traceId"], &outer["spanId"]));
        assert_eq!(outer.get("parentSpanId"), None);
        assert_ne!(outer["traceId"], another["traceId"]);
        assert_eq!(outer["traceId"].as_str().unwrap().len(), 32);
    }

    #[test]
    fn a_span_with_an_error_in_it_says_so() {
        let spans = sent(|| tracing::info_span!("reconcile").in_scope(|| tracing::error!("broke")));

        assert_eq!(spans[0]["status"], json!({"code": 2}));
    }

    #[test]
    fn more_spans_than_are_sent_are_dropped_and_counted() {
        let (layer, exporter) = spans(clock(), 1);

        heard_by(tracing_subscriber::registry().with(layer), || {
            for _ in 0..BUFFER + 3 {
                drop(tracing::info_span!("busy"));
            }
        });

        assert_eq!(exporter.dropped(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_sent_before_the_end() {
        let (layer, exporter) = spans(clock(), 1);
        let (shutdown, posted) = (CancellationToken::new(), Mutex::new(0));
        heard_by(tracing_subscriber::registry().with(layer), || {
            for _ in 0..=BATCH {
                drop(tracing::info_span!("busy"));
            }
        });
        shutdown.cancel();

        exporter
            .run(shutdown, |_| async {
                *posted.lock().unwrap() += 1;
                Ok::<(), &str>(())
            })
            .await;

        assert_eq!(*posted.lock().unwrap(), 2);
    }
}
