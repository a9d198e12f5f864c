//! Calling cargo as every command of the project does.

use std::process::Command;

use anyhow::Result;

use crate::{child, project};

/// Runs cargo in the root folder with the shared target folder.
///
/// # Errors
/// [`child::ChildFailed`] if cargo failed; other errors if it could not be started.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    child::run(&mut command(arguments)?)
}

/// The call that [`run`] makes, for a caller that has something to add.
///
/// # Errors
/// If there is no place for the target folder.
pub(crate) fn command(arguments: &[&str]) -> Result<Command> {
    // Set by `cargo run`: the very cargo that runs us.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(project::root())
        .env("CARGO_TARGET_DIR", project::target_dir()?);
    Ok(command)
}
