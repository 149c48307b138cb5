//! An identity provider as the API lists it → what it is called. Its configuration, which holds secrets, is not kept.

use portolan_core::Item;
use serde::{Deserialize, Serialize};

use super::ApiText;

/// Where an account's users prove who they are; only looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentityProvider {
    /// Its name.
    pub name: ApiText,
}

impl Item for IdentityProvider {
    fn natural_key(&self) -> String {
        self.name.to_string()
    }
}
