//! An account's Gateway configuration as the API shows it ↔ what is written and compared of it: what is mentioned.

use portolan_core::Item;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Mentioned;

/// What holds for all of an account's Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayConfiguration {
    /// The settings, in groups.
    pub settings: Mentioned,
}

impl Item for GatewayConfiguration {
    /// There is one in an account.
    fn natural_key(&self) -> String {
        String::new()
    }

    fn label(&self) -> String {
        "of the account".to_owned()
    }

    fn shown_beside(&self, after: &Self) -> Value {
        json!({ "settings": self.settings.mentioned_by(&after.settings) })
    }

    /// A group that is named is replaced: it goes out with what else stands in it.
    fn update_body(&self, old: &Self) -> Value {
        json!({ "settings": self.settings.over(&old.settings) })
    }
}
