//! `cargo xtask fix`: what a machine can mend, mended.

use anyhow::Result;

use crate::subcommand::{Subcommand, expect_no_arguments};
use crate::{cargo, requirements};

/// The command `fix`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "fix",
    summary: "Format the code and apply what clippy can mend",
    help: HELP,
    run,
};

const HELP: &str = "\
Format the code and apply what clippy can mend. Changes files, also ones that are not committed.

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
