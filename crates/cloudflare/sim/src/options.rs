//! How a simulator behaves beyond the API's own rules.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::{Quotas, limit::LimitPolicy};

/// Where the simulator takes the date from.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// Settings of a [`Simulator`](crate::Simulator).
#[derive(Clone)]
pub struct Options {
    /// Date of objects, recordings and audit entries.
    pub clock: Clock,
    /// How long an answer takes: half of it passes before the request has its effect, half after.
    pub latency: Duration,
    /// Requests per user and window; `None` for no limit. All tokens of a user are counted together.
    pub rate_limit: Option<(u32, Duration)>,
    /// How long a user who exceeded the limit is refused; as long as the window unless said otherwise, as at the real API.
    pub penalty: Option<Duration>,
    /// The largest page of a listing: larger ones are cut down to it without a word. `None`: they are refused beyond what the
    /// collection allows.
    pub largest_page: Option<u64>,
    /// Where ids and probabilities come from.
    pub seed: u64,
    /// File to which every request is appended as a JSON line.
    pub record: Option<PathBuf>,
    /// Contents of records come back as they were sent: neither quoted, lower-cased nor shortened, as by lesser fakes.
    pub verbatim: bool,
    /// How a zone that is gone is answered for: by 404, 1001 for itself and 7003 below it, or, if this is set, by 403 and
    /// 9109 as if the credential had no right to it. The API's documentation says neither; the first is what public
    /// reports show, the second what another implementation of the API answers. Whoever relies on one must bear the other.
    pub hides_vanished_zones: bool,
    /// How long a timed-out request stays silent before [`Dropped::Timeout`](crate::Dropped).
    pub silence: Duration,
    /// How many Access objects an account may have.
    pub quotas: Quotas,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(jiff::Timestamp::now),
            latency: Duration::ZERO,
            rate_limit: Some((1200, Duration::from_secs(300))),
            penalty: None,
            largest_page: None,
            seed: 0,
            record: None,
            verbatim: false,
            hides_vanished_zones: false,
            silence: Duration::from_secs(100),
            quotas: Quotas::default(),
        }
    }
}

impl Options {
    pub(crate) fn limits(&self) -> Option<LimitPolicy> {
        self.rate_limit.map(|(limit, window)| LimitPolicy { limit, window, penalty: self.penalty.unwrap_or(window) })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("latency", &self.latency)
            .field("rate_limit", &self.rate_limit)
            .field("seed", &self.seed)
            .field("record", &self.record)
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}
