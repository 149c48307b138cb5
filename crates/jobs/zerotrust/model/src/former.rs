//! A protected name that its route let go ↔ its `ConfigMap` in the operator's namespace.
//!
//! When the route's state is gone, nothing else tells that the name was protected: whoever takes it next must not have it
//! with less, unless those say so who may.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use portolan_core::{ObjectKey, Problem};

use crate::annotations;
use crate::names::digest;
use crate::reasons;
use crate::route::RouteInput;
use crate::settings::{ACCESS, Settings};
use crate::state::NAME_LABEL;

/// The label that tells them from states.
pub(crate) const COMPONENT_LABEL: (&str, &str) = ("app.kubernetes.io/component", "protected-name");
/// How long a name is remembered that nobody takes.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A protected name that its route let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// The name.
    pub hostname: String,
    /// The route that had it.
    pub route: ObjectKey,
    /// When it was let go, in UTC.
    pub let_go_at: String,
}

impl Former {
    /// The `ConfigMap` that remembers a name.
    pub fn map_name(hostname: &str) -> String {
        format!("cfzt-protected-{}", &digest(hostname)[..16])
    }

    /// Reads one; none where it is none.
    pub fn read(map: &ConfigMap) -> Option<Self> {
        let (label, value) = COMPONENT_LABEL;
        map.metadata.labels.as_ref()?.get(label).filter(|found| *found == value)?;
        let data = map.data.as_ref()?;
        Some(Self {
            hostname: data.get("hostname")?.clone(),
            route: ObjectKey::namespaced(data.get("former_namespace")?, data.get("former_name")?),
            let_go_at: data.get("let_go_at").cloned().unwrap_or_default(),
        })
    }

    /// Writes one.
    pub fn write(&self, operator_namespace: &str) -> ConfigMap {
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let data = [
            ("hostname", self.hostname.as_str()),
            ("former_namespace", self.route.namespace.as_deref().unwrap_or_default()),
            ("former_name", self.route.name.as_str()),
            ("let_go_at", self.let_go_at.as_str()),
        ];
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(Self::map_name(&self.hostname)),
                namespace: Some(operator_namespace.to_owned()),
                labels: Some(texts(&[NAME_LABEL, COMPONENT_LABEL])),
                ..ObjectMeta::default()
            },
            data: Some(texts(&data)),
            ..ConfigMap::default()
        }
    }

    /// Whether nobody took the name for so long that it is forgotten.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.let_go_at.parse().is_ok_and(|since: Timestamp| now.duration_since(since) > REMEMBERED)
    }

    /// Whether a route may have the name open. The one that had it may, as may one of its namespace that says so itself;
    /// what a route of another namespace says is not for it to say.
    pub fn may_open(&self, route: &RouteInput, settings: &Settings, operator_namespace: &str) -> Result<(), Problem> {
        let access = settings.field(&ACCESS);
        let said = access.layer.is_route() && access.value == false;
        let near = self.route.namespace == route.key.namespace;
        if self.route == route.key || (near && said) {
            return Ok(());
        }
        let (name, key) = (&self.hostname, annotations::name(ACCESS.name));
        let message = if near {
            format!(
                "{name} was protected by Access when HTTPRoute {} had it, and this route asks for less: ask for Access, or \
                 set the annotation {key}: \"false\" to publish it open",
                self.route
            )
        } else {
            format!(
                "{name} was protected by Access when a route of another namespace had it, and this route asks for less: ask \
                 for Access; or whoever runs the operator deletes ConfigMap {} in namespace {operator_namespace}",
                Self::map_name(name)
            )
        };
        Err(Problem::waiting(reasons::PROTECTION_WOULD_BE_LOST, message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{OPERATOR, Shelf, reason, route};

    fn former(key: &str) -> Former {
        let (namespace, name) = key.split_once('/').unwrap();
        Former {
            hostname: "app.example.com".to_owned(),
            route: ObjectKey::namespaced(namespace, name),
            let_go_at: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn what_was_written_is_read_back_and_is_no_state() {
        let map = former("default/first").write(OPERATOR);

        assert_eq!(Former::read(&map), Some(former("default/first")));
        assert!(!crate::State::is_one(&map) && crate::State::route_of(&map).is_none());
        assert_eq!(Former::read(&ConfigMap::default()), None);
    }

    #[test]
    fn ux_m22_less_protection_is_for_the_same_route_or_its_neighbours_to_say() {
        let asked = |former: &Former, annotations: &[(&str, &str)]| {
            let route = route(annotations);
            let settings = Shelf::with_tenant(json!({})).settings(&route).unwrap();
            former.may_open(&route, &settings, OPERATOR)
        };
        let open = [("access.enabled", "false")];

        assert_eq!(reason(asked(&former("default/app"), &[])), "fine", "it is the route that had it");
        assert_eq!(reason(asked(&former("default/first"), &[])), "ProtectionWouldBeLost");
        assert_eq!(reason(asked(&former("default/first"), &open)), "fine");
        let elsewhere = asked(&former("team-a/first"), &open).unwrap_err();
        assert_eq!(elsewhere.reason, "ProtectionWouldBeLost");
        assert!(!elsewhere.message.contains("team-a"), "{}", elsewhere.message);
    }

    #[test]
    fn a_name_that_nobody_takes_is_forgotten_after_a_month() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();

        assert!(!former("default/first").is_stale(at("2026-01-30T00:00:00Z")));
        assert!(former("default/first").is_stale(at("2026-02-01T00:00:00Z")));
    }
}
