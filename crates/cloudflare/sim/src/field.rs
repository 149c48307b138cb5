//! What members a body may have: checked before any rule of a collection looks at it.

use serde_json::{Map, Value};

use crate::{access, reply::Refusal};

/// The type of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MemberType {
    Text,
    Bool,
    Number,
    Object,
    Texts,
    /// An array; what is in it is for the collection's rules to say.
    List,
    OneOf(&'static [&'static str]),
    Any,
}

/// In which requests a member may, must or must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// In a POST and a PUT; optional in a PATCH.
    Required,
    /// Wherever the sender likes.
    Optional,
    /// Must be in a POST, and in nothing else.
    RequiredOnce,
    /// In a POST alone.
    CreateOnly,
    /// In a PATCH alone.
    PatchOnly,
}

/// A member that a body may have. What is not listed is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) kind: MemberType,
    pub(crate) role: Presence,
}

pub(crate) const fn required(name: &'static str, kind: MemberType) -> Member {
    Member { name, kind, role: Presence::Required }
}

pub(crate) const fn optional(name: &'static str, kind: MemberType) -> Member {
    Member { name, kind, role: Presence::Optional }
}

/// Which request a body came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyVerb {
    Create,
    Replace,
    Patch,
}

impl Member {
    fn allowed(self, verb: BodyVerb) -> bool {
        match self.role {
            Presence::Required | Presence::Optional => true,
            Presence::RequiredOnce | Presence::CreateOnly => verb == BodyVerb::Create,
            Presence::PatchOnly => verb == BodyVerb::Patch,
        }
    }

    fn needed(self, verb: BodyVerb) -> bool {
        match self.role {
            Presence::Required => verb != BodyVerb::Patch,
            Presence::RequiredOnce => verb == BodyVerb::Create,
            Presence::Optional | Presence::CreateOnly | Presence::PatchOnly => false,
        }
    }
}

impl MemberType {
    pub(crate) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Bool => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Object => value.is_object(),
            Self::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::List => value.is_array(),
            Self::OneOf(choices) => value.as_str().is_some_and(|text| choices.contains(&text)),
            Self::Any => true,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Bool => "a boolean".into(),
            Self::Number => "a number".into(),
            Self::Object => "an object".into(),
            Self::Texts => "an array of strings".into(),
            Self::List => "an array".into(),
            Self::OneOf(choices) => format!("one of {}", choices.join(", ")),
            Self::Any => "anything".into(),
        }
    }
}

/// The body's members, if all of them may be there and have the right types.
/// A `null` stands for an optional member that is cleared.
pub(crate) fn check(body: Value, fields: &[Member], verb: BodyVerb, code: u64) -> Result<Map<String, Value>, Refusal> {
    let Value::Object(body) = body else {
        return Err(wrong(code, "Request body is invalid: a JSON object is expected."));
    };
    for (name, value) in &body {
        let known = fields.iter().find(|field| field.name == name && field.allowed(verb));
        let Some(field) = known else {
            return Err(wrong(code, format!("Request body is invalid: unknown field \"{name}\".")));
        };
        if !(field.kind.fits(value) || value.is_null() && !field.needed(verb)) {
            let message = format!("Request body is invalid: {name} must be {}.", field.kind.describe());
            return Err(wrong(code, message));
        }
    }
    match fields.iter().find(|field| field.needed(verb) && !body.contains_key(field.name)) {
        Some(missing) => Err(wrong(code, format!("{} is a required field.", missing.name))),
        None => Ok(body),
    }
}

/// Access begins all such texts alike.
fn wrong(code: u64, message: impl Into<String>) -> Refusal {
    match code {
        access::INVALID => access::invalid(message.into()),
        _ => Refusal::bad(code, message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &[Member] = &[
        required("name", MemberType::Text),
        optional("paused", MemberType::Bool),
        Member { name: "secret", kind: MemberType::Text, role: Presence::CreateOnly },
    ];

    fn refused(body: Value, verb: BodyVerb) -> String {
        check(body, FIELDS, verb, 1).unwrap_err().failures[0].message.clone()
    }

    #[test]
    fn unknown_missing_and_badly_typed_members_are_refused_by_name() {
        assert!(refused(json!({"name": "a", "nmae": 1}), BodyVerb::Create).contains("\"nmae\""));
        assert!(refused(json!({}), BodyVerb::Create).contains("name is a required"));
        assert!(refused(json!({"name": 3}), BodyVerb::Create).contains("name must be a string"));
        assert!(refused(json!({"name": null}), BodyVerb::Create).contains("name must be a string"));
        assert!(refused(json!([]), BodyVerb::Create).contains("object"));
        assert!(refused(json!({"secret": "s"}), BodyVerb::Patch).contains("\"secret\""));
    }

    #[test]
    fn a_patch_may_leave_out_and_clear_members() {
        assert!(check(json!({}), FIELDS, BodyVerb::Patch, 1).is_ok());
        assert!(check(json!({"paused": null}), FIELDS, BodyVerb::Patch, 1).is_ok());
    }
}
