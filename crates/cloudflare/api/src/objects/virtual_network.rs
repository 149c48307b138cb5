//! A virtual network as the API shows it ↔ what is written and compared of it.

use portolan_core::{Item, MarkField};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ApiText, OptionalWish};

/// A private address space of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualNetwork {
    /// Its name.
    pub name: ApiText,
    /// Free text; carries our mark.
    pub comment: ApiText,
    /// Whether it is the default, or shall be.
    #[serde(
        rename = "is_default_network",
        default = "OptionalWish::no",
        skip_serializing_if = "OptionalWish::is_none"
    )]
    pub default: OptionalWish,
    /// When it was deleted.
    #[serde(skip_serializing)]
    pub deleted_at: Option<ApiText>,
}

impl Item for VirtualNetwork {
    const MARK: Option<MarkField<Self>> = Some(MarkField {
        limit: 256,
        text: |network| &network.comment,
        set: |network, text| network.comment = text.into(),
    });

    fn natural_key(&self) -> String {
        self.name.to_string()
    }

    fn deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn is_default(&self) -> bool {
        self.default.0.unwrap_or_default()
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
