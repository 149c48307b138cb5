//! Facts and a name → the story of that name. Pure, except for one look at a Secret.

use portolan_zerotrust::model::{CloudflareTask, Enabled, settings};
use serde::Serialize;
use serde_json::Value;

use crate::health_view::Health;
use crate::server::Server;
use crate::zerotrust::{Facts, RouteView};

/// All that is known of a name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Story {
    pub(crate) hostname: String,
    /// Routes that ask for it; the one that has it first.
    pub(crate) routes: Vec<RouteStory>,
    /// What a simulated edge answers to somebody who is not logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) edge: Option<Value>,
}

/// A route that asks for the name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RouteStory {
    pub(crate) route: String,
    pub(crate) enabled: bool,
    pub(crate) health: Health,
    pub(crate) reason: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<TenantStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_template: Option<String>,
    /// Settings that somebody said, or that are on.
    pub(crate) settings: Vec<SettingStory>,
    pub(crate) tasks: Vec<TaskStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<PublishedStory>,
    /// The last thing that happened to the route, from its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_event: Option<EventStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

/// The tenant that a route is published with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantStory {
    pub(crate) name: String,
    pub(crate) account_id: String,
    pub(crate) ready: String,
    pub(crate) message: String,
}

/// A setting, and the layer that said it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingStory {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) layer: String,
}

/// Work that is under way, or failed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskStory {
    pub(crate) name: String,
    pub(crate) phase: String,
    pub(crate) message: String,
    pub(crate) attempts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_attempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
    pub(crate) done: Vec<String>,
    pub(crate) changes: Vec<String>,
}

/// What stands at Cloudflare, by the last success.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PublishedStory {
    pub(crate) hostname: String,
    pub(crate) mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tunnel_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cname_record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dns_record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dns_record_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) access_app_id: Option<String>,
    pub(crate) access_policy_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_token_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_token_secret_exists: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_sync: Option<String>,
}

/// An event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventStory {
    pub(crate) at: String,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Story {
    /// Tells what facts say of a name.
    pub(crate) fn of(facts: &Facts, hostname: &str) -> Self {
        let wanted =
            portolan_zerotrust::model::hostname(hostname).map_or_else(|_| hostname.to_owned(), |name| name.to_string());
        let views = facts.views();
        let asks = |view: &&RouteView<'_>| {
            let holds = view.state.and_then(|state| state.footprint.hostname.as_deref()) == Some(wanted.as_str());
            view.hostname() == wanted || holds
        };
        let mut routes: Vec<RouteStory> = views.iter().filter(asks).map(RouteStory::of).collect();
        routes.sort_by_key(|route| (route.published.is_none(), route.route.clone()));
        Self { hostname: wanted, routes, edge: None }
    }
}

impl RouteStory {
    fn of(view: &RouteView<'_>) -> Self {
        let verdict = view.verdict();
        let failure = (verdict.health == Health::NotReady).then(|| format!("{}: {}", verdict.reason, verdict.message));
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
    pub(super) async fn look_for_secret(&mut self, server: &Server) {
        let Some((namespace, _)) = self.route.split_once('/') else { return };
        let Some(published) = &mut self.published else { return };
        if let Some(name) = &published.service_token_secret {
            published.service_token_secret_exists = Some(crate::zerotrust::has_secret(server, namespace, name).await);
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
    fn of(tenant: &portolan_zerotrust::model::CloudflareZeroTrustTenant) -> Self {
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
    fn of(state: &portolan_zerotrust::model::State) -> Self {
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
