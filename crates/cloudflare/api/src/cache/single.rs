//! Objects that change hardly ever: read once, then kept for a while by everybody who uses the credential.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::cache::snapshot_store::Freshness;
use crate::call::error::{ApiError, ErrorClass};
use crate::call::options::CallOptions;
use crate::call::request::Request;
use crate::call::sender::{Exit, Sender};

/// So long an answer is believed by those who ask for something fresh; others believe it for good, as they do snapshots.
const KEPT: Duration = Duration::from_secs(3600);
/// So long a refusal is believed: whoever gives the credential the right does not wait much longer for it.
const REFUSAL_KEPT: Duration = Duration::from_secs(60);

/// An object that an account has one of, or that is a zone itself.
#[derive(Debug)]
pub struct Single {
    /// Short name, unique among them.
    pub name: &'static str,
    /// Path template, with the scope's id in it.
    pub template: &'static str,
}

/// An account's Zero Trust organisation; its `auth_domain` (`team.cloudflareaccess.com`) holds the team's name.
/// <https://developers.cloudflare.com/api/resources/zero_trust/subresources/organizations/methods/list/>
pub static ACCESS_ORGANIZATION: Single =
    Single { name: "access_organization", template: "/accounts/{account_id}/access/organizations" };

/// A zone: its plan, and so what it may hold.
/// <https://developers.cloudflare.com/api/resources/zones/methods/get/>
pub static ZONE: Single = Single { name: "zone", template: "/zones/{zone_id}" };

/// What was last heard of an object: none where it may not be seen or is not there.
type Heard = Option<(Instant, Option<Arc<Value>>)>;

/// The object of one scope. Those who ask at the same time share a request.
#[derive(Clone)]
pub(crate) struct SingleHandle {
    sender: Arc<Sender>,
    request: Request,
    heard: Arc<Mutex<Heard>>,
}

impl SingleHandle {
    pub(crate) fn new(sender: Arc<Sender>, single: &'static Single, scope_id: &str) -> Self {
        Self { sender, request: Request::get(single.template, &[scope_id]), heard: Arc::default() }
    }

    /// The object, read anew only if it was not for a while; none where it may not be seen or is not there.
    pub(crate) async fn get(&self, options: CallOptions, freshness: Freshness) -> Result<Option<Arc<Value>>, ApiError> {
        let mut heard = self.heard.lock().await;
        if let Some((_, value)) = heard.as_ref().filter(|(at, value)| at.elapsed() < kept(value.is_some(), freshness)) {
            return Ok(value.clone());
        }
        let value = match self.sender.answer::<Value>(None, options, Exit::FREE, &self.request).await {
            Ok(answer) => Some(Arc::new(answer.result)),
            Err(error) if is_final(&error) => None,
            Err(error) => return Err(error),
        };
        *heard = Some((Instant::now(), value.clone()));
        Ok(value)
    }
}

fn kept(found: bool, freshness: Freshness) -> Duration {
    match (found, freshness) {
        (false, _) => REFUSAL_KEPT,
        (true, Freshness::Any) => Duration::MAX,
        (true, Freshness::Within(_) | Freshness::AfterNow) => KEPT,
    }
}

/// Whether asking again at once would say the same.
fn is_final(error: &ApiError) -> bool {
    matches!(error.class, ErrorClass::Auth | ErrorClass::NotFound) || error.is_access_not_enabled()
}
