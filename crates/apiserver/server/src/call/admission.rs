//! What a written object gets, or is refused for, between its owners and its checks.

use std::time::Duration;

use portolan_builtin::{AccountNeed, account_need, admit_account};
use serde_json::Value;

use super::Call;
use crate::api::Accounts;
use crate::classes;
use crate::object;
use crate::status::ApiError;

const DEFAULT_ACCOUNT: &str = "default";
/// How often a new pod's account `default` is looked for, as the real server does it.
const LOOKS_FOR_DEFAULT: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

impl Call {
    /// Adds what admission adds to a new object.
    pub(super) async fn admit_create(&self, object: &mut Value) -> Result<(), ApiError> {
        if self.resource.is("", "pods") && self.api.accounts == Accounts::Required {
            self.admit_account(object).await?;
        }
        classes::admit_create(&self.api, &self.resource, object)?;
        self.resource.admit_create(object);
        if self.resource.is("", "pods") {
            self.place_by_node(object);
        }
        Ok(())
    }

    /// Gives a new pod what its account has. A pod whose account is not there is refused.
    async fn admit_account(&self, pod: &mut Value) -> Result<(), ApiError> {
        let refused = |why: &str| ApiError::forbidden(self.resource.about(object::name(pod)), why);
        let name = match account_need(pod) {
            AccountNeed::Named(name) => name,
            AccountNeed::Nobody => return Ok(()),
            AccountNeed::Refused(why) => return Err(refused(why)),
        };
        let namespace = &self.target.namespace;
        let account = self.account(&name).await.ok_or_else(|| {
            refused(&format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"))
        })?;
        admit_account(pod, &account, &self.api.name_suffix());
        Ok(())
    }

    /// The account of a new pod. The one that every namespace has may still be on its way.
    async fn account(&self, name: &str) -> Option<Value> {
        let looks = if name == DEFAULT_ACCOUNT { LOOKS_FOR_DEFAULT } else { 1 };
        for look in 0..looks {
            if look > 0 {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
            let found = self.api.find_core("serviceaccounts", &self.target.namespace, name);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Adds what admission adds to a changed object. Subresources are left alone by the classes.
    pub(super) fn admit_update(&self, new: &mut Value, live: &Value) -> Result<(), ApiError> {
        if self.target.subresource.is_empty() {
            classes::admit_update(&self.api, &self.resource, new)?;
        }
        self.resource.admit_update(new, live);
        Ok(())
    }
}
