//! The log of a test, kept as text.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use portolan_core::Colour;
use portolan_core::job::LogScope;
use tracing::Dispatch;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use super::{LineFormat, LogLayer};

/// The words of a job whose scopes are fleets.
const FLEETS: LogScope = LogScope { name: "fleet", namespace: "fleet_namespace" };

/// A log that begins with [`Captured::of`] and ends with it.
pub(crate) struct Captured<F> {
    form: LineFormat,
    filter: F,
}

/// Runs `act` with this subscriber on its thread.
pub(crate) fn heard_by(subscriber: impl tracing::Subscriber + Send + Sync, act: impl FnOnce()) {
    // With a single subscriber in the process, tracing asks the thread that reaches a line first whether anybody wants
    // it, and that may be another test's. A second one makes it ask all.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    tracing::subscriber::with_default(subscriber, act);
}

impl<F: Filter<Registry> + Send + Sync + 'static> Captured<F> {
    pub(crate) fn text(filter: F) -> Self {
        Self { form: LineFormat::Text(Colour::Off), filter }
    }

    pub(crate) fn coloured(filter: F) -> Self {
        Self { form: LineFormat::Text(Colour::On), filter }
    }

    pub(crate) fn json(filter: F) -> Self {
        Self { form: LineFormat::Json, filter }
    }

    /// What is logged while `act` runs, seven seconds after the epoch.
    pub(crate) fn of(self, act: impl FnOnce()) -> String {
        let written = Written::default();
        let clock = Arc::new(|| jiff::Timestamp::from_second(7).unwrap());
        let writer = written.clone();
        let layer = LogLayer::new(self.form, clock, move || writer.clone()).naming(FLEETS).with_filter(self.filter);
        heard_by(tracing_subscriber::registry().with(layer), act);
        let text = written.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    pub(crate) fn lines(self, act: impl FnOnce()) -> Vec<String> {
        self.of(act).lines().map(str::to_owned).collect()
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
