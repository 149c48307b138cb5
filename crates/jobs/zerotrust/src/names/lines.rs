//! The story of a route → lines for people. Pure.

use portolan_core::{NameStory, StoryLine};

use super::story::{EventStory, PublishedStory, RouteStory, SettingStory, TaskStory, TenantStory};

/// What is told of a route that asks for a name.
pub(super) fn told(route: &RouteStory) -> NameStory {
    NameStory {
        asker: format!("HTTPRoute {}", route.route),
        health: route.health,
        reason: route.reason.clone(),
        message: route.message.clone(),
        lines: lines(route),
        facts: serde_json::to_value(route).expect("stories are plain JSON"),
    }
}

fn lines(route: &RouteStory) -> Vec<StoryLine> {
    let mut all = Vec::new();
    if !route.enabled {
        all.push(StoryLine::new("enabled", "no"));
    }
    all.push(StoryLine::new("tenant", route.tenant.as_ref().map_or_else(|| "none".to_owned(), tenant)));
    all.push(StoryLine::new("template", or_none(route.template.as_deref())));
    all.push(StoryLine::new("base", or_none(route.base_template.as_deref())));
    all.extend(settings(&route.settings));
    if route.tasks.is_empty() {
        all.push(StoryLine::new("task", "none: nothing is under way"));
    }
    all.extend(route.tasks.iter().flat_map(task));
    match &route.published {
        Some(name) => all.extend(published(name)),
        None => all.push(StoryLine::new("published", "nothing yet")),
    }
    all.extend(route.last_event.as_ref().map(event));
    all.push(StoryLine::new("error", or_none(route.last_error.as_deref())));
    all
}

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or("none").to_owned()
}

fn tenant(tenant: &TenantStory) -> String {
    let line = format!("{} (account {}), Ready {} {}", tenant.name, tenant.account_id, tenant.ready, tenant.message);
    line.trim_end().to_owned()
}

fn settings(all: &[SettingStory]) -> Vec<StoryLine> {
    // What nobody asked for and is off is only noise here; -o json has it.
    let told = |setting: &&SettingStory| setting.layer != "built in" || setting.value != false;
    let settings: Vec<&SettingStory> = all.iter().filter(told).collect();
    let width = settings.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
    let line = |(number, setting): (usize, &SettingStory)| {
        let about = if number == 0 { "settings" } else { "" };
        StoryLine::new(about, format!("{:width$} = {}  ({})", setting.name, setting.value, setting.layer))
    };
    settings.into_iter().enumerate().map(line).collect()
}

fn task(task: &TaskStory) -> Vec<StoryLine> {
    let next = task.next_attempt.as_ref().map_or_else(String::new, |at| format!(", again at {at}"));
    let line = format!("{}: {}, attempt {}{next}: {}", task.name, task.phase, task.attempts, task.message);
    let done = (!task.done.is_empty()).then(|| StoryLine::more(format!("done: {}", task.done.join(", "))));
    [StoryLine::new("task", line)].into_iter().chain(done).collect()
}

fn published(name: &PublishedStory) -> Vec<StoryLine> {
    let token = name.service_token_id.as_ref().map(|id| StoryLine::new("token", token(id, name)));
    let first = [
        StoryLine::new("rule", rule(name)),
        StoryLine::new("record", record(name)),
        StoryLine::new("access", access(name)),
    ];
    let synced = StoryLine::new("synced", name.last_sync.as_deref().unwrap_or("never"));
    first.into_iter().chain(token).chain([synced]).collect()
}

fn rule(name: &PublishedStory) -> String {
    let Some(tunnel) = &name.tunnel_id else { return "none".to_owned() };
    let origin = name.origin.as_deref().unwrap_or("its origin");
    format!("{} → {origin} in tunnel {tunnel}", name.hostname)
}

fn record(name: &PublishedStory) -> String {
    let zone = or_none(name.zone_id.as_deref());
    match (&name.cname_record_id, &name.dns_record_id) {
        (Some(id), _) => format!("CNAME {id} in zone {zone}"),
        (None, Some(id)) => format!("A {id} → {} in zone {zone}", or_none(name.dns_record_ip.as_deref())),
        (None, None) => "none".to_owned(),
    }
}

fn access(name: &PublishedStory) -> String {
    let Some(id) = &name.access_app_id else { return "none: whoever knows the name gets in".to_owned() };
    match name.access_policy_ids.as_slice() {
        [] => format!("application {id}, no policy of ours"),
        [one] => format!("application {id}, policy {one}"),
        several => format!("application {id}, policies {}", several.join(", ")),
    }
}

fn token(id: &str, name: &PublishedStory) -> String {
    let secret = name.service_token_secret.as_deref().unwrap_or("no Secret");
    let lost = if name.service_token_secret_exists == Some(false) { " (missing)" } else { "" };
    format!("{id} in Secret {secret}{lost}")
}

fn event(event: &EventStory) -> StoryLine {
    let mark = if event.warning { "warning " } else { "" };
    StoryLine::new("event", format!("{} {mark}{}: {}", event.at, event.reason, event.message))
}
