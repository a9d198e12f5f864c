//! Calls cargo for every command of the project.

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::{child, project};

/// What a first build spends its time on, most of it without printing anything.
const WHAT_TAKES_LONG: &str =
    "a first build compiles 490 packages, and RocksDB's C++ takes a third of the time";

/// Runs cargo in the root folder with the shared target folder.
///
/// # Errors
/// [`child::ChildFailed`] if cargo failed; other errors if it could not be started.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    child::run(&mut command(arguments)?)
}

/// As [`run`], for a build that may take long: prints a line now and then while the build is in progress.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_long(arguments: &[&str]) -> Result<()> {
    let mut command = command(arguments)?;
    let (end, ended) = mpsc::sync_channel::<()>(1);
    let ticker = thread::spawn(move || {
        let mut minutes = 0;
        while ended.recv_timeout(Duration::from_mins(1)) == Err(RecvTimeoutError::Timeout) {
            minutes += 1;
            eprintln!("    {minutes} min; {WHAT_TAKES_LONG}");
        }
    });
    let result = child::run(&mut command);
    drop(end);
    ticker.join().expect("the ticker only prints");
    result
}

/// The call that [`run`] makes, for a caller that adds to it.
///
/// # Errors
/// If there is no location for the target folder, or it cannot be written.
pub(crate) fn command(arguments: &[&str]) -> Result<Command> {
    // Set by `cargo run`: the same cargo that runs us.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(project::root())
        .env("CARGO_TARGET_DIR", project::claim_target_dir()?);
    Ok(command)
}
