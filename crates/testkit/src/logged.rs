//! A place for logs that tests read.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::Dispatch;

/// Everything that was logged. Clones share it.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs `act`, and gives what it came to and everything that its thread logged meanwhile.
pub fn logged<T>(act: impl FnOnce() -> T) -> (T, String) {
    // With a single subscriber in the process, tracing asks the thread that reaches a line first whether anybody wants
    // it, and that may be another test's. A second one makes it ask all.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    let log = Logged::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    let result = tracing::subscriber::with_default(subscriber, act);
    let text = log.0.lock().unwrap_or_else(PoisonError::into_inner);
    (result, String::from_utf8_lossy(&text).into_owned())
}
