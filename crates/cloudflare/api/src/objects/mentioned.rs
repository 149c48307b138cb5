//! Members that somebody mentions, and a document that has them among others.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Members that the API adds to a group of settings, and takes from nobody.
const READ_ONLY: [&str; 5] = ["binding_status", "read_only", "source_account", "updated_at", "version"];

/// Groups of members, wished for or found. What is found is as wished where it has all that the wish mentions, whatever
/// else it has.
#[derive(Clone, Debug)]
pub enum Mentioned {
    /// What shall be.
    Wish(Value),
    /// What is.
    Found(Value),
}

impl Mentioned {
    fn value(&self) -> &Value {
        match self {
            Self::Wish(value) | Self::Found(value) => value,
        }
    }

    /// The groups of this wish, each with what else was found in it.
    pub(crate) fn over(&self, found: &Self) -> Value {
        let groups = self.value().as_object().into_iter().flatten();
        Value::Object(
            groups
                .map(|(name, wish)| (name.clone(), laid_over(writable(&found.value()[name.as_str()]), wish)))
                .collect(),
        )
    }

    /// What stands where a wish mentions something.
    pub(crate) fn mentioned_by(&self, wish: &Self) -> Value {
        within(self.value(), wish.value())
    }
}

/// What a group has that may be sent back.
fn writable(group: &Value) -> Value {
    let mut group = group.clone();
    if let Some(members) = group.as_object_mut() {
        members.retain(|name, value| !READ_ONLY.contains(&name.as_str()) && !value.is_null());
    }
    group
}

fn laid_over(found: Value, wish: &Value) -> Value {
    match (found, wish) {
        (Value::Object(mut found), Value::Object(wish)) => {
            for (name, wish) in wish {
                let before = found.remove(name).unwrap_or_default();
                found.insert(name.clone(), laid_over(before, wish));
            }
            Value::Object(found)
        }
        (_, wish) => wish.clone(),
    }
}

fn within(found: &Value, wish: &Value) -> Value {
    match (found, wish) {
        (Value::Object(found), Value::Object(wish)) => {
            let both = wish.iter().filter_map(|(name, wish)| Some((name.clone(), within(found.get(name)?, wish))));
            Value::Object(both.collect::<Map<_, _>>())
        }
        (found, _) => found.clone(),
    }
}

/// Whether what is found has all that is wished. What is not shown is off, or empty.
fn holds(found: Option<&Value>, wish: &Value) -> bool {
    match (found, wish) {
        (_, Value::Null) => true,
        (found, Value::Object(wish)) => {
            wish.iter().all(|(name, wish)| holds(found.and_then(|all| all.get(name)), wish))
        }
        (None | Some(Value::Null), wish) => matches!(wish, Value::Bool(false)) || wish.as_str() == Some(""),
        (Some(found), wish) => found == wish,
    }
}

impl Default for Mentioned {
    fn default() -> Self {
        Self::Found(Value::default())
    }
}

impl PartialEq for Mentioned {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Wish(wish), Self::Found(found)) | (Self::Found(found), Self::Wish(wish)) => holds(Some(found), wish),
            (Self::Wish(one), Self::Wish(other)) | (Self::Found(one), Self::Found(other)) => one == other,
        }
    }
}

impl Serialize for Mentioned {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Mentioned {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(Self::Found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found() -> Mentioned {
        Mentioned::Found(json!({
            "block_page": { "enabled": true, "name": "Ours", "version": 3, "footer_text": null },
            "activity_log": { "enabled": true },
        }))
    }

    #[test]
    fn what_is_found_is_as_wished_whatever_else_it_has() {
        let is_as = |wish: Value| found() == Mentioned::Wish(wish);

        assert!(is_as(json!({ "block_page": { "enabled": true } })));
        assert!(is_as(json!({ "fips": { "tls": false }, "block_page": { "footer_text": "" } })), "off, and not shown");
        assert!(!is_as(json!({ "fips": { "tls": true } })));
        assert!(!is_as(json!({ "block_page": { "enabled": true, "name": "Theirs" } })));
    }

    #[test]
    fn a_group_goes_out_with_what_else_may_be_written_in_it_and_no_other_does() {
        let wish = Mentioned::Wish(json!({ "block_page": { "name": "New" }, "fips": { "tls": true } }));

        let sent = json!({ "block_page": { "enabled": true, "name": "New" }, "fips": { "tls": true } });
        assert_eq!(wish.over(&found()), sent);
        assert_eq!(found().mentioned_by(&wish), json!({ "block_page": { "name": "Ours" } }));
    }
}
