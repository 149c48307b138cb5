//! Short locks between the processes of one cluster, for documents that several of them write.

use std::time::Duration;

use tokio::time::timeout;

use portolan_core::{Problem, reasons};

use crate::context::Context;
use crate::jobs::leadership::Leadership;
use crate::jobs::lease::{Election, Term};

/// Makes locks for one process.
pub struct DocumentLock {
    identity: String,
}

/// A lock that is held. Dropped without [`release`](Self::release), it expires by itself.
pub struct HeldLock(Term);

impl DocumentLock {
    /// Locks under an identity of this process.
    pub fn new(identity: impl Into<String>) -> Self {
        Self { identity: identity.into() }
    }

    /// Waits for the lock of a document, at most for `patience`.
    pub async fn acquire(&self, context: &Context, document: &str, patience: Duration) -> Result<HeldLock, Problem> {
        let election = Election::new(context, lease_name(document), self.identity.as_str());
        let term = timeout(patience, election.acquire()).await;
        term.map(HeldLock).map_err(|_| {
            let message = format!("another process has been writing {document} for {} s", patience.as_secs());
            Problem::transient(reasons::PENDING, message)
        })
    }
}

impl HeldLock {
    /// Keeps the lock while a long write is under way; returns when it is lost.
    pub async fn hold(&mut self) {
        self.0.hold().await;
    }

    /// Whether the lock still holds.
    pub fn leadership(&self) -> Leadership {
        self.0.leadership()
    }

    /// Lets the next one in.
    pub async fn release(self) {
        self.0.release().await;
    }
}

/// Leases have short names of few characters; documents need not.
fn lease_name(document: &str) -> String {
    let digest = portolan_core::OwnerId::derive(document);
    let readable: String = document.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("portolan-lock-{readable}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_any_name_have_leases_of_valid_names() {
        let name = lease_name("zones/Example.COM/rulesets");

        assert!(name.starts_with("portolan-lock-zonesexamplecomrulesets-"), "{name}");
        assert!(name.len() <= 63);
        assert_ne!(name, lease_name("zones/example.com/rulesets"));
    }
}
