//! What the client counts, with bounded labels: path templates, methods, statuses, lanes, collections and credentials.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::governor::Lane;
use crate::request::Request;

/// The client's metrics; clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    retries: Family<RetryLabels, Counter>,
    waits: Family<LaneLabels, Histogram, fn() -> Histogram>,
    budget: Family<CredentialLabels, Gauge>,
    commits: Family<CollectionLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    template: &'static str,
    method: String,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RetryLabels {
    template: &'static str,
    method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LaneLabels {
    lane: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CredentialLabels {
    credential: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CollectionLabels {
    collection: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            retries: Family::default(),
            waits: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 4.0, 10))),
            budget: Family::default(),
            commits: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 13))),
        }
    }
}

impl Metrics {
    /// Shows them in a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("cloudflare");
        registry.register("requests", "Requests by path template, method and status", self.requests.clone());
        registry.register("retries", "Requests sent again", self.retries.clone());
        registry.register("limiter_wait_seconds", "Time that requests waited for the governor", self.waits.clone());
        registry.register("budget_left", "Requests left in the API's window", self.budget.clone());
        registry.register("group_commit_operations", "Operations sent in one write", self.commits.clone());
    }

    /// Requests sent so far, all labels together.
    pub fn requests_sent(&self, template: &'static str, method: &str, status: u16) -> u64 {
        let labels = RequestLabels { template, method: method.to_owned(), status: status.to_string() };
        self.requests.get_or_create(&labels).get()
    }

    pub(crate) fn answered(&self, request: &Request, status: Option<u16>) {
        let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let labels = RequestLabels { template: request.template, method: request.method.to_string(), status };
        self.requests.get_or_create(&labels).inc();
    }

    pub(crate) fn retried(&self, request: &Request) {
        let labels = RetryLabels { template: request.template, method: request.method.to_string() };
        self.retries.get_or_create(&labels).inc();
    }

    pub(crate) fn waited(&self, lane: Lane, seconds: f64) {
        self.waits.get_or_create(&LaneLabels { lane: lane.as_str() }).observe(seconds);
    }

    pub(crate) fn budget_left(&self, credential: &str, left: u32) {
        self.budget.get_or_create(&CredentialLabels { credential: credential.to_owned() }).set(i64::from(left));
    }

    pub(crate) fn committed(&self, collection: &'static str, operations: usize) {
        let operations = u32::try_from(operations).unwrap_or(u32::MAX);
        self.commits.get_or_create(&CollectionLabels { collection }).observe(f64::from(operations));
    }
}
