//! An Access group as the API shows it ↔ what is written and compared of it. Whether it is the default is never shown.

use jiff::Timestamp;
use portolan_core::Item;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ApiText, MadeAt, OptionalWish, or_default};

/// People under a name, for policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessGroup {
    /// Its name; not unique.
    pub name: ApiText,
    /// Who fits one of these rules belongs to it,
    #[serde(deserialize_with = "or_default")]
    pub include: Vec<Value>,
    /// unless he fits one of these,
    #[serde(deserialize_with = "or_default")]
    pub exclude: Vec<Value>,
    /// or not all of these.
    #[serde(deserialize_with = "or_default")]
    pub require: Vec<Value>,
    /// Whether new applications shall let it in.
    #[serde(skip)]
    pub default: OptionalWish,
    /// When it was made.
    #[serde(skip_serializing)]
    pub created_at: MadeAt,
}

impl Item for AccessGroup {
    fn natural_key(&self) -> String {
        self.name.to_string()
    }

    /// Rules have no order.
    fn normalise(&mut self) {
        for rules in [&mut self.include, &mut self.exclude, &mut self.require] {
            rules.sort_by_cached_key(Value::to_string);
        }
    }

    fn made_at(&self) -> Option<Timestamp> {
        self.created_at.0
    }

    fn unseen(&self) -> Option<Map<String, Value>> {
        json!({ "is_default": self.default.0.filter(|is_default| *is_default)? }).as_object().cloned()
    }
}
