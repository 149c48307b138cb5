//! Whether writes may still be sent.

use std::fmt;
use std::sync::Arc;

/// Says whether whoever holds it may still write; asked right before each write leaves. A gate keeps alive what it asks, such as the
/// turn to write a document.
#[derive(Clone)]
pub struct WriteGate(Arc<dyn Fn() -> bool + Send + Sync>);

impl WriteGate {
    /// Open while `may` says so.
    pub fn new(may: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may))
    }

    /// Open while both are.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (one, other) = (self.clone(), other.clone());
        Self::new(move || one.is_open() && other.is_open())
    }

    /// Whether a write may leave now.
    pub fn is_open(&self) -> bool {
        (self.0)()
    }
}

impl Default for WriteGate {
    /// Always open: nobody else writes.
    fn default() -> Self {
        Self::new(|| true)
    }
}

impl fmt::Debug for WriteGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "WriteGate(open)" } else { "WriteGate(closed)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_gates_are_open_while_both_are() {
        let (open, closed) = (WriteGate::default(), WriteGate::new(|| false));

        assert!(open.and(&open).is_open());
        assert!(!open.and(&closed).is_open() && !closed.and(&open).is_open());
    }
}
