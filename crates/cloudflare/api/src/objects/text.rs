//! A text of the API, which may be left out or null → a text.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};

/// A text of the API: empty where it is left out or null. Two words small, since there are many.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ApiText(Box<str>);

impl<'de> Deserialize<'de> for ApiText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Option::deserialize(from).map(|text| Self(text.unwrap_or_default()))
    }
}

impl Deref for ApiText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ApiText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for ApiText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ApiText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn null_is_an_empty_text() {
        assert_eq!(from_value::<ApiText>(json!(null)).unwrap(), ApiText::default());
        assert_eq!(&*from_value::<ApiText>(json!("x")).unwrap(), "x");
    }
}
