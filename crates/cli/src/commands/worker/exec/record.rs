//! One record: a single run of the program with its payload.

use super::attempt::{feed, wait};
use super::captured;
use super::process_group::ProcessGroup;
use super::program::Program;
use super::verdict::ending;
use flotilla_client::{RecordError, StreamContext};
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::process::Command;

/// Runs the program with the record's payload on stdin. Its stdout is the worker's stdout.
///
/// When the program has ended, the rest of its process group is killed. Dropping the future kills
/// the whole group.
///
/// # Errors
/// If it does not exit with 0: the last line of stderr, or how it ended.
pub(super) async fn run(program: &Program, context: &StreamContext) -> Result<(), RecordError> {
    let mut command = program.command();
    set_variables(&mut command, context);
    let ended = execute(command, context.payload()).await;
    let (status, last_line) = ended.map_err(|error| {
        RecordError::new(format!("expected to run {}, but {error}", program.name()))
    })?;
    if status.success() {
        return Ok(());
    }
    Err(RecordError::new(
        last_line.unwrap_or_else(|| ending(status)),
    ))
}

fn set_variables(command: &mut Command, context: &StreamContext) {
    let headers = serde_json::to_string(context.headers()).unwrap_or_default();
    command
        .env("FLO_STREAM", context.stream())
        .env("FLO_GROUP", context.group())
        .env("FLO_RECORD_ID", context.stream_id())
        .env("FLO_ATTEMPT", context.attempt().to_string())
        .env(
            "FLO_PARTITION_KEY",
            context.partition_key().unwrap_or_default(),
        )
        .env("FLO_HEADERS", headers);
}

async fn execute(mut command: Command, payload: &[u8]) -> io::Result<(ExitStatus, Option<String>)> {
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let (mut group, mut child) = ProcessGroup::spawn(&mut command)?;
    let (Some(stdin), Some(stderr)) = (child.stdin.take(), child.stderr.take()) else {
        return Err(io::Error::other("its pipes are missing"));
    };
    let ((), status, last_line) = tokio::try_join!(
        async {
            feed(stdin, payload).await;
            Ok(())
        },
        wait(&mut child, &mut group),
        captured::last_line(stderr, tokio::io::stderr()),
    )?;
    Ok((status, last_line))
}
