//! One step from a value to a part of it, in memory, as `.name[port=80]` for people and as `k:{"port":80}` in `fieldsV1`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::ssa::scalar;

/// How a container names one of its parts.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or a key of a map: `f:name`.
    Field(String),
    /// The item of a list that has these key fields, sorted by name: `k:{"port":80}`.
    Key(Vec<(String, Value)>),
    /// The item of a set that is this value: `v:"a"`.
    Value(Value),
    /// The item at a place of an atomic list: `i:3`.
    Index(i64),
}

/// A key of `fieldsV1` that is no path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The key has no `x:` in front.
    #[error("{0:?} is no path element")]
    Malformed(String),
    /// The key is of a kind that a later version may know.
    #[error("unknown path element type")]
    Unknown,
}

impl PathElement {
    /// A field's element.
    pub fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// Reads `f:name`, `k:{…}`, `v:…` or `i:3`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let malformed = || PathError::Malformed(text.to_owned());
        let (kind, rest) = text.split_once(':').filter(|(kind, _)| kind.len() == 1).ok_or_else(malformed)?;
        match kind {
            "f" => Ok(Self::Field(rest.to_owned())),
            "v" => serde_json::from_str(rest).map(Self::Value).map_err(|_| malformed()),
            "k" => match serde_json::from_str(rest) {
                Ok(Value::Object(fields)) => Ok(Self::Key(fields.into_iter().collect())),
                _ => Err(malformed()),
            },
            "i" => rest.parse().map(Self::Index).map_err(|_| malformed()),
            _ => Err(PathError::Unknown),
        }
    }

    /// The text that [`PathElement::parse`] reads.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Field(name) => {
                out.reserve(name.len() + 2);
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:");
                scalar::write_json_object(fields.iter().map(|(name, value)| (name.as_str(), value)), &mut out);
            }
            Self::Value(value) => {
                out.push_str("v:");
                scalar::write_json(value, &mut out);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
        out
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                let pairs = left.iter().zip(right);
                let differing =
                    pairs.map(|((a, x), (b, y))| a.cmp(b).then_with(|| scalar::compare(x, y))).find(|o| o.is_ne());
                differing.unwrap_or_else(|| left.len().cmp(&right.len()))
            }
            (Self::Value(left), Self::Value(right)) => scalar::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", scalar::shown(value))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", scalar::shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_reads_back_from_its_text() {
        for text in [r"f:a.b/c", r#"k:{"port":80,"protocol":"TCP"}"#, r#"v:"x""#, "v:1.5", "v:true", "i:3", "f:"] {
            assert_eq!(PathElement::parse(text).unwrap().encode(), text);
        }
    }

    #[test]
    fn keys_are_sorted_and_numbers_canonical() {
        let element = PathElement::parse(r#"k:{"protocol": "TCP", "port": 80.0}"#).unwrap();

        assert_eq!(element.encode(), r#"k:{"port":80,"protocol":"TCP"}"#);
        assert_eq!(element.to_string(), r#"[port=80,protocol="TCP"]"#);
    }

    #[test]
    fn unknown_kinds_differ_from_malformed_keys() {
        assert_eq!(PathElement::parse("x:1"), Err(PathError::Unknown));
        for text in ["", "a", "spec", "k:[]", "k:{", "v:", "i:x"] {
            assert!(matches!(PathElement::parse(text), Err(PathError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn fields_come_before_keys_values_and_indexes() {
        let mut elements = [
            PathElement::Index(0),
            PathElement::Value(json!("a")),
            PathElement::Key(vec![("a".to_owned(), json!(1)), ("b".to_owned(), json!(1))]),
            PathElement::Key(vec![("a".to_owned(), json!(1))]),
            PathElement::field("z"),
        ];

        elements.sort();

        let texts: Vec<String> = elements.iter().map(PathElement::encode).collect();
        assert_eq!(texts, ["f:z", r#"k:{"a":1}"#, r#"k:{"a":1,"b":1}"#, r#"v:"a""#, "i:0"]);
    }

    #[test]
    fn set_items_show_their_value() {
        assert_eq!(PathElement::Value(json!("a")).to_string(), r#"[="a"]"#);
        assert_eq!(PathElement::Index(2).to_string(), "[2]");
    }
}
