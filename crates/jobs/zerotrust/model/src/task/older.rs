//! Tasks that an older operator left → what they know of Cloudflare. They are never carried out as they are: their specs
//! lost fields on the way to the cluster, and their results lack what a later removal needs.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use portolan_core::ObjectKey;
use portolan_publication::{Footprint, Intent};
use serde_json::Value;

use super::ids::given;
use super::{CloudflareTask, Phase, TaskAction, TaskResult};
use crate::annotations;

/// The annotation that tells our tasks from those of older operators, and its value.
const FORM: (&str, &str) = ("schema-version", "1");

impl CloudflareTask {
    /// Says that a task is in our form.
    pub fn set_form(&mut self) {
        let notes = self.metadata.annotations.get_or_insert_default();
        notes.insert(annotations::name(FORM.0), FORM.1.to_owned());
    }

    /// Whether an older operator made the task, for a route that can be told. One that names no route cannot be made anew,
    /// and is carried out as it is.
    pub fn is_older(&self) -> bool {
        !self.annotations().contains_key(&annotations::name(FORM.0)) && self.route().is_some()
    }

    /// The route that the labels name: deletions of older operators may say it nowhere else.
    pub(super) fn labelled_route(&self) -> Option<ObjectKey> {
        let label = |suffix: &str| self.labels().get(&annotations::name(suffix)).filter(|text| !text.is_empty());
        Some(ObjectKey::namespaced(label("httproute-namespace")?, label("httproute-name")?))
    }

    /// Whether an older operator's worker had the task in its hands.
    fn was_begun(&self) -> bool {
        self.phase() != Phase::Pending
    }

    /// What stands for the name, as a task of an older operator and the state tell it together. What the task reports is
    /// newer than the state; what it was to delete is what the state said before it went.
    pub fn taken_over(&self, recorded: &Footprint) -> Footprint {
        match self.spec.action() {
            TaskAction::Reconcile if self.was_begun() => {
                joined(&joined(&self.spec.existing(), recorded), &self.reported())
            }
            TaskAction::Reconcile => joined(&self.spec.existing(), recorded),
            TaskAction::Delete => joined(&self.spec.to_delete(), recorded),
        }
    }

    /// What the result says, with the place that only the spec knows. The rule's id was always empty: the rule of a task
    /// that was begun is taken for written, as it is the first thing that was.
    fn reported(&self) -> Footprint {
        let result = self.status.as_ref().and_then(|status| status.result.as_ref()).map(TaskResult::footprint);
        let operations = self.spec.operations.as_ref();
        let tunnelled = operations.and_then(|all| all.tunnel_route.as_ref()?.enabled).unwrap_or(true);
        let addressed = operations.and_then(|all| all.dns_record.as_ref()?.enabled).unwrap_or(false);
        let tunnel_id = given(self.spec.tunnel_id.as_ref()).filter(|_| tunnelled && !addressed);
        let result = result.unwrap_or_default();
        Footprint {
            account_id: result.account_id.clone().or_else(|| given(self.spec.account_id.as_ref())),
            hostname: result.hostname.clone().or_else(|| given(self.spec.hostname.as_ref())),
            zone_id: result.zone_id.clone().or_else(|| given(self.spec.zone_id.as_ref())),
            has_rule: result.has_rule || tunnel_id.is_some(),
            tunnel_id: result.tunnel_id.clone().or(tunnel_id),
            ..result
        }
    }

    /// What an older operator's worker may have made without reporting it: it named things as we do.
    pub fn unreported(&self) -> Option<Intent> {
        let open =
            matches!(self.phase(), Phase::InProgress | Phase::Failed) && self.spec.action() == TaskAction::Reconcile;
        let (Some(route), Some(since)) = (self.route(), self.creation_timestamp().filter(|_| open)) else {
            return None;
        };
        let operations = self.spec.operations.clone().unwrap_or_default();
        let protects = operations.access_app.is_some_and(|app| app.enabled.unwrap_or(false));
        let mints = operations.service_token.is_some_and(|token| token.enabled.unwrap_or(false));
        let set = |text: Option<&String>| given(text).into_iter().collect::<BTreeSet<String>>();
        Some(Intent {
            account_id: given(self.spec.account_id.as_ref()),
            token: mints.then(|| format!("{}-service-token", route.name)),
            older_token: mints.then(|| format!("{}-service-token", route.name)),
            apps: protects.then(|| route.name.clone()).into_iter().collect(),
            hostnames: set(self.spec.hostname.as_ref()),
            tunnels: set(self.spec.tunnel_id.as_ref()),
            zones: set(self.spec.zone_id.as_ref()),
            ..Intent::since(since.0)
        })
    }
}

/// Everything that either says; where both say something, the newer.
fn joined(older: &Footprint, newer: &Footprint) -> Footprint {
    let fields = |footprint: &Footprint| match serde_json::to_value(footprint) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let mut all = fields(older);
    all.extend(fields(newer));
    serde_json::from_value(Value::Object(all)).expect("fields of footprints make a footprint")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

    /// A task as the older operator with tasks leaves it.
    fn left(phase: &str, result: Value) -> CloudflareTask {
        from_value(json!({
            "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareTask",
            "metadata": { "name": "cfzt-shop-api", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": {
                "httprouteRef": { "name": "api", "namespace": "shop" }, "accountId": "a1", "tunnelId": TUNNEL, "zoneId": "z1",
                "hostname": "api.example.com",
                "operations": { "accessApp": { "enabled": true }, "serviceToken": { "enabled": true } },
                "existingIds": { "cnameRecordId": "r1", "accessPolicyIds": "" },
            },
            "status": { "phase": phase, "result": result },
        }))
        .unwrap()
    }

    #[test]
    fn only_tasks_without_our_form_are_older() {
        let mut task = left("Pending", json!({}));
        assert!(task.is_older());

        task.set_form();

        assert!(!task.is_older());
    }

    #[test]
    fn a_deletion_that_names_its_route_in_labels_alone_is_that_routes() {
        let mut task = left("Pending", json!({}));
        task.spec.httproute_ref = None;
        assert_eq!((task.route(), task.is_older()), (None, false));

        task.metadata.labels = Some(
            [("httproute-name", "api"), ("httproute-namespace", "shop")]
                .map(|(suffix, value)| (annotations::name(suffix), value.to_owned()))
                .into(),
        );

        assert_eq!(task.route(), Some(ObjectKey::namespaced("shop", "api")));
    }

    #[test]
    fn what_a_begun_task_reports_is_completed_by_its_place_and_by_the_state() {
        let state = Footprint { access_app_id: Some("old".to_owned()), ..Footprint::default() };
        let reported = json!({ "hostnameRouteId": "", "accessAppId": "app1", "serviceTokenId": "s1" });

        let whole = left("Failed", reported).taken_over(&state);

        assert_eq!((whole.access_app_id.as_deref(), whole.service_token_id.as_deref()), (Some("app1"), Some("s1")));
        assert_eq!((whole.cname_record_id.as_deref(), whole.zone_id.as_deref()), (Some("r1"), Some("z1")));
        assert_eq!((whole.hostname.as_deref(), whole.account_id.as_deref()), (Some("api.example.com"), Some("a1")));
        assert_eq!((whole.tunnel_id.as_deref(), whole.has_rule), (Some(TUNNEL), true));
    }

    #[test]
    fn a_task_that_was_never_begun_claims_nothing_new() {
        let mut task = left("Pending", json!({}));
        task.spec.existing_ids = None;

        assert!(task.taken_over(&Footprint::default()).is_empty());
        assert_eq!(task.unreported(), None);
    }

    #[test]
    fn a_deletion_knows_what_its_state_knew() {
        let mut task = left("Pending", json!({}));
        task.spec.action = Some(TaskAction::Delete);
        task.spec.delete_ids = Some(
            from_value(json!({ "hostname": "api.example.com", "accessAppId": "app1", "tunnelId": TUNNEL })).unwrap(),
        );

        let whole = task.taken_over(&Footprint::default());

        assert_eq!((whole.access_app_id.as_deref(), whole.has_rule), (Some("app1"), true));
        assert_eq!((whole.hostname.as_deref(), whole.zone_id.as_deref()), (Some("api.example.com"), Some("z1")));
    }

    #[test]
    fn what_may_have_been_made_is_looked_for_under_the_names_that_both_use() {
        let intent = left("InProgress", json!({})).unreported().unwrap();

        assert_eq!(intent.since.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!((intent.token.as_deref(), intent.apps.contains("api")), (Some("api-service-token"), true));
        assert!(intent.hostnames.contains("api.example.com"));
        assert_eq!(left("Completed", json!({})).unreported(), None);
    }
}
