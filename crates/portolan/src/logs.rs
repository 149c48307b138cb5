//! `--log` and `LOG_LEVEL` → the process's log on standard error; spans go to a collector where one is named.

use std::io::IsTerminal;

use clap::ValueEnum;
use portolan_engine::telemetry::SpanLayer;
use tracing::Metadata;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::failure::{Failure, Outcome};

/// How log lines look: one readable line, or one JSON object, an event.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Starts logging. `default_level` holds where `LOG_LEVEL` is unset.
pub(crate) fn start(format: LogFormat, default_level: &str, spans: Option<SpanLayer>) -> Outcome {
    let level = std::env::var("LOG_LEVEL").ok().filter(|level| !level.is_empty());
    let filter = EnvFilter::try_new(level.as_deref().unwrap_or(default_level)).map_err(|error| {
        Failure::new(format!("LOG_LEVEL is not understood: {error}"))
            .next("use error, warn, info, debug or trace, or a list such as info,portolan_apiserver=debug")
    })?;
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour);
    let log = match format {
        LogFormat::Text => log.with_target(false).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    let spans = spans.map(|spans| spans.with_filter(filter_fn(is_ours)));
    tracing_subscriber::registry().with(log.with_filter(filter)).with(spans).init();
    Ok(())
}

/// Spans and their events are sent from our own code only, whatever the log shows.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("portolan") && *metadata.level() <= tracing::Level::INFO
}
