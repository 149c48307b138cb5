//! Answers that go wrong on purpose: which requests, how, when, how often.

use std::time::Duration;

use http::Method;
use regex::Regex;
use serde::Deserialize;

use crate::ids::Ids;

/// What happens instead of the right answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// This status. Gateway statuses (502, 503, 504, 52x) come with an HTML page, others with an envelope.
    Status {
        /// HTTP status.
        status: u16,
        /// Code in the envelope's error.
        code: u64,
        /// Message beside the code.
        message: String,
    },
    /// No answer.
    Timeout,
    /// The connection is closed before an answer.
    Reset,
    /// The connection is never made.
    Refused,
}

impl Effect {
    /// A status with the code and the message that go with it.
    pub fn status(status: u16) -> Self {
        let (code, message) = match status {
            429 => (971, "Please wait and consider throttling your request speed"),
            401 | 403 => (10000, "Authentication error"),
            404 => (1003, "Not found"),
            409 => (1013, "Conflict"),
            400..500 => (1004, "Bad request"),
            _ => (1000, "Internal server error"),
        };
        Self::Status { status, code, message: message.to_owned() }
    }
}

/// Whether the request still has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing is done.
    Before,
    /// A write that would succeed is done, then its answer goes wrong. Other requests are left alone.
    AfterWrite,
}

/// Which of the matching requests are hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// All of them.
    Always,
    /// The first so many.
    Times(u32),
    /// The n-th alone, counted from 1.
    Nth(u32),
    /// Each with this probability, by the simulator's seed.
    Probability(f64),
}

/// A planned fault.
#[derive(Clone, Debug)]
pub struct Fault {
    method: Option<Method>,
    path: Regex,
    effect: Effect,
    when: When,
    count: Count,
    retry_after: Option<Duration>,
    seen: u32,
}

impl Fault {
    /// A fault of all requests whose method is `method` (`""` or `*` for any) and whose path fits `path`: a template as
    /// `/zones/{zone_id}/dns_records`, which must fit in whole, or a regular expression, which may fit anywhere.
    pub fn on(method: &str, path: &str, effect: Effect) -> Self {
        let path = pattern(path).unwrap_or_else(|_| literal(path));
        let method = method.to_ascii_uppercase().parse().ok().filter(|_| !matches!(method, "" | "*" | "ANY"));
        Self { method, path, effect, when: When::Before, count: Count::Always, retry_after: None, seen: 0 }
    }

    /// Lets writes through first.
    pub fn after_write(self) -> Self {
        self.when(When::AfterWrite)
    }

    /// Chooses whether the request still has its effect.
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Chooses which of the matching requests are hit.
    pub fn count(mut self, count: Count) -> Self {
        self.count = count;
        self
    }

    /// Hits the first `n` alone.
    pub fn times(self, n: u32) -> Self {
        self.count(Count::Times(n))
    }

    /// Sends `Retry-After`.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    fn fits(&self, method: &Method, path: &str) -> bool {
        self.method.as_ref().is_none_or(|wanted| wanted == method) && self.path.is_match(path)
    }

    fn strikes(&mut self, ids: &mut Ids) -> bool {
        self.seen += 1;
        match self.count {
            Count::Always => true,
            Count::Times(n) => self.seen <= n,
            Count::Nth(n) => self.seen == n,
            Count::Probability(p) => ids.chance(p),
        }
    }

    fn spent(&self) -> bool {
        match self.count {
            Count::Times(n) | Count::Nth(n) => self.seen >= n,
            Count::Always | Count::Probability(_) => false,
        }
    }
}

fn pattern(path: &str) -> Result<Regex, regex::Error> {
    if !path.starts_with('/') || !path.contains('{') {
        return Regex::new(path);
    }
    let segments = path
        .split('/')
        .map(|segment| if segment.starts_with('{') { "[^/]+".to_owned() } else { regex::escape(segment) });
    Regex::new(&format!("^{}$", segments.collect::<Vec<_>>().join("/")))
}

fn literal(path: &str) -> Regex {
    Regex::new(&regex::escape(path)).expect("an escaped text is a valid expression")
}

/// When during a request faults may strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultMoment {
    /// There is no connection yet.
    Connecting,
    /// The request is counted, and nothing is done.
    Before,
    /// A write is done.
    AfterWrite,
}

impl Fault {
    fn moment(&self) -> FaultMoment {
        match self.when {
            When::AfterWrite => FaultMoment::AfterWrite,
            When::Before if self.effect == Effect::Refused => FaultMoment::Connecting,
            When::Before => FaultMoment::Before,
        }
    }
}

/// Faults that are still to come.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

/// A fault that hits this request.
#[derive(Clone, Debug)]
pub(crate) struct Strike {
    pub(crate) effect: Effect,
    pub(crate) retry_after: Option<Duration>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first fault planned for this moment of this request.
    pub(crate) fn strike(&mut self, moment: FaultMoment, method: &Method, path: &str, ids: &mut Ids) -> Option<Strike> {
        let mut struck = None;
        for fault in self.0.iter_mut().filter(|fault| fault.moment() == moment && fault.fits(method, path)) {
            if fault.strikes(ids) {
                struck = Some(Strike { effect: fault.effect.clone(), retry_after: fault.retry_after });
                break;
            }
        }
        self.0.retain(|fault| !fault.spent());
        struck
    }
}

/// A fault as JSON, with the names that an older fake of the API used beside our own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Described {
    #[serde(default)]
    method: String,
    #[serde(default, alias = "path_pattern", alias = "pathPattern", alias = "pattern", alias = "endpoint")]
    path: String,
    #[serde(default, alias = "type", alias = "kind", alias = "error_type", alias = "errorType")]
    effect: Option<String>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    code: Option<u64>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    when: Option<String>,
    #[serde(default, alias = "count", alias = "max_count", alias = "maxCount")]
    times: Option<u32>,
    #[serde(default)]
    nth: Option<u32>,
    #[serde(default)]
    probability: Option<f64>,
    #[serde(default, alias = "retryAfter")]
    retry_after: Option<u64>,
}

impl Described {
    pub(crate) fn fault(self) -> Result<Fault, String> {
        pattern(&self.path).map_err(|error| format!("path: {error}"))?;
        let effect = self.effect()?;
        let when = match self.when.as_deref() {
            None | Some("before") => When::Before,
            Some("after_write" | "after") => When::AfterWrite,
            Some(other) => return Err(format!("when: \"{other}\" is neither before nor after_write")),
        };
        let count = match (self.times, self.nth, self.probability) {
            (Some(n), None, None) => Count::Times(n),
            (None, Some(n), None) => Count::Nth(n),
            (None, None, Some(p)) => Count::Probability(p),
            (None, None, None) => Count::Always,
            _ => return Err("give at most one of times, nth and probability".to_owned()),
        };
        let fault = Fault::on(&self.method, &self.path, effect).when(when).count(count);
        Ok(match self.retry_after {
            Some(seconds) => fault.retry_after(Duration::from_secs(seconds)),
            None => fault,
        })
    }

    fn effect(&self) -> Result<Effect, String> {
        let effect = match (self.effect.as_deref(), self.status) {
            (None | Some("status" | "custom"), Some(status)) => Effect::status(status),
            (Some("timeout"), _) => Effect::Timeout,
            (Some("reset" | "connection_reset"), _) => Effect::Reset,
            (Some("refused"), _) => Effect::Refused,
            (Some("rate_limit"), status) => Effect::status(status.unwrap_or(429)),
            (Some("server_error"), status) => Effect::status(status.unwrap_or(500)),
            (Some("conflict"), status) => Effect::status(status.unwrap_or(409)),
            (Some("not_found"), status) => Effect::status(status.unwrap_or(404)),
            (Some(other), _) => return Err(format!("effect: \"{other}\" is unknown")),
            (None, None) => return Err("give a status or an effect".to_owned()),
        };
        Ok(match effect {
            Effect::Status { status, code, message } => Effect::Status {
                status,
                code: self.code.unwrap_or(code),
                message: self.message.clone().unwrap_or(message),
            },
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hits(fault: Fault, path: &str, requests: usize) -> Vec<bool> {
        let (mut faults, mut ids) = (Faults::default(), Ids::new(1));
        faults.add(fault);
        let strike = |_| faults.strike(FaultMoment::Before, &Method::POST, path, &mut ids).is_some();
        (0..requests).map(strike).collect()
    }

    #[test]
    fn counts_choose_the_requests() {
        let fault = |count| Fault::on("POST", "/zones", Effect::Reset).count(count);

        assert_eq!(hits(fault(Count::Times(2)), "/zones", 4), [true, true, false, false]);
        assert_eq!(hits(fault(Count::Nth(3)), "/zones", 4), [false, false, true, false]);
        assert_eq!(hits(fault(Count::Always), "/zones", 2), [true, true]);
        let likely = hits(fault(Count::Probability(0.3)), "/zones", 1000).iter().filter(|hit| **hit).count();
        assert!((200..400).contains(&likely), "{likely}");
    }

    #[test]
    fn templates_fit_in_whole_and_expressions_anywhere() {
        let fault = |path| Fault::on("", path, Effect::Timeout);

        assert_eq!(hits(fault("/zones/{zone_id}/dns_records"), "/zones/1/dns_records", 1), [true]);
        assert_eq!(hits(fault("/zones/{zone_id}/dns_records"), "/zones/1/dns_records/2", 1), [false]);
        assert_eq!(hits(fault("dns_rec.*"), "/zones/1/dns_records/2", 1), [true]);
        assert_eq!(hits(Fault::on("GET", "dns", Effect::Timeout), "/zones/1/dns_records", 1), [false]);
    }

    #[test]
    fn the_older_fakes_words_are_understood() {
        let read = |value| serde_json::from_value::<Described>(value).unwrap().fault();

        let fault =
            read(json!({"path_pattern": "/zones", "type": "rate_limit", "count": 1, "retry_after": 7})).unwrap();
        assert_eq!(fault.effect, Effect::status(429));
        assert_eq!((fault.count, fault.retry_after), (Count::Times(1), Some(Duration::from_secs(7))));
        assert!(read(json!({"path": "x"})).is_err());
        assert!(read(json!({"path": "(", "status": 500})).is_err());
        assert!(read(json!({"path": "x", "status": 500, "nth": 1, "times": 1})).is_err());
    }
}
