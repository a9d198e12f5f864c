//! Logging to stderr, which keeps stdout for the command's output.

use crate::code::Code;
use crate::failure::Failure;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one object per line; `spans` names the spans in which it was logged.
    Json,
}

/// Starts logging with a filter.
///
/// # Errors
/// `usage` if the filter cannot be parsed.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        let message = format!("expected a log filter, but {error}");
        Failure::new(Code::LogFilterInvalid, message)
            .with_hint("a level such as info, or target=level; separate several with commas")
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
