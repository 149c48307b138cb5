//! An object as it came from the API: of its kind, or malformed with the reason why. Managed fields are dropped at once.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::api::ObjectMeta;
use kube::core::DynamicResourceScope;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object of kind `K`, or what is left of one that does not parse.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<K> {
    pub(crate) body: GuardedBody<K>,
    /// What its `Ready` condition says.
    pub(crate) ready: Option<bool>,
}

#[derive(Clone, Debug)]
pub(crate) enum GuardedBody<K> {
    Typed(Box<K>),
    Malformed(Box<Malformed>),
}

/// What is left of an object that does not parse as its kind.
#[derive(Clone, Debug)]
pub(crate) struct Malformed {
    pub(crate) meta: ObjectMeta,
    /// Why it does not parse.
    pub(crate) error: String,
    /// Its status as it stands.
    pub(crate) status: Value,
}

impl<'de, K: DeserializeOwned + kube::Resource> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<K: DeserializeOwned + kube::Resource> Guarded<K> {
    fn parse(mut object: Value) -> Result<Self, serde_json::Error> {
        portolan_core::waypoint!();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let ready = ready_of(&object["status"]);
        let body = match K::deserialize(&object) {
            Ok(typed) => GuardedBody::Typed(Box::new(typed)),
            Err(_) => GuardedBody::Malformed(Box::new(Malformed {
                error: explain::<K>(&object),
                meta: serde_json::from_value(object["metadata"].take())?,
                status: object["status"].take(),
            })),
        };
        Ok(Self { body, ready })
    }
}

/// Which field does not fit, and why. Read a second time, since only objects that do not parse are worth the bookkeeping.
fn explain<K: DeserializeOwned>(object: &Value) -> String {
    match serde_path_to_error::deserialize::<_, K>(object) {
        Ok(_) => "it cannot be read".to_owned(),
        Err(error) if error.path().iter().next().is_none() => error.inner().to_string(),
        Err(error) => format!("{}: {}", error.path(), error.inner()),
    }
}

/// What the `Ready` condition of a status says.
fn ready_of(status: &Value) -> Option<bool> {
    let conditions = status["conditions"].as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    match ready["status"].as_str() {
        Some("True") => Some(true),
        Some("False") => Some(false),
        _ => None,
    }
}

impl<K: kube::Resource> kube::Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    // Its kind's scope is known by its key alone.
    type Scope = DynamicResourceScope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.body {
            GuardedBody::Typed(object) => object.meta(),
            GuardedBody::Malformed(malformed) => &malformed.meta,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.body {
            GuardedBody::Typed(object) => object.meta_mut(),
            GuardedBody::Malformed(malformed) => &mut malformed.meta,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Resource as _;
    use serde_json::json;

    use super::*;

    fn raw(object: Value) -> Guarded<ConfigMap> {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_object_of_its_kind_is_typed_and_loses_its_managed_fields() {
        let metadata = json!({"name": "a", "managedFields": [{"manager": "kubectl"}]});

        let parsed = raw(json!({"metadata": metadata, "data": {"a": "b"}}));

        assert_eq!(parsed.meta().managed_fields, None);
        assert!(matches!(&parsed.body, GuardedBody::Typed(map) if map.data.is_some()));
    }

    #[test]
    fn a_malformed_object_keeps_its_metadata_its_status_and_the_reason() {
        let parsed = raw(json!({"metadata": {"name": "a"}, "data": 7, "status": {"state": "x"}}));

        assert_eq!(parsed.meta().name.as_deref(), Some("a"));
        let GuardedBody::Malformed(malformed) = &parsed.body else { panic!("data is no number") };
        assert!(malformed.error.contains("invalid type"), "{}", malformed.error);
        assert_eq!(malformed.status["state"], "x");
    }

    #[test]
    fn readiness_is_read_from_the_ready_condition() {
        let with = |status: &str| {
            raw(json!({"metadata": {"name": "a"}, "status": {"conditions": [
                {"type": "Other", "status": "True"}, {"type": "Ready", "status": status}]}}))
        };

        assert_eq!(with("True").ready, Some(true));
        assert_eq!(with("False").ready, Some(false));
        assert_eq!(with("Unknown").ready, None);
    }
}
