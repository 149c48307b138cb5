//! A story → text for a terminal.

use std::fmt::Write as _;

use serde_json::Value;

use super::story::{PublishedStory, RouteStory, SettingStory, Story, TaskStory};
use crate::colour::{Colours, Tone};
use crate::health_view::Health;

/// How wide the names of lines are.
const WIDTH: usize = 9;

/// The story for people.
pub(crate) fn render(story: &Story, colours: Colours) -> String {
    let mut text = Text { text: String::new(), colours };
    text.heading(&story.hostname);
    for route in &story.routes {
        text.route(route);
    }
    if let Some(edge) = &story.edge {
        text.edge(edge);
    }
    text.text
}

struct Text {
    text: String,
    colours: Colours,
}

impl Text {
    fn heading(&mut self, heading: &str) {
        let heading = self.colours.tone(Tone::Strong, heading);
        self.plain(&heading);
    }

    fn plain(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("writing to a string cannot fail");
    }

    fn line(&mut self, name: &str, value: &str) {
        self.plain(format!("  {name:WIDTH$} {value}").trim_end());
    }

    fn route(&mut self, route: &RouteStory) {
        let tone = match route.health {
            Health::Ready => Tone::Good,
            Health::Pending | Health::Deleting => Tone::Waiting,
            Health::NotReady => Tone::Bad,
        };
        let health = self.colours.tone(tone, route.health.as_str());
        self.plain(&format!("\nHTTPRoute {}: {health}, {}: {}", route.route, route.reason, route.message));
        if !route.enabled {
            self.line("enabled", "no");
        }
        match &route.tenant {
            Some(tenant) => {
                let line = format!(
                    "{} (account {}), Ready {} {}",
                    tenant.name, tenant.account_id, tenant.ready, tenant.message
                );
                self.line("tenant", line.trim_end());
            }
            None => self.line("tenant", "none"),
        }
        self.line("template", route.template.as_deref().unwrap_or("none"));
        self.line("base", route.base_template.as_deref().unwrap_or("none"));
        self.settings(route);
        if route.tasks.is_empty() {
            self.line("task", "none: nothing is under way");
        }
        for task in &route.tasks {
            self.task(task);
        }
        match &route.published {
            Some(published) => self.published(published),
            None => self.line("published", "nothing yet"),
        }
        if let Some(event) = &route.last_event {
            let mark = if event.warning { "warning " } else { "" };
            self.line("event", &format!("{} {mark}{}: {}", event.at, event.reason, event.message));
        }
        self.line("error", route.last_error.as_deref().unwrap_or("none"));
    }

    fn settings(&mut self, route: &RouteStory) {
        // What nobody asked for and is off is only noise here; -o json has it.
        let told = |setting: &&SettingStory| setting.layer != "built in" || setting.value != false;
        let settings: Vec<&SettingStory> = route.settings.iter().filter(told).collect();
        let width = settings.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
        for (number, setting) in settings.into_iter().enumerate() {
            let name = if number == 0 { "settings" } else { "" };
            self.line(name, &format!("{:width$} = {}  ({})", setting.name, setting.value, setting.layer));
        }
    }

    fn task(&mut self, task: &TaskStory) {
        let next = task.next_attempt.as_ref().map_or_else(String::new, |at| format!(", again at {at}"));
        let line = format!("{}: {}, attempt {}{next}: {}", task.name, task.phase, task.attempts, task.message);
        self.line("task", &line);
        if !task.done.is_empty() {
            self.line("", &format!("done: {}", task.done.join(", ")));
        }
    }

    fn published(&mut self, published: &PublishedStory) {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        match (&published.tunnel_id, &published.origin) {
            (Some(tunnel), origin) => {
                let origin = origin.as_deref().unwrap_or("its origin");
                self.line("rule", &format!("{} → {origin} in tunnel {tunnel}", published.hostname));
            }
            (None, _) => self.line("rule", "none"),
        }
        let zone = or_none(&published.zone_id);
        match (&published.cname_record_id, &published.dns_record_id) {
            (Some(id), _) => self.line("record", &format!("CNAME {id} in zone {zone}")),
            (None, Some(id)) => {
                self.line("record", &format!("A {id} → {} in zone {zone}", or_none(&published.dns_record_ip)));
            }
            (None, None) => self.line("record", "none"),
        }
        match &published.access_app_id {
            Some(id) => self.line("access", &format!("application {id}, {}", policies(&published.access_policy_ids))),
            None => self.line("access", "none: whoever knows the name gets in"),
        }
        if let Some(id) = &published.service_token_id {
            let secret = published.service_token_secret.as_deref().unwrap_or("no Secret");
            let lost = if published.service_token_secret_exists == Some(false) { " (missing)" } else { "" };
            self.line("token", &format!("{id} in Secret {secret}{lost}"));
        }
        self.line("synced", published.last_sync.as_deref().unwrap_or("never"));
    }

    /// The decision of a simulated edge.
    fn edge(&mut self, edge: &Value) {
        self.plain("\nAt the simulated edge, for somebody who is not logged in:");
        if edge["record"].is_object() {
            let text = |name: &str| edge["record"][name].as_str().unwrap_or_default().to_owned();
            self.line("record", &format!("{} {} → {}", text("type"), text("name"), text("content")));
        }
        if edge["app"].is_object() {
            let name = edge["app"]["name"].as_str().unwrap_or_default();
            let of = |policy: &Value| {
                let text = |field: &str| policy[field].as_str().unwrap_or_default().to_owned();
                format!("{} ({})", text("name"), text("decision"))
            };
            let policies: Vec<String> = edge["app"]["policies"].as_array().into_iter().flatten().map(of).collect();
            let policies = if policies.is_empty() { "no policy".to_owned() } else { policies.join(", ") };
            self.line("access", &format!("application {name}: {policies}"));
        }
        if edge["rule"].is_object() {
            let text = |name: &str| edge["rule"][name].as_str().unwrap_or_default().to_owned();
            self.line("rule", &format!("{} → {}", text("hostname"), text("service")));
        }
        self.line("answer", &answer(&edge["outcome"]));
    }
}

fn policies(ids: &[String]) -> String {
    match ids {
        [] => "no policy of ours".to_owned(),
        [one] => format!("policy {one}"),
        several => format!("policies {}", several.join(", ")),
    }
}

/// `302 to https://…`, `530: no record …`.
fn answer(outcome: &Value) -> String {
    let text = |name: &str| outcome[name].as_str().unwrap_or_default();
    match text("kind") {
        "login" => format!("302 to {}", text("location")),
        "redirect" => format!("{} to {}", outcome["status"], text("location")),
        "refused" | "unreachable" => format!("{}: {}", outcome["status"], text("reason")),
        "status" => format!("{} from the rule", outcome["status"]),
        "hello" => "200, the tunnel's test page".to_owned(),
        "origin" => format!("whatever {} answers", text("service")),
        other => other.to_owned(),
    }
}
