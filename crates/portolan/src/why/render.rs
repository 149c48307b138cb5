//! What was told of a name → text for a terminal.

use std::fmt::Write as _;

use portolan_core::NameStory;
use serde_json::Value;

use super::Told;
use crate::colour::{Colours, Tone};
use crate::health_view::Health;

/// How wide the names of lines are.
const WIDTH: usize = 9;

/// All of it for people.
pub(crate) fn render(told: &Told, colours: Colours) -> String {
    let mut text = Text { text: String::new(), colours };
    text.heading(&told.hostname);
    for story in told.stories.iter().flat_map(|(_, stories)| stories) {
        text.story(story);
    }
    if let Some(edge) = &told.edge {
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

    fn story(&mut self, story: &NameStory) {
        let tone = match story.health {
            Health::Ready => Tone::Good,
            Health::Pending | Health::Deleting => Tone::Waiting,
            Health::NotReady => Tone::Bad,
        };
        let health = self.colours.tone(tone, story.health.as_str());
        self.plain(&format!("\n{}: {health}, {}: {}", story.asker, story.reason, story.message));
        for line in &story.lines {
            self.line(line.about, &line.text);
        }
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
