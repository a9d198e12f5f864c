//! `cargo xtask fix`: applies what tools can fix on their own.

use anyhow::Result;

use crate::subcommand::{Subcommand, expect_no_arguments};
use crate::{cargo, requirements};

/// The command `fix`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "fix",
    summary: "Format the code and apply clippy's fixes",
    help: HELP,
    run,
};

const HELP: &str = "\
Format the code and apply clippy's fixes. Changes files, also uncommitted ones.

Usage: cargo xtask fix

Example:
  cargo xtask fix && git diff
";

fn run(arguments: &[String]) -> Result<()> {
    expect_no_arguments(arguments)?;
    requirements::ensure()?;
    cargo::run(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ])?;
    // Last, because clippy's edits are not formatted.
    cargo::run(&["fmt", "--all"])
}
