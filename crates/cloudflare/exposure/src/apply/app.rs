//! The application: made with its policies in one request, changed as a whole or by one policy, and only trusted when the
//! answer shows the policies.

use http::Method;
use portolan_cloudflare_api::{
    ApiError, Created, Entry, ErrorClass, Lane, Op, Request, Snapshot, Written, collections,
};
use portolan_core::{Problem, reasons as core_reasons};
use portolan_publication::reasons;
use serde_json::{Value, json};

use super::sight::AppSight;
use super::{Fault, StepEffect, StepRun};
use crate::app::{App, AppDifference, AppWish, Made, Policies};
use crate::inventory::AppHeld;
use crate::journal::Journal;

const POLICIES: &str = "/accounts/{account_id}/access/apps/{app_id}/policies";
const POLICY: &str = "/accounts/{account_id}/access/apps/{app_id}/policies/{policy_id}";

impl<J: Journal> StepRun<'_, J> {
    pub(super) async fn create_app(&mut self, wish: &AppWish) -> Result<StepEffect, Fault> {
        portolan_core::waypoint!();
        let apps = self.apps();
        let (token_id, own_ids) = self.made(wish)?;
        let body = wish.create(Made { token_id: token_id.as_deref(), own_ids: &own_ids });
        let doing = format!("creating the Access application for {}", wish.hostname);
        let find = |apps: &Snapshot<App>| apps.by_key(wish.hostname.as_str()).next().cloned();
        match apps.create(self.lane(), body, find).await {
            Ok(Created::Made(entry)) => self.hold_app(entry, wish, &own_ids).await,
            // Whose it is has to be decided with a fresh look: ours of a call whose answer was lost, or somebody else's.
            Ok(Created::Found(entry)) => Err(Fault {
                problem: Problem::denied(
                    reasons::ACCESS_APP_CONFLICT,
                    format!("{doing}: the application {} stands there already", entry.id),
                ),
                stale: true,
            }),
            Err(error) => {
                let mut fault = self.app_refused(&error, &doing);
                if error.class == ErrorClass::Conflict {
                    fault.problem.reason = reasons::ACCESS_APP_CONFLICT;
                }
                Err(fault)
            }
        }
    }

    pub(super) async fn update_app(
        &mut self,
        id: &str,
        found: Option<&App>,
        wish: &AppWish,
    ) -> Result<StepEffect, Fault> {
        let doing = format!("changing the Access application for {}", wish.hostname);
        let held = self.held.app.as_ref().map(|app| app.id.clone()).unwrap_or_default();
        let id = if id.is_empty() { held } else { id.to_owned() };
        let planned = found;
        let found = match (planned, self.app.take()) {
            (None, Some(made)) => Entry { id: id.clone(), item: made },
            _ => self.read_app(&id, &doing).await?,
        };
        if planned.is_some_and(|planned| planned.domain() != found.item.domain()) {
            return Err(moved(&doing, &found));
        }
        let (token_id, own_ids) = self.made(wish)?;
        let made = Made { token_id: token_id.as_deref(), own_ids: &own_ids };
        let body = match wish.difference(&found.item, made) {
            AppDifference::None => {
                self.hold_app(found, wish, &own_ids).await?;
                return Ok(StepEffect::Nothing);
            }
            AppDifference::Policy { id: policy_id, body } => {
                return self.put_policy(found, &policy_id, &body, wish).await;
            }
            AppDifference::App => wish.update(&found.item, made),
        };
        let entry = self.put_app(&id, body, &doing).await?;
        self.hold_app(entry, wish, &own_ids).await
    }

    /// An application that is not written in this run is seen before the name is published behind it.
    pub(super) async fn confirm_app(&mut self, id: &str, wish: &AppWish, taken: bool) -> Result<StepEffect, Fault> {
        let doing = format!("looking at the Access application for {}", wish.hostname);
        let (token_id, own_ids) = self.made(wish)?;
        let found = match self.read_app_in(Lane::Protect, id, &doing).await {
            Ok(found) => found,
            Err(fault) if fault.stale => {
                self.let_go();
                return Err(fault);
            }
            Err(fault) => return Err(fault),
        };
        let made = Made { token_id: token_id.as_deref(), own_ids: &own_ids };
        if wish.difference(&found.item, made) == AppDifference::None {
            self.hold_app(found, wish, &own_ids).await?;
            return Ok(StepEffect::Nothing);
        }
        if taken {
            self.let_go();
        }
        let message = format!("{doing}: the application {} is not as it was when it was last listed", found.id);
        Err(Fault { problem: Problem::transient(core_reasons::API_ERROR, message), stale: true })
    }

    /// What was taken for the name's application is not, so nobody is told that it is.
    fn let_go(&mut self) {
        self.held.app = None;
        self.notices.retain(|notice| notice.reason != core_reasons::ADOPTED);
    }

    /// The application as it stands now: a PUT replaces all of it, also what somebody changed since it was last listed.
    async fn read_app(&mut self, id: &str, doing: &str) -> Result<Entry<App>, Fault> {
        self.read_app_in(self.lane(), id, doing).await
    }

    async fn read_app_in(&mut self, lane: Lane, id: &str, doing: &str) -> Result<Entry<App>, Fault> {
        let read = self.client.send(lane, &collections::ACCESS_APPS.get(self.account(), id)).await;
        let entry = match read {
            Ok(app) => Entry::<App>::read(app),
            Err(error) => {
                if error.class == ErrorClass::NotFound {
                    self.apps().unlearn(id);
                }
                return Err(self.fault(&error, doing));
            }
        };
        let Some(mut entry) = entry else {
            return Err(Problem::transient(core_reasons::API_ERROR, format!("{doing}: it cannot be read")).into());
        };
        if entry.item.0.get("policies").is_none() {
            entry.item.0["policies"] = Value::Array(self.read_policies(id, doing).await?);
        }
        self.apps().learn(&entry);
        Ok(entry)
    }

    /// The policies of an application by a request of their own.
    async fn read_policies(&self, app_id: &str, doing: &str) -> Result<Vec<Value>, Fault> {
        let request = Request::get(POLICIES, &[self.account(), app_id]);
        match self.client.send(self.lane(), &request).await {
            Ok(answer) => Ok(answer.as_array().cloned().unwrap_or_default()),
            Err(error) => Err(self.fault(&error, doing)),
        }
    }

    async fn put_app(&mut self, id: &str, body: Value, doing: &str) -> Result<Entry<App>, Fault> {
        let op = Op::Update { id: id.to_owned(), body };
        match self.apps().write(self.lane(), vec![op]).await {
            Ok(written) => match written.into_iter().next() {
                Some(Written::Stored(entry)) => Ok(entry),
                _ => Err(Problem::transient(core_reasons::API_ERROR, format!("{doing}: no answer")).into()),
            },
            Err(error) => Err(self.app_refused(&error, doing)),
        }
    }

    /// A policy, group or token that the application names may be gone since it was looked up. Whether one is shows in the next
    /// plan: where that has the same step, it is not tried again.
    fn app_refused(&self, error: &ApiError, doing: &str) -> Fault {
        let mut fault = self.fault(error, doing);
        if error.is_outside_of_zones() {
            fault.problem.message.push_str(
                ": Access protects names in active zones of the account only; add or activate the zone, or change the hostname",
            );
        }
        if error.may_name_missing() {
            self.policies().invalidate();
            self.tokens().invalidate();
            self.client.records(&collections::ACCESS_GROUPS, self.account()).invalidate();
            fault.stale = true;
        }
        fault
    }

    async fn put_policy(
        &mut self,
        mut app: Entry<App>,
        policy_id: &str,
        body: &Value,
        wish: &AppWish,
    ) -> Result<StepEffect, Fault> {
        let request = Request::new(Method::PUT, POLICY, &[self.account(), &app.id, policy_id]).with_body(body.clone());
        let answer = match self.client.send(self.lane(), &request).await {
            Ok(answer) => answer,
            Err(error) => {
                self.apps().invalidate();
                return Err(self.app_refused(&error, &format!("changing the Access policy of {}", wish.hostname)));
            }
        };
        replace_policy(&mut app.item, policy_id, body, &answer);
        self.apps().learn(&app);
        self.hold_app(app, wish, &[]).await
    }

    /// What the wish needs that came to light on the way.
    fn made(&self, wish: &AppWish) -> Result<(Option<String>, Vec<String>), Fault> {
        let token_id = self.held.token.as_ref().map(|token| token.id.clone());
        let own_ids = match &wish.policies {
            Policies::Inline(_) => Some(Vec::new()),
            Policies::Linked { own, .. } => self.own_ids(own),
        };
        match own_ids {
            Some(own_ids) => Ok((token_id, own_ids)),
            None => Err(Fault {
                problem: Problem::transient(core_reasons::API_ERROR, "a reusable policy of ours is not known yet"),
                stale: true,
            }),
        }
    }

    /// Notes the application as ours, with the policies that the answer shows. A name is only published behind policies
    /// that were seen.
    async fn hold_app(
        &mut self,
        mut entry: Entry<App>,
        wish: &AppWish,
        own_ids: &[String],
    ) -> Result<StepEffect, Fault> {
        self.held.app = Some(AppHeld {
            id: entry.id.clone(),
            hostname: Some(wish.hostname.as_str().to_owned()),
            policy_ids: own_ids.to_vec(),
            adopted: self.held.app.as_ref().is_some_and(|app| app.adopted) || wish.adopted,
        });
        if wish.inline_ids(&entry.item.policies()).is_none() {
            self.complete_policies(&mut entry, wish).await?;
        }
        if let (Some(held), Policies::Inline(_)) = (&mut self.held.app, &wish.policies) {
            held.policy_ids = wish.inline_ids(&entry.item.policies()).unwrap_or_default();
        }
        self.app = Some(entry.item);
        self.seen = AppSight::now();
        Ok(StepEffect::Planned)
    }

    /// An answer that does not show our policies: they are asked for, and made one by one where they are not there.
    async fn complete_policies(&mut self, entry: &mut Entry<App>, wish: &AppWish) -> Result<(), Fault> {
        let doing = format!("reading the Access policies of {}", wish.hostname);
        let mut policies = self.read_policies(&entry.id, &doing).await?;
        let token_id = self.held.token.as_ref().map(|token| token.id.clone());
        for (index, own) in wish.policies.own().iter().enumerate() {
            if policies.iter().any(|policy| policy["name"] == own.name.as_str()) {
                continue;
            }
            let body = own.inline(index + 1, token_id.as_deref());
            let request = Request::new(Method::POST, POLICIES, &[self.account(), &entry.id]).with_body(body);
            match self.client.send(self.lane(), &request).await {
                Ok(policy) => policies.push(policy),
                Err(error) => {
                    let doing = format!("creating Access policy {}", own.name);
                    return Err(self.fault_of_post(&error, &doing).await);
                }
            }
        }
        entry.item.0["policies"] = Value::Array(policies);
        self.apps().learn(entry);
        if wish.inline_ids(&entry.item.policies()).is_some() {
            return Ok(());
        }
        Err(Problem::transient(core_reasons::API_ERROR, format!("{doing}: they do not show what was written")).into())
    }

    pub(super) async fn detach_token(&mut self, app_id: &str, token_id: &str) -> Result<StepEffect, Fault> {
        let doing = "taking the token out of an Access application";
        let found = self.read_app(app_id, doing).await?;
        match found.item.without_token(token_id) {
            Some(body) => self.put_app(app_id, body, doing).await.map(|_| StepEffect::Planned),
            None => Ok(StepEffect::Nothing),
        }
    }

    pub(super) async fn delete_app(&mut self, id: &str) -> Result<StepEffect, Fault> {
        match self.apps().write(self.lane(), vec![Op::delete(id)]).await {
            Ok(_) => {
                self.held.app = self.held.app.take().filter(|app| app.id != id);
                self.held.old_apps.retain(|app| app.id != id);
                Ok(StepEffect::Planned)
            }
            Err(error) => Err(self.fault(&error, &format!("deleting Access application {id}"))),
        }
    }
}

/// Somebody pointed the application at another name since it was planned for.
fn moved(doing: &str, found: &Entry<App>) -> Fault {
    let message = format!("{doing}: the application {} stands for {} now", found.id, found.item.domain());
    Fault { problem: Problem::transient(core_reasons::API_ERROR, message), stale: true }
}

/// Follows a change of one policy in what is known of the application.
fn replace_policy(app: &mut App, policy_id: &str, body: &Value, answer: &Value) {
    let mut policies = app.policies();
    for policy in policies.iter_mut().filter(|policy| policy["id"] == policy_id) {
        for source in [body, answer] {
            for (field, value) in source.as_object().into_iter().flatten() {
                policy[field] = value.clone();
            }
        }
        policy["id"] = json!(policy_id);
    }
    app.0["policies"] = Value::Array(policies);
}
