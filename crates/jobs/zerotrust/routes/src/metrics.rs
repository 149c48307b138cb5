//! What the route side measures: how routes stand, which names are published, and when service tokens end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_core::metric::Alert;
use portolan_core::{Metric, ObjectKey};
use portolan_engine::{CollectedFrom, CollectedGauge, LabelledCounts};
use portolan_exposure::{Footprint, Live};
use portolan_zerotrust_model::State;
use portolan_zerotrust_model::state::{PublishMode, StatePhase};

use crate::route_status::RouteStatus;
use crate::shared::RoutesContext;

/// What the route side measures.
pub const METRICS: &[Metric] = &[ROUTES, NAMES, EXPIRY];

const ROUTES: Metric = Metric::gauge(
    "portolan_zerotrust_routes",
    &["state", "reason"],
    "Routes that ask for a name: `ready`, `working`, or `failed` with the reason",
)
.panel("Routes by state", "short", "sum by (state, reason) (portolan_zerotrust_routes)")
.alert(Alert {
    name: "PortolanRoutesFail",
    lasts: "15m",
    when: "sum by (reason) (portolan_zerotrust_routes{state=\"failed\"}) > 0",
    says: "{{ $value }} routes are not published as asked, for {{ $labels.reason }}: the page on troubleshooting has an entry for \
           it, and `portolan why HOSTNAME` tells about one of them",
});
const NAMES: Metric = Metric::gauge(
    "portolan_zerotrust_names",
    &["mode", "protected"],
    "Names that are published, through a `tunnel` or `dns-only`, and whether Access protects them",
)
.panel("Published names", "short", "sum by (mode, protected) (portolan_zerotrust_names)");
const EXPIRY: Metric = Metric::gauge(
    "portolan_zerotrust_token_expiry_timestamp_seconds",
    &["tenant"],
    "When the first of a tenant's service tokens ends, as the last comparison with Cloudflare saw it",
)
.panel("Time until a service token ends", "s", "min by (tenant) (portolan_zerotrust_token_expiry_timestamp_seconds) - time()")
.alert(Alert {
    name: "PortolanTokenExpires",
    lasts: "1h",
    when: "min by (tenant) (portolan_zerotrust_token_expiry_timestamp_seconds) - time() < 7 * 86400",
    says: "A service token of tenant {{ $labels.tenant }} ends within a week though tokens are renewed long before: look for \
           failed tasks of the tenant",
});

/// Gauges of the route side.
pub(crate) struct Metrics {
    routes: CollectedGauge,
    names: CollectedGauge,
    expiry: CollectedGauge,
}

impl Metrics {
    /// Part of the process's metrics.
    pub(crate) fn registered(all: &portolan_engine::Metrics) -> Self {
        Self { routes: all.counted(&ROUTES), names: all.counted(&NAMES), expiry: all.counted(&EXPIRY) }
    }

    /// From now on this is counted.
    pub(crate) fn count(&self, shared: &Arc<RoutesContext>) -> [CollectedFrom; 3] {
        let of = |counted: &CollectedGauge, count: fn(&RoutesContext) -> LabelledCounts| {
            let shared = Arc::clone(shared);
            counted.source(move || count(&shared))
        };
        [of(&self.routes, routes), of(&self.names, names), of(&self.expiry, expiry)]
    }
}

fn routes(shared: &RoutesContext) -> LabelledCounts {
    let mut counts = LabelledCounts::new();
    for state in ["ready", "working"] {
        counts.insert(vec![state.to_owned(), String::new()], 0);
    }
    let mut count = |one: &RouteStatus| {
        let (state, reason) = match &one.failure {
            Some((reason, _)) => ("failed", *reason),
            None if one.settled => ("ready", ""),
            None => ("working", ""),
        };
        *counts.entry(vec![state.to_owned(), reason.to_owned()]).or_default() += 1;
    };
    shared.statuses.each(|(_, status)| count(status));
    counts
}

fn names(shared: &RoutesContext) -> LabelledCounts {
    let label = |mode: PublishMode, protected: bool| vec![mode.as_str().to_owned(), protected.to_string()];
    let modes = [(PublishMode::Tunnel, false), (PublishMode::Tunnel, true), (PublishMode::DnsOnly, false)];
    let mut counts: LabelledCounts = modes.into_iter().map(|(mode, protected)| (label(mode, protected), 0)).collect();
    for known in shared.state_index.all() {
        let State { footprint, mode, phase, .. } = &known.state;
        if *phase == StatePhase::Active && footprint.is_published() {
            *counts.entry(label(*mode, footprint.access_app_id.is_some())).or_default() += 1;
        }
    }
    counts
}

/// The earliest end of each tenant's tokens. A tenant's name is a label here, because whoever is told that a token ends must
/// know whose; there are few tenants, and routes cannot make any.
fn expiry(shared: &RoutesContext) -> LabelledCounts {
    let mut earliest = LabelledCounts::new();
    for known in shared.state_index.all() {
        let State { tenant, footprint, route, .. } = &known.state;
        let (Some(tenant), Some(end)) = (tenant, shared.ends.of(route, footprint)) else { continue };
        earliest.entry(vec![tenant.to_string()]).and_modify(|first| *first = end.min(*first)).or_insert(end);
    }
    earliest
}

/// When the service tokens of routes end, in seconds since 1970, as the last look at them said.
#[derive(Default)]
pub(crate) struct Ends {
    seen: Mutex<BTreeMap<ObjectKey, (String, i64)>>,
}

impl Ends {
    /// Notes what stands at Cloudflare for a route.
    pub(crate) fn note(&self, route: &ObjectKey, recorded: &Footprint, live: &Live) {
        let found = recorded.service_token_id.as_ref().and_then(|id| {
            let token = live.tokens.iter().find(|entry| entry.id == *id)?;
            Some((id.clone(), token.item.expires_at?.as_second()))
        });
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Some(found) => seen.insert(route.clone(), found),
            None => seen.remove(route),
        };
    }

    /// Forgets routes for which nothing is recorded any more.
    pub(crate) fn retain(&self, is_known: impl Fn(&ObjectKey) -> bool) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|route, _| is_known(route));
    }

    /// When the token that is recorded for a route ends.
    fn of(&self, route: &ObjectKey, recorded: &Footprint) -> Option<i64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, end) = seen.get(route)?;
        (Some(id) == recorded.service_token_id.as_ref()).then_some(*end)
    }
}
