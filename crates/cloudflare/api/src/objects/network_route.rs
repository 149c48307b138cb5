//! A private network route as the API shows it ↔ what is written and compared of it.

use portolan_core::{Item, MarkField, Network};
use serde::{Deserialize, Serialize};

use super::ApiText;

/// A private network that is reached through a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkRoute {
    /// The network.
    pub network: ApiText,
    /// Id of the tunnel.
    pub tunnel_id: ApiText,
    /// Id of the virtual network.
    pub virtual_network_id: ApiText,
    /// Free text; carries our mark.
    pub comment: ApiText,
    /// When it was deleted.
    #[serde(skip_serializing)]
    pub deleted_at: Option<ApiText>,
}

impl Item for NetworkRoute {
    const MARK: Option<MarkField<Self>> =
        Some(MarkField { limit: 100, text: |route| &route.comment, set: |route, text| route.comment = text.into() });

    fn natural_key(&self) -> String {
        format!("{}@{}", Network::spelled(&self.network), self.virtual_network_id)
    }

    fn label(&self) -> String {
        self.network.to_string()
    }

    fn deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn normalise(&mut self) {
        self.network = Network::spelled(&self.network).into();
        self.comment = self.comment.trim().into();
    }

    fn replaces(&self, old: &Self) -> bool {
        self.natural_key() != old.natural_key()
    }
}
