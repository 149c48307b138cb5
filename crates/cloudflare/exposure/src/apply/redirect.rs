//! The redirect rule. A credential that may not edit it is no failure: the user is told.

use portolan_cloudflare_api::{ApiError, ErrorClass, Request};
use serde_json::Value;

use super::{Fault, StepEffect, StepRun};
use crate::inventory::RedirectHeld;
use crate::journal::Journal;
use crate::plan::not_managed;
use crate::redirect::{self, RefusedRedirect, may_pass};

/// How often a name is planned anew because others made or took away the zone's ruleset meanwhile. The last attempt of a run
/// is one more: a name is not held up by its redirect.
const CHANGES: u32 = 3;

impl<J: Journal> StepRun<'_, J> {
    pub(super) async fn create_redirect(
        &mut self,
        zone_id: &str,
        hostname: &str,
        ruleset_id: Option<&str>,
        body: &Value,
    ) -> Result<StepEffect, Fault> {
        let request = match ruleset_id {
            Some(ruleset_id) => redirect::create(zone_id, ruleset_id, body),
            None => redirect::create_ruleset(zone_id, body),
        };
        let sent = self.send_redirect(zone_id, hostname, &request, body).await?;
        let Some(ruleset) = sent else { return Ok(StepEffect::Nothing) };
        let rule = redirect::find(&ruleset, &self.exposure.mark).and_then(redirect::id);
        let ruleset_id = redirect::id(&ruleset).or_else(|| ruleset_id.map(str::to_owned));
        if let (Some(rule_id), Some(ruleset_id)) = (rule, ruleset_id) {
            let (zone_id, hostname) = (zone_id.to_owned(), hostname.to_owned());
            self.held.redirects.push(RedirectHeld { zone_id, hostname, ruleset_id, rule_id, adopted: false });
        }
        Ok(StepEffect::Planned)
    }

    pub(super) async fn update_redirect(
        &mut self,
        zone_id: &str,
        ruleset_id: &str,
        rule_id: &str,
        body: &Value,
    ) -> Result<StepEffect, Fault> {
        let request = redirect::update(zone_id, ruleset_id, rule_id, body);
        let written = self.send_redirect(zone_id, zone_id, &request, body).await?;
        Ok(if written.is_some() { StepEffect::Planned } else { StepEffect::Nothing })
    }

    /// The zone's ruleset stays, also without a rule: it goes with all that is in it, no request says "only if it is
    /// empty", and the rule that somebody adds meanwhile is not ours to delete. Taking the last redirect away in
    /// Cloudflare's dashboard leaves it too.
    pub(super) async fn delete_redirect(
        &mut self,
        zone_id: &str,
        ruleset_id: &str,
        rule_id: &str,
    ) -> Result<StepEffect, Fault> {
        let doing = format!("deleting the redirect rule {rule_id}");
        let deleted = self.client.send(self.lane(), &redirect::delete(zone_id, ruleset_id, rule_id)).await;
        gone(deleted).map_err(|error| Fault { problem: error.problem(&doing), stale: false })?;
        self.held.redirects.retain(|held| held.rule_id != rule_id);
        Ok(StepEffect::Planned)
    }

    /// The answer; none where redirects cannot be had. A name is never held up by one that the zone does not allow, and what was
    /// refused is remembered.
    async fn send_redirect(
        &mut self,
        zone_id: &str,
        hostname: &str,
        request: &Request,
        body: &Value,
    ) -> Result<Option<Value>, Fault> {
        let error = match self.client.send(self.lane(), request).await {
            Ok(answer) => {
                self.held.redirect_refusal = None;
                return Ok(Some(answer));
            }
            Err(error) => error,
        };
        let doing = format!("redirecting http://{hostname}");
        if may_pass(&error) {
            return Err(self.fault_of_post(&error, &doing).await);
        }
        if error.class != ErrorClass::Auth && self.attempt < CHANGES && self.has_changed(zone_id, request).await {
            return Err(Fault { problem: error.problem(&doing), stale: true });
        }
        let digest = redirect::digest(zone_id, body, self.client.identity().as_str());
        self.held.redirect_refusal = Some(RefusedRedirect::new(digest, self.client.time(), &error.message).to_string());
        self.notices.push(not_managed(hostname, &error.message));
        Ok(None)
    }

    /// Whether the zone's ruleset came or went since the plan was made.
    async fn has_changed(&self, zone_id: &str, request: &Request) -> bool {
        let now = self.client.send(self.lane(), &redirect::read(zone_id)).await;
        let now = now.ok().as_ref().and_then(redirect::id);
        match now {
            Some(id) => !request.path.contains(&id),
            None => !redirect::makes_ruleset(request),
        }
    }
}

/// What is gone already counts as deleted.
fn gone(answer: Result<Value, ApiError>) -> Result<(), ApiError> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.class == ErrorClass::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
