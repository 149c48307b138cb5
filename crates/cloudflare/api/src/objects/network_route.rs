//! A private network route as the API shows it ↔ what is written and compared of it.

use portolan_core::{Item, Network};
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

impl NetworkRoute {
    /// A network in its one spelling.
    pub fn spelled(network: &str) -> String {
        Network::parse(network).map_or_else(|_| network.to_owned(), |network| network.to_string())
    }
}

impl Item for NetworkRoute {
    const MARK_LIMIT: Option<usize> = Some(100);

    fn natural_key(&self) -> String {
        format!("{}@{}", Self::spelled(&self.network), self.virtual_network_id)
    }

    fn label(&self) -> String {
        self.network.to_string()
    }

    fn mark_text(&self) -> &str {
        &self.comment
    }

    fn set_mark_text(&mut self, text: String) {
        self.comment = text.into();
    }

    fn deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn normalise(&mut self) {
        self.network = Self::spelled(&self.network).into();
        self.comment = self.comment.trim().into();
    }

    fn replaces(&self, old: &Self) -> bool {
        self.natural_key() != old.natural_key()
    }
}
