//! `--log`, `LOG_FORMAT`, `LOG_LEVEL` and `NO_COLOR` → the process's log on standard error; spans go to a collector where
//! one is named.

use std::sync::Arc;

use clap::ValueEnum;
use portolan_core::Colour;
use portolan_engine::logs::{LineFormat, LogLayer};
use portolan_engine::telemetry::SpanLayer;
use portolan_engine::{Levels, level};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::jobs;

/// How log lines look: one readable line, or one JSON object, an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Starts logging. `default_level` holds where `LOG_LEVEL` is unset.
pub(crate) fn start(format: Option<LogFormat>, default_level: &str, spans: Option<SpanLayer>) {
    let wish = LogChoice::read(format, default_level, |name| std::env::var(name).ok());
    let mut log = LogLayer::new(wish.form, Arc::new(jiff::Timestamp::now), std::io::stderr);
    let mut spans = spans;
    if let Some(scope) = jobs::log_scope() {
        (log, spans) = (log.naming(scope), spans.map(|spans| spans.naming(scope)));
    }
    let filter = Levels::process().filter(EnvFilter::new(&wish.directives));
    let spans = spans.map(|spans| spans.with_filter(filter_fn(is_ours)));
    tracing_subscriber::registry().with(log.with_filter(filter)).with(spans).init();
    for complaint in wish.complaints {
        tracing::warn!("{complaint}");
    }
}

/// Spans and their events are sent from our own code only, whatever the log shows.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("portolan") && *metadata.level() <= Level::INFO
}

/// What the log is to be like.
#[derive(Debug, PartialEq, Eq)]
struct LogChoice {
    form: LineFormat,
    /// As the filter reads them.
    directives: String,
    /// What was not understood.
    complaints: Vec<String>,
}

impl LogChoice {
    /// The environment names the level, and the format where the command line does not.
    fn read(format: Option<LogFormat>, default_level: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut complaints = Vec::new();
        let format = format.or_else(|| {
            let name = variable("LOG_FORMAT")?;
            let known = LogFormat::from_str(&name, true).ok();
            if known.is_none() {
                complaints.push(format!("LOG_FORMAT {name:?} is not known; use text or json. Writing text"));
            }
            known
        });
        let directives = match variable("LOG_LEVEL") {
            None => default_level.to_owned(),
            Some(level) => directives(&level).unwrap_or_else(|| {
                let known = "use DEBUG, INFO, WARNING or ERROR, or a list such as info,portolan_engine=debug";
                complaints.push(format!("LOG_LEVEL {level:?} is not known; {known}. Logging INFO"));
                "info".to_owned()
            }),
        };
        let colour = if variable("NO_COLOR").is_some() { Colour::Off } else { Colour::On };
        let form = match format {
            Some(LogFormat::Json) => LineFormat::Json,
            Some(LogFormat::Text) | None => LineFormat::Text(colour),
        };
        Self { form, directives, complaints }
    }
}

/// What the filter is told for a level, or for a list of targets with theirs; none for anything else. Libraries say much,
/// and not all of it is fit to be kept, so a low level by its name alone counts for our own code.
fn directives(wanted: &str) -> Option<String> {
    match level(wanted) {
        Some(level) if level > Level::INFO => return Some(format!("info,portolan={level}")),
        Some(level) => return Some(level.to_string()),
        None => {}
    }
    let list =
        wanted.split(',').map(|part| level(part).map_or_else(|| part.trim().to_owned(), |level| level.to_string()));
    let list: Vec<String> = list.collect();
    let is_list = wanted.contains(['=', ',']) || wanted.eq_ignore_ascii_case("off");
    (is_list && EnvFilter::try_new(list.join(",")).is_ok()).then(|| list.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(format: Option<LogFormat>, variables: &[(&str, &str)]) -> LogChoice {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        LogChoice::read(format, "warn", find)
    }

    #[test]
    fn levels_have_the_names_that_manifests_use() {
        let of = |level| wish(None, &[("LOG_LEVEL", level)]).directives;

        assert_eq!(["ERROR", "WARNING", "info"].map(of), ["ERROR", "WARN", "INFO"]);
        assert_eq!(of("DEBUG"), "info,portolan=DEBUG");
        assert_eq!(of(""), "warn");
    }

    #[test]
    fn a_list_of_targets_is_a_level_too() {
        let wish = wish(None, &[("LOG_LEVEL", "warning,portolan_engine=debug")]);

        assert_eq!((wish.directives.as_str(), wish.complaints.len()), ("WARN,portolan_engine=debug", 0));
    }

    #[test]
    fn an_unknown_level_is_info_and_a_warning() {
        for level in ["verbose", "a=b=c", "portolan=loud"] {
            let wish = wish(None, &[("LOG_LEVEL", level)]);

            assert_eq!(wish.directives, "info", "{level}");
            assert!(wish.complaints.len() == 1 && wish.complaints[0].contains(level), "{wish:?}");
        }
    }

    #[test]
    fn text_is_coloured_unless_the_environment_refuses() {
        assert_eq!(wish(None, &[]).form, LineFormat::Text(Colour::On));
        assert_eq!(wish(None, &[("NO_COLOR", "1")]).form, LineFormat::Text(Colour::Off));
        assert_eq!(wish(None, &[("NO_COLOR", "")]).form, LineFormat::Text(Colour::On));
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let json = [("LOG_FORMAT", "JSON")];

        assert_eq!(wish(None, &json).form, LineFormat::Json);
        assert_eq!(wish(Some(LogFormat::Text), &json).form, LineFormat::Text(Colour::On));
    }

    #[test]
    fn an_unknown_format_is_text_and_a_warning() {
        let wish = wish(None, &[("LOG_FORMAT", "xml")]);

        assert_eq!((wish.form, wish.complaints.len()), (LineFormat::Text(Colour::On), 1));
    }
}
