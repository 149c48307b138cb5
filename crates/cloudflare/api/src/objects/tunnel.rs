//! A tunnel as the API lists it → what is behind it, and whether its configuration can be written.

use serde::{Deserialize, Serialize};

use super::or_default;
use crate::item::Item;

/// A tunnel; only looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunnel {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: Box<str>,
    /// Id of its account.
    #[serde(default, deserialize_with = "or_default")]
    pub account_tag: Box<str>,
    /// `cloudflare` where the API holds the configuration, `local` where a file does.
    #[serde(default)]
    pub config_src: Option<Box<str>>,
    /// When it was deleted.
    #[serde(default)]
    pub deleted_at: Option<Box<str>>,
}

impl Tunnel {
    /// A tunnel to look for.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), account_tag: Box::default(), config_src: None, deleted_at: None }
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
