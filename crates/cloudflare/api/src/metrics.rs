//! What the client counts, with bounded labels: path templates, methods, statuses, lanes, collections and credentials.

use std::time::Duration;

use portolan_core::Metric;
use portolan_core::metric::Alert;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::budget::governor::Lane;
use crate::call::request::Request;

/// What the client measures.
pub const METRICS: &[Metric] = &[REQUESTS, DURATIONS, RETRIES, WAITS, BUDGET, COMMITS, QUOTA];

const REQUESTS: Metric = Metric::counter(
    "portolan_cloudflare_requests",
    &["template", "method", "status"],
    "Requests to Cloudflare by path template, method and status; `none` where no answer came",
)
.panel("Requests by status", "reqps", "sum by (status) (rate(portolan_cloudflare_requests_total[5m]))")
.alert(Alert {
    name: "PortolanCloudflareRefuses",
    lasts: "10m",
    when: "sum by (template, status) (rate(portolan_cloudflare_requests_total{status=~\"401|403|429|5..|none\"}[10m])) > 0.02",
    says: "Cloudflare answers {{ $labels.status }} to {{ $labels.template }}: 401 and 403 mean a token without a permission \
           (`portolan doctor` names it), 429 that the limit is used up, 5xx and none that the API is in trouble",
});
const DURATIONS: Metric = Metric::histogram(
    "portolan_cloudflare_request_duration_seconds",
    &["template", "method"],
    "How long Cloudflare took to answer a request",
)
.panel(
    "Duration of requests (95 %)",
    "s",
    "histogram_quantile(0.95, sum by (template, le) (rate(portolan_cloudflare_request_duration_seconds_bucket[5m])))",
);
const RETRIES: Metric =
    Metric::counter("portolan_cloudflare_retries", &["template", "method"], "Requests that were sent again");
const WAITS: Metric = Metric::histogram(
    "portolan_cloudflare_limiter_wait_seconds",
    &["lane"],
    "How long requests were held back to keep within the API's limit",
)
.panel(
    "Wait for the limit (95 %)",
    "s",
    "histogram_quantile(0.95, sum by (lane, le) (rate(portolan_cloudflare_limiter_wait_seconds_bucket[5m])))",
);
const BUDGET: Metric = Metric::gauge(
    "portolan_cloudflare_budget_left",
    &["credential"],
    "Requests that a credential has left in the API's window; credentials are told apart by a hash",
)
.panel("Requests left in the window", "short", "min by (credential) (portolan_cloudflare_budget_left)")
.alert(Alert {
    name: "PortolanBudgetLow",
    lasts: "10m",
    when: "min by (credential) (portolan_cloudflare_budget_left) < 100",
    says: "A credential has {{ $value }} requests left in its window of five minutes: others use the same token or account, or \
           more changes than usual are under way; work goes on more slowly",
});
const COMMITS: Metric = Metric::histogram(
    "portolan_cloudflare_group_commit_operations",
    &["collection"],
    "Operations that went out in one write",
);
const QUOTA: Metric = Metric::gauge(
    "portolan_cloudflare_quota_left",
    &["collection", "scope"],
    "Objects that the known limit of an account or zone leaves, from nine tenths of the limit on",
)
.panel("Objects that limits leave", "short", "min by (collection, scope) (portolan_cloudflare_quota_left)")
.alert(Alert {
    name: "PortolanQuotaNearlyReached",
    lasts: "10m",
    when: "min by (collection, scope) (portolan_cloudflare_quota_left) >= 0",
    says: "{{ $labels.scope }} has room for {{ $value }} more in {{ $labels.collection }} by the limit that is known: delete some, \
           ask Cloudflare for more, or tell Portolan of a higher limit with --cloudflare-limits",
});

/// The client's metrics; clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<CallLabels, Histogram, fn() -> Histogram>,
    retries: Family<CallLabels, Counter>,
    waits: Family<LaneLabels, Histogram, fn() -> Histogram>,
    budget: Family<CredentialLabels, Gauge>,
    commits: Family<CollectionLabels, Histogram, fn() -> Histogram>,
    quota: Family<ScopeLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    template: &'static str,
    method: String,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabels {
    collection: &'static str,
    scope: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.01, 2.0, 12))),
            retries: Family::default(),
            waits: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 4.0, 10))),
            budget: Family::default(),
            commits: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 13))),
            quota: Family::default(),
        }
    }
}

impl Metrics {
    /// Shows them in a registry.
    pub fn register(&self, registry: &mut Registry) {
        REQUESTS.register(registry, self.requests.clone());
        DURATIONS.register(registry, self.durations.clone());
        RETRIES.register(registry, self.retries.clone());
        WAITS.register(registry, self.waits.clone());
        BUDGET.register(registry, self.budget.clone());
        COMMITS.register(registry, self.commits.clone());
        QUOTA.register(registry, self.quota.clone());
    }

    /// Requests sent so far, all labels together.
    pub fn requests_sent(&self, template: &'static str, method: &str, status: u16) -> u64 {
        let labels = RequestLabels { template, method: method.to_owned(), status: status.to_string() };
        self.requests.get_or_create(&labels).get()
    }

    pub(crate) fn answered(&self, request: &Request, status: Option<u16>, took: Duration) {
        let call = CallLabels { template: request.template, method: request.method.to_string() };
        self.durations.get_or_create(&call).observe(took.as_secs_f64());
        let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let labels = RequestLabels { template: request.template, method: request.method.to_string(), status };
        self.requests.get_or_create(&labels).inc();
    }

    pub(crate) fn retried(&self, request: &Request) {
        let labels = CallLabels { template: request.template, method: request.method.to_string() };
        self.retries.get_or_create(&labels).inc();
    }

    pub(crate) fn waited(&self, lane: Lane, seconds: f64) {
        self.waits.get_or_create(&LaneLabels { lane: lane.as_str() }).observe(seconds);
    }

    pub(crate) fn budget_left(&self, credential: &str, left: u32) {
        self.budget.get_or_create(&CredentialLabels { credential: credential.to_owned() }).set(i64::from(left));
    }

    pub(crate) fn budget_gone(&self, credential: &str) {
        self.budget.remove(&CredentialLabels { credential: credential.to_owned() });
    }

    pub(crate) fn committed(&self, collection: &'static str, operations: usize) {
        let operations = u32::try_from(operations).unwrap_or(u32::MAX);
        self.commits.get_or_create(&CollectionLabels { collection }).observe(f64::from(operations));
    }

    /// How many more the known limit leaves; none where there is room enough.
    pub(crate) fn quota_left(&self, collection: &'static str, scope: &str, left: Option<usize>) {
        let labels = ScopeLabels { collection, scope: scope.to_owned() };
        match left {
            Some(left) => {
                self.quota.get_or_create(&labels).set(i64::try_from(left).unwrap_or(i64::MAX));
            }
            None => {
                self.quota.remove(&labels);
            }
        }
    }
}
