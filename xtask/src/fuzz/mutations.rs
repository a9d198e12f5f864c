//! The package's own tests, for longer: seeded mutations of the corpora, on stable Rust.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::{cargo, child};

/// The variables that fuzz/tests/fuzz/targets.rs reads.
const SECONDS: &str = "FLOTILLA_FUZZ_SECONDS";
const SEED: &str = "FLOTILLA_FUZZ_SEED";
const INPUT: &str = "FLOTILLA_FUZZ_INPUT";

/// Fuzzes each of the targets for that long, from a printed seed.
///
/// # Errors
/// [`child::ChildFailed`] if a fault was found, which the child has printed.
pub(super) fn explore(targets: &[String], time: Duration) -> Result<()> {
    let seed = env::var(SEED).unwrap_or_else(|_| seed().to_string());
    println!("To repeat the same mutations: {SEED}={seed}\n");
    for target in targets {
        let mut test = test(target)?;
        test.env(SECONDS, time.as_secs().to_string())
            .env(SEED, &seed);
        child::run(&mut test)?;
    }
    Ok(())
}

/// Runs one input.
///
/// # Errors
/// [`child::ChildFailed`] if the input fails.
pub(super) fn repeat(target: &str, input: &Path) -> Result<()> {
    // The test runs in the folder of its package.
    let input = std::path::absolute(input).context("expected a current folder, but it is gone")?;
    child::run(test(target)?.env(INPUT, input))
}

/// The test of a target, within the whole workspace: a single package would resolve fewer features and
/// compile its dependencies again.
fn test(target: &str) -> Result<Command> {
    let test = format!("targets::{target}_holds");
    let mut arguments = vec!["test", "--workspace", "--locked", "--test", "fuzz"];
    arguments.extend(["--", "--exact", &test, "--show-output"]);
    cargo::command(&arguments)
}

/// A different seed each time.
fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
