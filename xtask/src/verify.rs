//! `cargo xtask verify`: every check that a change must pass. It writes nothing into the tree.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::subcommand::{Subcommand, expect_no_arguments};
use crate::{cargo, child, flo, requirements};

mod book;
mod dependencies;

/// The command `verify`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "verify",
    summary: "Run every check that a change must pass, as CI does; writes nothing",
    help: HELP,
    run,
};

const HELP: &str = "\
Run every check that a change must pass, as CI does. Stops at the first failure, with its exit code.
Writes nothing into the tree: `cargo xtask fix` does.

Usage: cargo xtask verify

Steps: requirements, format, lints, build and tests, manual (where mdbook is installed), dependencies
(where cargo-deny is).
Build output goes to CARGO_TARGET_DIR, or to flotilla/target in the user's cache folder.

Example:
  cargo xtask verify
";

/// One check: its name, and what it runs.
type Step = (&'static str, fn() -> Result<()>);

/// Cheapest first, so that a simple mistake shows soon.
const STEPS: &[Step] = &[
    ("requirements", requirements::ensure_with_tests),
    ("format", check_format),
    ("lints", check_lints),
    ("build and tests", build_and_test),
    ("manual", book::build),
    ("dependencies", dependencies::check),
];

fn run(arguments: &[String]) -> Result<()> {
    expect_no_arguments(arguments)?;
    let started = Instant::now();
    let result = run_steps(STEPS);
    let verdict = if result.is_ok() { "passed" } else { "failed" };
    println!("\nverify {verdict} in {}", show_duration(started.elapsed()));
    result
}

fn run_steps(steps: &[Step]) -> Result<()> {
    for (index, (name, run)) in steps.iter().enumerate() {
        println!("\n==> {}/{}: {name}", index + 1, steps.len());
        run().with_context(|| format!("step `{name}` failed"))?;
    }
    Ok(())
}

fn check_format() -> Result<()> {
    cargo::run(&["fmt", "--all", "--check"]).context("`cargo xtask fix` fixes it")
}

fn check_lints() -> Result<()> {
    cargo::run(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ])
}

/// The black-box tests drive the binary, which `cargo test` alone would not build for them.
fn build_and_test() -> Result<()> {
    let binary = flo::build()?;
    let mut tests = cargo::command(&["test", "--workspace", "--locked", "--no-fail-fast"])?;
    tests.env("FLOTILLA_BINARY", binary);
    forbid_writing(&mut tests);
    child::run(&mut tests)
}

/// Tests whose expectations or seeds are in files can rewrite them on request. Here that would
/// turn a failure into a changed tree.
fn forbid_writing(tests: &mut Command) {
    tests
        .env_remove("UPDATE")
        .env_remove("UPDATE_EXPECT")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
}

fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;
    use crate::child::ChildFailed;

    fn pass() -> Result<()> {
        Ok(())
    }

    fn fail() -> Result<()> {
        Err(ChildFailed {
            command: "cargo fmt".into(),
            code: 3,
        }
        .into())
    }

    fn never_reached() -> Result<()> {
        bail!("a step after the failed one ran")
    }

    #[test]
    fn the_first_failure_ends_it_and_keeps_its_code() {
        let steps: &[Step] = &[("one", pass), ("two", fail), ("three", never_reached)];
        let error = run_steps(steps).unwrap_err();
        assert_eq!(error.to_string(), "step `two` failed");
        assert_eq!(error.downcast_ref::<ChildFailed>().unwrap().code, 3);
    }

    #[test]
    fn steps_that_pass_make_it_pass() {
        run_steps(&[("one", pass), ("two", pass)]).unwrap();
    }

    #[test]
    fn verify_never_lets_tests_rewrite_their_expectations() {
        let mut tests = Command::new("true");
        forbid_writing(tests.env("UPDATE_EXPECT", "1"));
        let removed = |name: &str| tests.get_envs().any(|set| set == (name.as_ref(), None));
        assert!(removed("UPDATE"));
        assert!(removed("UPDATE_EXPECT"));
    }

    #[test]
    fn a_duration_is_shown_in_minutes_and_seconds() {
        assert_eq!(show_duration(Duration::from_millis(67_900)), "1 min 07 s");
    }
}
