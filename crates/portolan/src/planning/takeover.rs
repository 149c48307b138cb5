//! What older operators left in a cluster → what would become of it. Pure; the reading is at the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use portolan_core::text::{count, join_some};
use portolan_zerotrust::model::state::StateForm;
use portolan_zerotrust::model::{CloudflareTask, OLDER_FINALIZER, State, annotations};
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::finalizers::config_maps;
use crate::server::Server;

/// Names that a line shows.
const NAMES_SHOWN: usize = 5;

/// What would be taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TakeOver {
    /// States by their form, by name.
    states: BTreeMap<&'static str, Vec<String>>,
    /// States with a client secret in them.
    unclean: Vec<String>,
    /// Tasks, with their phase.
    tasks: Vec<String>,
    /// Objects with an older operator's finalizer.
    finalizers: Vec<String>,
    /// Objects with annotations of an older operator's framework.
    annotated: Vec<String>,
}

impl TakeOver {
    fn of(maps: &[ConfigMap], tasks: &[CloudflareTask], objects: &[DynamicObject]) -> Self {
        let mut found = Self::default();
        for map in maps.iter().filter(|map| State::is_one(map)) {
            let form = match State::form(map) {
                StateForm::Ours => continue,
                StateForm::Ids => "ids",
                StateForm::Flat => "flat",
            };
            found.states.entry(form).or_default().push(map.name_any());
            if State::needs_scrubbing(map) {
                found.unclean.push(map.name_any());
            }
        }
        let older = tasks.iter().filter(|task| task.is_older());
        found.tasks = older.map(|task| format!("{} ({})", task.name_any(), task.phase().as_str())).collect();
        for object in objects {
            let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
            let title = format!("{kind} {}/{}", object.namespace().unwrap_or_default(), object.name_any());
            if object.finalizers().iter().any(|name| name == OLDER_FINALIZER) {
                found.finalizers.push(title.clone());
            }
            if object.annotations().keys().any(|name| name.starts_with(annotations::OLDER_PREFIX)) {
                found.annotated.push(title);
            }
        }
        found
    }

    /// Reads it from the copy in which is planned.
    pub(super) async fn read(copy: &Server, operator_namespace: &str) -> Outcome<Self> {
        let maps = config_maps(copy, operator_namespace).await?;
        let mut tasks = Vec::new();
        let mut objects = Vec::new();
        for (path, kind) in [
            ("/apis/cfzt.cloudflare.com/v1alpha1/cloudflaretasks", "CloudflareTask"),
            ("/apis/cfzt.cloudflare.com/v1alpha1/cloudflarezerotrusttenants", "CloudflareZeroTrustTenant"),
            ("/apis/gateway.networking.k8s.io/v1/httproutes", "HTTPRoute"),
        ] {
            let list = copy.find(path).await?.unwrap_or_default();
            for mut item in list["items"].as_array().cloned().unwrap_or_default() {
                (item["kind"], item["apiVersion"]) = (json!(kind), json!("v1"));
                match kind {
                    "CloudflareTask" => tasks.extend(serde_json::from_value(item).ok()),
                    _ => objects.extend(serde_json::from_value(item).ok()),
                }
            }
        }
        Ok(Self::of(&maps, &tasks, &objects))
    }

    /// Whether no older operator left anything.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("Taken over from an older operator:\n");
        let mut line = |what: String| writeln!(text, "  {what}").expect("writing to a string cannot fail");
        let forms = [("ids", "with their ids in one text"), ("flat", "with every id by itself")];
        for (form, how) in forms {
            if let Some(names) = self.states.get(form) {
                line(format!("{} {how}, written anew: {}", count(names.len(), "state"), join_some(names, NAMES_SHOWN)));
            }
        }
        for (names, noun, what) in [
            (&self.unclean, "state", "with a client secret, which is taken out"),
            (&self.tasks, "task", "made anew or carried out"),
            (&self.finalizers, "finalizer", "replaced"),
            (&self.annotated, "object", "with annotations that are dropped"),
        ] {
            if !names.is_empty() {
                line(format!("{} {what}: {}", count(names.len(), noun), join_some(names, NAMES_SHOWN)));
            }
        }
        text
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "states": self.states, "statesWithSecrets": self.unclean, "tasks": self.tasks,
            "finalizers": self.finalizers, "annotations": self.annotated,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    fn state(name: &str, data: Value) -> ConfigMap {
        let mut map = json!({
            "metadata": {"name": name, "labels": {"app.kubernetes.io/component": "state-tracker"}}, "data": data,
        });
        (map["data"]["httproute_name"], map["data"]["httproute_namespace"]) = (json!("app"), json!("default"));
        from_value(map).unwrap()
    }

    #[test]
    fn what_older_operators_left_is_told_by_its_form() {
        let maps = [
            state("a", json!({"cloudflare_ids": "{\"serviceTokenClientSecret\": \"s3cret\"}"})),
            state("b", json!({"cname_record_id": "r1"})),
            state("c", json!({"schema_version": "1", "cloudflare_ids": "{}"})),
        ];
        let route = json!({
            "apiVersion": "v1", "kind": "HTTPRoute",
            "metadata": {"name": "app", "namespace": "default", "finalizers": [OLDER_FINALIZER]},
        });

        let found = TakeOver::of(&maps, &[], &[from_value(route).unwrap()]);

        let text = found.text();
        assert!(text.contains("1 state with their ids in one text, written anew: a"), "{text}");
        assert!(text.contains("1 state with every id by itself, written anew: b"), "{text}");
        assert!(text.contains("1 state with a client secret, which is taken out: a"), "{text}");
        assert!(text.contains("1 finalizer replaced: HTTPRoute default/app"), "{text}");
        assert!(!format!("{text}{}", found.to_json()).contains("s3cret"));
    }

    #[test]
    fn a_cluster_of_our_own_has_nothing_to_take_over() {
        assert!(TakeOver::of(&[state("c", json!({"schema_version": "1"}))], &[], &[]).is_empty());
    }
}
