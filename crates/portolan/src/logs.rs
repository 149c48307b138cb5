//! `--log` and `LOG_LEVEL` → the process's log on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Outcome};

/// How log lines look: one readable line, or one JSON object, an event.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Starts logging. `default_level` holds where `LOG_LEVEL` is unset.
pub(crate) fn start(format: LogFormat, default_level: &str) -> Outcome {
    let level = std::env::var("LOG_LEVEL").ok().filter(|level| !level.is_empty());
    let filter = EnvFilter::try_new(level.as_deref().unwrap_or(default_level)).map_err(|error| {
        Failure::new(format!("LOG_LEVEL is not understood: {error}"))
            .next("use error, warn, info, debug or trace, or a list such as info,portolan_apiserver=debug")
    })?;
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
    match format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
