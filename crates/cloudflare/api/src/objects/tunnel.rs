//! A tunnel as the API lists it → what is behind it, and whether its configuration can be written.

use portolan_core::Item;
use serde::{Deserialize, Serialize};

use super::ApiText;

/// A tunnel; only looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tunnel {
    /// Its name.
    pub name: ApiText,
    /// Id of its account.
    pub account_tag: ApiText,
    /// `cloudflare` where the API holds the configuration, `local` where a file does.
    pub config_src: Option<ApiText>,
    /// When it was deleted.
    pub deleted_at: Option<ApiText>,
}

impl Tunnel {
    /// A tunnel to look for.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

impl Item for Tunnel {
    fn natural_key(&self) -> String {
        self.name.to_string()
    }

    fn deleted(&self) -> bool {
        self.deleted_at.is_some()
    }
}
