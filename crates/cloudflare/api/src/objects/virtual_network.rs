//! A virtual network as the API shows it ↔ what is written and compared of it.

use portolan_core::Item;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ApiText, OptionalWish};

/// A private address space of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NetworkWire")]
pub struct VirtualNetwork {
    /// Its name.
    pub name: ApiText,
    /// Free text; carries our mark.
    pub comment: ApiText,
    /// Whether it is the default, or shall be.
    #[serde(rename = "is_default_network", skip_serializing_if = "OptionalWish::is_none")]
    pub default: OptionalWish,
    /// Whether it is only listed because it was there once.
    #[serde(skip_serializing)]
    pub deleted: bool,
}

/// A network as the API writes it; whether it is the default, in the newer or the older way.
#[derive(Default, Deserialize)]
#[serde(default)]
struct NetworkWire {
    name: ApiText,
    comment: ApiText,
    is_default_network: Option<bool>,
    is_default: Option<bool>,
    deleted_at: Option<ApiText>,
}

impl From<NetworkWire> for VirtualNetwork {
    fn from(wire: NetworkWire) -> Self {
        let default = OptionalWish(Some(wire.is_default_network.or(wire.is_default).unwrap_or_default()));
        Self { name: wire.name, comment: wire.comment, default, deleted: wire.deleted_at.is_some() }
    }
}

impl VirtualNetwork {
    /// Whether it is the account's default network.
    pub fn is_default(&self) -> bool {
        self.default.0.unwrap_or_default()
    }
}

impl Item for VirtualNetwork {
    const MARK_LIMIT: Option<usize> = Some(256);

    fn natural_key(&self) -> String {
        self.name.to_string()
    }

    fn mark_text(&self) -> &str {
        &self.comment
    }

    fn set_mark_text(&mut self, text: String) {
        self.comment = text.into();
    }

    fn deleted(&self) -> bool {
        self.deleted
    }

    fn normalise(&mut self) {
        self.comment = self.comment.trim().into();
    }

    /// Creation calls the default by another name than change does.
    fn create_body(&self) -> Value {
        json!({ "name": self.name, "comment": self.comment, "is_default": self.is_default() })
    }

    fn update_body(&self, _: &Self) -> Value {
        self.to_json()
    }
}
