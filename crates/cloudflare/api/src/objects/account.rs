//! An account as the API shows it → who owns zones and tunnels.

use portolan_core::Item;
use serde::{Deserialize, Serialize};

use super::ApiText;

/// An account; only looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Its name.
    pub name: ApiText,
}

impl Item for Account {
    fn natural_key(&self) -> String {
        self.name.to_string()
    }
}
