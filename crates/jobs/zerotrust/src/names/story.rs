//! Facts and a name → what is known of each route that asks for it. Pure, except for one look at a Secret.

use kube::Client;
use portolan_core::ObjectHealth;
use portolan_zerotrust_model::{CloudflareTask, CloudflareZeroTrustTenant, Enabled, State, settings};
use serde::Serialize;
use serde_json::Value;

use super::facts::{self, Facts};
use super::route::RouteView;

/// A route that asks for the name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RouteStory {
    pub(super) route: String,
    pub(super) enabled: bool,
    pub(super) health: ObjectHealth,
    pub(super) reason: String,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<TenantStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_template: Option<String>,
    /// Settings that somebody said, or that are on.
    pub(super) settings: Vec<SettingStory>,
    pub(super) tasks: Vec<TaskStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<PublishedStory>,
    /// The last thing that happened to the route, from its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_event: Option<EventStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_error: Option<String>,
}

/// The tenant that a route is published with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TenantStory {
    pub(super) name: String,
    pub(super) account_id: String,
    pub(super) ready: String,
    pub(super) message: String,
}

/// A setting, and the layer that said it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingStory {
    pub(super) name: &'static str,
    pub(super) value: Value,
    pub(super) layer: String,
}

/// Work that is under way, or failed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskStory {
    pub(super) name: String,
    pub(super) phase: String,
    pub(super) message: String,
    pub(super) attempts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_attempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<String>,
    pub(super) done: Vec<String>,
    pub(super) changes: Vec<String>,
}

/// What stands at Cloudflare, by the last success.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublishedStory {
    pub(super) hostname: String,
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tunnel_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cname_record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dns_record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dns_record_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) access_app_id: Option<String>,
    pub(super) access_policy_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_token_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_token_secret_exists: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_sync: Option<String>,
}

/// An event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventStory {
    pub(super) at: String,
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The routes that ask for a name, or hold it; the one that has it first.
pub(super) fn about(facts: &Facts, hostname: &str) -> Vec<RouteStory> {
    let views = facts.views();
    let asks = |view: &&RouteView<'_>| {
        let holds = view.state.and_then(|state| state.footprint.hostname.as_deref()) == Some(hostname);
        view.hostname() == hostname || holds
    };
    let mut routes: Vec<RouteStory> = views.iter().filter(asks).map(RouteStory::of).collect();
    routes.sort_by_key(|route| (route.published.is_none(), route.route.clone()));
    routes
}

impl RouteStory {
    fn of(view: &RouteView<'_>) -> Self {
        let verdict = view.verdict();
        let failure =
            (verdict.health == ObjectHealth::NotReady).then(|| format!("{}: {}", verdict.reason, verdict.message));
        let selected = view.selected.as_ref().ok();
        Self {
            route: view.key(),
            enabled: view.input.enabled() == Enabled::Yes,
            health: verdict.health,
            reason: verdict.reason,
            message: verdict.message,
            tenant: view.tenant.as_deref().map(TenantStory::of),
            template: selected.and_then(|selected| Some(selected.template.as_ref()?.key().to_string())),
            base_template: selected.and_then(|selected| Some(selected.base.as_ref()?.key().to_string())),
            settings: said(view),
            tasks: view.tasks.iter().map(|task| TaskStory::of(task)).collect(),
            published: view.state.map(PublishedStory::of),
            last_event: view.incident.map(|incident| EventStory {
                at: portolan_core::rfc3339(incident.at),
                warning: incident.is_warning,
                reason: incident.reason.clone(),
                message: incident.message.clone(),
            }),
            last_error: failure.or_else(|| view.state.and_then(|state| state.last_error.clone())),
        }
    }

    /// Whether the Secret with the token's credentials is there.
    pub(super) async fn look_for_secret(&mut self, client: &Client) {
        let Some((namespace, _)) = self.route.split_once('/') else { return };
        let Some(published) = &mut self.published else { return };
        if let Some(name) = &published.service_token_secret {
            published.service_token_secret_exists = Some(facts::has_secret(client, namespace, name).await);
        }
    }
}

fn said(view: &RouteView<'_>) -> Vec<SettingStory> {
    let Ok(merged) = view.settings() else { return Vec::new() };
    let all = settings::SETTINGS.iter().map(|setting| (setting.name, merged.field(setting)));
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let said = all.filter(|(_, field)| field.layer.is_user() || !is_nothing(&field.value));
    said.map(|(name, field)| SettingStory { name, value: field.value.clone(), layer: field.layer.to_string() })
        .collect()
}

impl TenantStory {
    fn of(tenant: &CloudflareZeroTrustTenant) -> Self {
        let conditions = tenant.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let ready = serde_json::to_value(conditions).unwrap_or_default();
        let ready = ready.as_array().into_iter().flatten().find(|condition| condition["type"] == "Ready").cloned();
        let text = |name: &str| ready.as_ref().and_then(|ready| ready[name].as_str()).unwrap_or_default().to_owned();
        let status = match text("status").as_str() {
            "" => "Unknown".to_owned(),
            status => format!("{status}/{}", text("reason")),
        };
        Self {
            name: tenant.key().to_string(),
            account_id: tenant.spec.account_id.clone(),
            ready: status,
            message: text("message"),
        }
    }
}

impl TaskStory {
    fn of(task: &CloudflareTask) -> Self {
        let status = task.status.clone().unwrap_or_default();
        Self {
            name: task.metadata.name.clone().unwrap_or_default(),
            phase: format!("{:?}", status.phase.unwrap_or_default()),
            message: status.message.unwrap_or_default(),
            attempts: status.attempts.unwrap_or_default(),
            next_attempt: status.next_attempt_time,
            worker: status.worker_pod.filter(|worker| !worker.is_empty()),
            done: status.completed_operations,
            changes: status.changes,
        }
    }
}

impl PublishedStory {
    fn of(state: &State) -> Self {
        let print = state.footprint.clone();
        Self {
            hostname: print.hostname.unwrap_or_default(),
            mode: state.mode.as_str(),
            tunnel_id: print.tunnel_id.filter(|_| print.has_rule),
            origin: state.origin_service.clone(),
            zone_id: print.zone_id,
            cname_record_id: print.cname_record_id,
            dns_record_id: print.dns_record_id,
            dns_record_ip: print.dns_record_ip,
            access_app_id: print.access_app_id,
            access_policy_ids: print.access_policy_ids,
            service_token_secret: state.token_secret_name.clone().filter(|_| print.service_token_id.is_some()),
            service_token_id: print.service_token_id,
            service_token_secret_exists: None,
            last_sync: state.last_sync_time.clone(),
        }
    }
}
