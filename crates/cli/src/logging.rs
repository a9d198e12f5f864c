//! Logs go to stderr, so that stdout stays what the verb prints.

use crate::code::Code;
use crate::failure::Failure;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// How lines of the log look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one object on each line; `spans` says on whose behalf it was written.
    Json,
}

/// Starts to log what `filter` lets through.
///
/// # Errors
/// `usage` for a filter that cannot be read.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        let message = format!("expected a log filter, but {error}");
        Failure::new(Code::LogInvalid, message)
            .with_hint("a level such as info, or target=level, several divided by commas")
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .init(),
    }
    Ok(())
}
