//! The edge's own errors, with Cloudflare's numbers.

use super::decision::EdgeOutcome;

/// 1016: the name leads nowhere.
pub(super) fn dns(reason: String) -> EdgeOutcome {
    EdgeOutcome::Unreachable { status: 530, code: 1016, reason }
}

/// 1033: the tunnel cannot be used.
pub(super) fn tunnel(reason: String) -> EdgeOutcome {
    EdgeOutcome::Unreachable { status: 530, code: 1033, reason }
}

/// 522: the origin is outside, and nobody answers there.
pub(super) fn outside(reason: String) -> EdgeOutcome {
    EdgeOutcome::Unreachable { status: 522, code: 522, reason }
}

/// 502: the tunnel's client cannot reach the service.
pub(super) fn origin(reason: String) -> EdgeOutcome {
    EdgeOutcome::Unreachable { status: 502, code: 502, reason }
}
