//! The step that checks licenses, bans, sources and advisories with cargo-deny (see deny.toml).
//!
//! cargo-deny is not part of a Rust installation, and its advisories come from the network. A
//! machine without either must still be able to verify a change. A skipped step is reported.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cargo;
use crate::requirements::is_program;

/// Checks the dependencies as far as this machine can.
///
/// # Errors
/// If a check ran and failed.
pub(super) fn check() -> Result<()> {
    if !is_program("cargo-deny") {
        println!("Skipped: cargo-deny is not installed (cargo install --locked cargo-deny).");
        return Ok(());
    }
    deny(&["--locked"], &["bans", "licenses", "sources"])?;
    if !advisories_directory().is_some_and(|directory| has_database(&directory)) {
        println!("Skipped: there is no advisory database here (cargo deny fetch db).");
        return Ok(());
    }
    deny(&["--locked", "--offline"], &["advisories"])
}

/// Runs cargo-deny without its warnings about duplicate crates.
fn deny(options: &[&str], checks: &[&str]) -> Result<()> {
    let mut arguments = vec!["deny", "--log-level", "error"];
    arguments.extend(options);
    arguments.push("check");
    arguments.extend(checks);
    cargo::run(&arguments)
}

/// The folder of cargo-deny's advisories.
fn advisories_directory() -> Option<PathBuf> {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    cargo_home.map(|cargo_home| cargo_home.join("advisory-dbs"))
}

/// Whether a database was fetched: an empty folder, or one with only a lock, does not count.
fn has_database(directory: &Path) -> bool {
    let Ok(entries) = directory.read_dir() else {
        return false;
    };
    let mut entries = entries.flatten();
    entries.any(|entry| entry.path().join(".git").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fetched_database_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_database(&folder.path().join("absent")));
        std::fs::write(folder.path().join("lock"), "").unwrap();
        assert!(!has_database(folder.path()));
        std::fs::create_dir_all(folder.path().join("advisory-db-1/.git")).unwrap();
        assert!(has_database(folder.path()));
    }
}
