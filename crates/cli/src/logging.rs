//! Logs go to stderr, so that stdout stays what the verb prints.

use crate::code::Code;
use crate::failure::Failure;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Starts to log what `filter` lets through.
///
/// # Errors
/// `usage` for a filter that cannot be read.
pub(crate) fn start(filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        let message = format!("expected a log filter, but {error}");
        Failure::new(Code::LogInvalid, message)
            .with_hint("a level such as info, or target=level, several divided by commas")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
