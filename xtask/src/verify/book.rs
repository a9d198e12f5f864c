//! The step that builds the manual with mdBook (see docs/book.toml).
//!
//! mdBook is not part of a Rust installation, and a machine without it must still be able to verify a
//! change; tests check pages and links in any case. A skipped step is reported.

use std::process::Command;

use anyhow::{Context, Result};

use crate::child;
use crate::project;
use crate::requirements::is_program;

/// The version for which the manual is written.
const VERSION: &str = "0.5.4";

/// Builds the manual into a temporary folder.
///
/// # Errors
/// If mdBook is installed and rejects the manual.
pub(super) fn build() -> Result<()> {
    if !is_program("mdbook") {
        println!("Skipped: mdbook is not installed (cargo install --locked mdbook@{VERSION}).");
        return Ok(());
    }
    let folder = tempfile::tempdir().context("expected a temporary folder")?;
    let mut command = Command::new("mdbook");
    command
        .arg("build")
        .arg(project::root().join("docs"))
        .arg("--dest-dir")
        .arg(folder.path());
    child::run(&mut command)
}
