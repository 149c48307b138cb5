//! An event as lines for people. Pure.

use std::fmt::Write as _;

use portolan_core::Colour;
use portolan_core::text::printable;
use serde_json::Value;
use tracing::Level;

use super::fields::LogFields;
use super::line::{LogLine, Tone};
use portolan_core::job::LogScope;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const DIM: &str = "2";

impl LogLine {
    /// `2026-01-01T00:00:00.000Z  INFO Message field=value`, and a line for each of the diff's, none without its log scope.
    pub(super) fn text(&self, colour: Colour, scope: LogScope) -> String {
        let head = format!("{:.3} {}", self.time, painted(&format!("{:>5}", self.level), level(self.level), colour));
        let mut text = format!("{head} {}", painted(&printable(&self.message), tone(self.tone), colour));
        append(&mut text, &self.fields);
        text.push('\n');
        for line in self.diff.lines() {
            write!(text, "{head}   {}", painted(&printable(line), sign(line), colour)).expect("a string takes all");
            if let Some(name) = self.fields.get(scope.name) {
                write!(text, " {}={}", scope.name, shown(name)).expect("a string takes all");
            }
            text.push('\n');
        }
        text
    }
}

fn append(text: &mut String, fields: &LogFields) {
    for (name, value) in fields.iter() {
        write!(text, " {name}={}", shown(value)).expect("a string takes all");
    }
}

/// A text as it is where nothing in it could be mistaken, else in quotes.
fn shown(value: &Value) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"';
    match value {
        Value::String(text) if !text.is_empty() && text.chars().all(plain) => printable(text).into_owned(),
        other => printable(&other.to_string()).into_owned(),
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => RED,
        Level::WARN => YELLOW,
        Level::INFO => GREEN,
        _ => DIM,
    }
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Heading => CYAN,
        Tone::Unchanged => GREEN,
        Tone::Changed => YELLOW,
        Tone::Failed => RED,
    }
}

/// The colour of a line of a diff, by the sign it begins with.
fn sign(line: &str) -> &'static str {
    match line.trim_start().chars().next() {
        Some('-') => RED,
        Some('+') => GREEN,
        _ => CYAN,
    }
}

fn painted(text: &str, code: &str, colour: Colour) -> String {
    match colour {
        Colour::On if !code.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        Colour::On | Colour::Off => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use portolan_core::{Change, Plan, Problem, Target};
    use serde_json::json;
    use tracing::level_filters::LevelFilter;

    use crate::Levels;
    use crate::logs::outcome;
    use crate::logs::testing::Captured;

    fn fleet() -> portolan_core::ObjectKey {
        portolan_core::ObjectKey::namespaced("default", "staging")
    }

    /// A pass that changed something, one that did not, and one that failed.
    fn three_passes() {
        Levels::span(&fleet()).in_scope(|| {
            let target = Target::new("Access application", "", "app.example.com");
            let (before, after) = (json!({"session": "8h", "name": "app"}), json!({"session": "24h", "name": "app"}));
            let record = Change::create(Target::new("DNS record", "example.com", "CNAME app"), json!({"ttl": 1}), "");
            let plan = Plan::from_iter([Change::update(target, before, after, "the template changed"), record]);
            outcome::changed(&"HTTPRoute shop/app", &plan);
            outcome::unchanged(&"HTTPRoute shop/web");
            outcome::failed(&"HTTPRoute shop/api", &Problem::invalid("GroupNotFound", "no group Enginering"));
        });
    }

    #[test]
    fn lines_are_plain_where_no_colour_is_wanted() {
        let text = Captured::text(LevelFilter::INFO).of(three_passes);

        let wanted = "\
1970-01-01T00:00:07.000Z  INFO HTTPRoute shop/app: 1 created, 1 updated outcome=changed fleet=staging fleet_namespace=default
1970-01-01T00:00:07.000Z  INFO   ~ update Access application app.example.com: the template changed fleet=staging
1970-01-01T00:00:07.000Z  INFO     - session: \"8h\" fleet=staging
1970-01-01T00:00:07.000Z  INFO     + session: \"24h\" fleet=staging
1970-01-01T00:00:07.000Z  INFO   + create DNS record CNAME app (example.com) fleet=staging
1970-01-01T00:00:07.000Z  INFO     + ttl: 1 fleet=staging
1970-01-01T00:00:07.000Z  INFO HTTPRoute shop/web: unchanged outcome=unchanged fleet=staging fleet_namespace=default
1970-01-01T00:00:07.000Z ERROR HTTPRoute shop/api: no group Enginering outcome=failed reason=GroupNotFound class=invalid fleet=staging fleet_namespace=default
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn colours_tell_the_outcome_and_leave_fields_alone() {
        let text = Captured::coloured(LevelFilter::INFO).of(|| {
            three_passes();
            tracing::info!(heading = true, "Portolan starts");
        });

        for part in [
            "\u{1b}[33mHTTPRoute shop/app: 1 created, 1 updated\u{1b}[0m",
            "\u{1b}[31m  - session: \"8h\"\u{1b}[0m",
            "\u{1b}[32m  + session: \"24h\"\u{1b}[0m",
            "\u{1b}[32mHTTPRoute shop/web: unchanged\u{1b}[0m",
            "\u{1b}[31mHTTPRoute shop/api: no group Enginering\u{1b}[0m",
            "\u{1b}[36mPortolan starts\u{1b}[0m\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
        assert!(text.lines().take(8).all(|line| line.contains(" fleet=staging")), "{text}");
    }

    #[test]
    fn json_has_the_same_fields() {
        let text = Captured::json(LevelFilter::INFO).of(three_passes);

        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let diff = "~ update Access application app.example.com: the template changed\n  - session: \"8h\"\n  \
                    + session: \"24h\"\n+ create DNS record CNAME app (example.com)\n  + ttl: 1";
        assert_eq!(
            lines[0],
            json!({"timestamp": "1970-01-01T00:00:07.000000Z", "level": "INFO", "target": "portolan_engine::logs::outcome",
                "message": "HTTPRoute shop/app: 1 created, 1 updated", "outcome": "changed", "diff": diff,
                "fleet": "staging", "fleet_namespace": "default"})
        );
        assert_eq!((&lines[2]["reason"], &lines[2]["class"]), (&json!("GroupNotFound"), &json!("invalid")));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn an_event_may_say_again_what_its_span_says() {
        let text = Captured::text(LevelFilter::INFO).of(|| {
            tracing::info_span!("pass", kind = "Route", object = "a", count = 1).in_scope(
                || tracing::info!(object = "b", took = ?std::time::Duration::from_secs(2), late = true, "Done"),
            );
        });

        assert_eq!(text, "1970-01-01T00:00:07.000Z  INFO Done object=b took=2s late=true kind=Route count=1\n");
    }

    #[test]
    fn what_users_write_cannot_forge_lines_or_colours() {
        let text = Captured::text(LevelFilter::INFO)
            .of(|| tracing::info!(name = "a\nb \u{1b}[31m", "first\nsecond \u{1b}[31mred"));

        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains(r#"name="a\nb \u001b[31m""#), "{text}");
    }
}
