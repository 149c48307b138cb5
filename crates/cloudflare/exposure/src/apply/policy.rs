//! Our own reusable policies: made before the application links them, deleted after it is gone.

use portolan_cloudflare_api::{Entry, Op, Snapshot, collections};

use super::{Fault, StepEffect, StepRun};
use crate::journal::Journal;
use crate::policy::{OwnPolicy, ReusablePolicy, keeping};

impl<J: Journal> StepRun<'_, J> {
    fn token_id(&self) -> Option<String> {
        self.held.token.as_ref().map(|token| token.id.clone())
    }

    pub(super) async fn create_policy(&mut self, own: &OwnPolicy) -> Result<StepEffect, Fault> {
        let policies = self.policies();
        let name = own.marked_name(&self.exposure.mark);
        let body = own.reusable(&self.exposure.mark, self.token_id().as_deref());
        let find = |policies: &Snapshot<ReusablePolicy>| policies.by_key(&name).next().cloned();
        let Entry { id, .. } = match policies.create(self.lane(), body, find).await {
            Ok(created) => created.entry().clone(),
            Err(error) => return Err(self.fault(&error, &format!("creating Access policy {}", own.name))),
        };
        self.own.insert(own.name.clone(), id.clone());
        self.held.reusable.push(id);
        Ok(StepEffect::Planned)
    }

    pub(super) async fn update_policy(&mut self, id: &str, own: &OwnPolicy) -> Result<StepEffect, Fault> {
        let doing = format!("changing Access policy {}", own.name);
        let found = match self.client.send(self.lane(), &collections::ACCESS_POLICIES.get(self.account(), id)).await {
            Ok(found) => found,
            Err(error) => {
                self.policies().invalidate();
                return Err(self.fault(&error, &doing));
            }
        };
        let body = own.reusable(&self.exposure.mark, self.token_id().as_deref());
        let body = keeping(body, Some(&found));
        let op = Op::Update { id: id.to_owned(), body };
        match self.policies().write(self.lane(), vec![op]).await {
            Ok(_) => {
                self.own.insert(own.name.clone(), id.to_owned());
                Ok(StepEffect::Planned)
            }
            Err(error) => Err(self.fault(&error, &doing)),
        }
    }

    pub(super) async fn delete_policy(&mut self, id: &str) -> Result<StepEffect, Fault> {
        match self.policies().write(self.lane(), vec![Op::delete(id)]).await {
            Ok(_) => {
                self.held.reusable.retain(|held| held != id);
                if let Some(app) = &mut self.held.app {
                    app.policy_ids.retain(|held| held != id);
                }
                Ok(StepEffect::Planned)
            }
            Err(error) => Err(self.fault(&error, &format!("deleting Access policy {id}"))),
        }
    }

    /// The ids of our own reusable policies in the order of a wish; none while one is not known.
    pub(super) fn own_ids(&self, own: &[OwnPolicy]) -> Option<Vec<String>> {
        let policies = self.policies();
        let id = |own: &OwnPolicy| {
            let name = own.marked_name(&self.exposure.mark);
            let known = || {
                policies.with(|policies| {
                    policies.by_key(&name).find(|entry| self.held.reusable.contains(&entry.id)).map(|e| e.id.clone())
                })
            };
            self.own.get(&own.name).cloned().or_else(known)
        };
        own.iter().map(id).collect()
    }
}
