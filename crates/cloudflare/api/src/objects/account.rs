//! An account as the API shows it → who owns zones and tunnels.

use serde::{Deserialize, Serialize};

use super::or_default;
use crate::item::Item;

/// An account; only looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: Box<str>,
}

impl Item for Account {
    fn natural_key(&self) -> String {
        self.name.to_string()
    }
}
