//! Whether an account or zone is gone, with everything that was in it, or only out of a credential's sight.
//!
//! What the API answers for a well-formed id of a zone that is gone is not documented. Known are 404 with 7003 below it
//! and 1001 `Invalid zone identifier` for itself (also with 400: cloudflare/terraform-provider-cloudflare#192), and 403
//! with 9109 from another implementation of the API. A token that lost its right to a zone is answered 403, too. So the
//! answer alone proves nothing, and the finalizer stays, unless the same credential still sees what else is in the account.

use portolan_cloudflare_api::{
    ApiError, Client, Collection, ErrorClass, Lane, Page, Scope as RemoteScope, collections,
};
use portolan_core::{Problem, reasons};
use serde_json::Value;

use crate::credentials;
use crate::job::JobContext;

/// `Invalid zone identifier`, with 400 or 404.
const NO_SUCH_ZONE: u64 = 1001;
/// How many neighbours are looked at: one is enough.
const NEIGHBOURS: u32 = 5;

/// What became of an account or zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScopePresence {
    /// It is gone, and everything in it.
    Gone,
    /// It is there.
    There,
    /// It cannot be told, and why.
    Unclear(&'static str),
}

/// How a request for the account or zone itself was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopeAnswer {
    Found,
    NotFound,
    Refused,
}

/// What was seen of an account or zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Evidence {
    /// The answer to the credential that wrote there.
    answer: ScopeAnswer,
    /// Whether that credential sees others of the same account; `None` where it may not list them.
    neighbours: Option<bool>,
    /// Whether another credential of the cluster sees it.
    seen_by_others: bool,
}

/// Judges what was seen. Pure.
fn judge(evidence: Evidence) -> ScopePresence {
    match evidence {
        Evidence { answer: ScopeAnswer::Found, .. } => ScopePresence::There,
        Evidence { seen_by_others: true, .. } => ScopePresence::Unclear(
            "another credential still sees it, so the one that was used has lost its right to it",
        ),
        Evidence { answer: ScopeAnswer::NotFound, neighbours: Some(_), .. }
        | Evidence { answer: ScopeAnswer::Refused, neighbours: Some(true), .. } => ScopePresence::Gone,
        Evidence { answer: ScopeAnswer::Refused, neighbours: Some(false), .. } => ScopePresence::Unclear(
            "the credential sees nothing else of the account either, so it may have lost its rights",
        ),
        Evidence { neighbours: None, .. } => {
            ScopePresence::Unclear("the credential may not list what else there is, so it may have lost its rights")
        }
    }
}

/// Whether an answer to something in an account or zone may mean that this itself is gone.
pub(crate) fn is_suspicious(error: &ApiError) -> bool {
    matches!(error.class, ErrorClass::NotFound | ErrorClass::Auth) || error.has_code(NO_SUCH_ZONE)
}

impl JobContext {
    /// What became of an account or zone, asked with the credential that wrote there. `account` is where neighbours count.
    pub(crate) async fn standing(
        &self,
        client: &Client,
        scope: RemoteScope,
        id: &str,
        account: Option<&str>,
    ) -> Result<ScopePresence, Problem> {
        let collection: &Collection = match scope {
            RemoteScope::Zone => &collections::ZONES,
            RemoteScope::Account => &collections::ACCOUNTS,
            RemoteScope::Root => return Ok(ScopePresence::There),
        };
        let answer = ask(client, collection, id).await?;
        let neighbours =
            if answer == ScopeAnswer::Found { None } else { neighbours(client, collection, id, account).await? };
        let seen_by_others = answer != ScopeAnswer::Found && self.is_seen_by_others(client, collection, id).await?;
        Ok(judge(Evidence { answer, neighbours, seen_by_others }))
    }

    async fn is_seen_by_others(&self, client: &Client, collection: &Collection, id: &str) -> Result<bool, Problem> {
        for credentials in self.credentials.iter() {
            let other = credentials::open(&credentials, &self.secrets, &self.clients, &self.operator_namespace).await;
            let Ok(other) = other else { continue };
            let is_another = other.client.identity() != client.identity();
            if is_another && ask(&other.client, collection, id).await? == ScopeAnswer::Found {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Asks for the account or zone itself.
async fn ask(client: &Client, collection: &Collection, id: &str) -> Result<ScopeAnswer, Problem> {
    match client.send(Lane::Protect, &collection.get("", id)).await {
        Ok(_) => Ok(ScopeAnswer::Found),
        Err(error) if error.class == ErrorClass::NotFound || error.has_code(NO_SUCH_ZONE) => Ok(ScopeAnswer::NotFound),
        Err(error) if error.class == ErrorClass::Auth => Ok(ScopeAnswer::Refused),
        Err(error) => Err(error.problem(&format!("asking whether {id} is still there"))),
    }
}

/// Whether the credential sees others of the account.
async fn neighbours(
    client: &Client,
    collection: &Collection,
    id: &str,
    account: Option<&str>,
) -> Result<Option<bool>, Problem> {
    let mut request = collection.list("", &Page { number: 1, per_page: NEIGHBOURS, cursor: None });
    let of_account = account.filter(|_| collection.name == collections::ZONES.name);
    if let Some(account) = of_account {
        request = request.with_query("account.id", account);
    }
    match client.send(Lane::Protect, &request).await {
        Ok(Value::Array(listed)) => {
            let is_other = |one: &Value| one["id"].as_str().is_some_and(|other| other != id);
            // Zones of nobody knows which account say nothing of one that may be another's.
            let counts = collection.name != collections::ZONES.name || of_account.is_some();
            Ok(Some(counts && listed.iter().any(is_other)))
        }
        Ok(_) => Ok(None),
        Err(error) if is_suspicious(&error) => Ok(None),
        Err(error) => Err(error.problem("asking what else the credential sees")),
    }
}

/// What to say where it cannot be told whether a place is gone.
pub(crate) fn unproven(problem: Problem, why: &str) -> Problem {
    let way = "give the credential its rights back, or let the object go by the annotation \
               cloudflare-operator.io/force-delete: \"true\"";
    let message = format!("{}; {why}. What was published may still stand: {way}", problem.message);
    Problem { message, ..Problem::denied(reasons::CREDENTIALS_DENIED, "") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(answer: ScopeAnswer, neighbours: Option<bool>, seen_by_others: bool) -> ScopePresence {
        judge(Evidence { answer, neighbours, seen_by_others })
    }

    #[test]
    fn s12_a_zone_that_is_gone_is_gone_by_either_answer() {
        assert_eq!(seen(ScopeAnswer::NotFound, Some(true), false), ScopePresence::Gone);
        assert_eq!(seen(ScopeAnswer::NotFound, Some(false), false), ScopePresence::Gone);
        assert_eq!(seen(ScopeAnswer::Refused, Some(true), false), ScopePresence::Gone);
    }

    #[test]
    fn s12_a_credential_that_lost_its_rights_proves_nothing() {
        for answer in [ScopeAnswer::NotFound, ScopeAnswer::Refused] {
            assert!(matches!(seen(answer, None, false), ScopePresence::Unclear(_)), "{answer:?}");
            assert!(matches!(seen(answer, Some(true), true), ScopePresence::Unclear(_)), "{answer:?}");
        }
        assert!(matches!(seen(ScopeAnswer::Refused, Some(false), false), ScopePresence::Unclear(_)));
    }

    #[test]
    fn what_is_found_is_there() {
        assert_eq!(seen(ScopeAnswer::Found, None, false), ScopePresence::There);
    }
}
