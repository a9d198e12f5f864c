//! `cargo xtask sim`: simulates the cluster in one process, from one or many seeds.

use std::fs;

use anyhow::{Context, Result};

use crate::subcommand::{Subcommand, UsageError};
use crate::{cargo, child, project, requirements};

/// The command `sim`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "sim",
    summary: "Simulate the cluster from seeds, with faults, and check its invariants",
    help: HELP,
    run,
};

const HELP: &str = "\
Simulate the whole cluster in one process, on one thread, from a seed: network, clocks, disks, crashes.
Faults are injected for a while, then all are healed and all work in progress must end. The same seed gives
the same commands, faults and entries at the same times. A failure prints the broken invariant and the command
that repeats it, and keeps its trace below the target folder. `sim/README.md` describes what is simulated.

Usage: cargo xtask sim [OPTIONS]

Options:
  --seeds N        Simulate N seeds, each in a separate process
  --seed S         The first seed, or the only one [default: 1]
  --seconds N      How long faults are injected, in simulated seconds [default: 20]
  --scenario NAME  mixed: all faults and commands; snapshots: installs that overlap; restored: two clusters
                   at the same addresses; far: slow links; drained: members are drained [default: mixed]
  --bug NAME       Plant a bug; a wrong name prints the list
  --trace FILE     Keep the trace of a single seed

Example:
  cargo xtask sim --seeds 2000
";

/// Options that take a value; the simulation itself checks the values.
const OPTIONS: [&str; 6] = [
    "--seeds",
    "--seed",
    "--seconds",
    "--scenario",
    "--bug",
    "--trace",
];

fn run(arguments: &[String]) -> Result<()> {
    check(arguments)?;
    requirements::ensure()?;
    // The whole workspace, as for every build: a build of one package resolves fewer features.
    cargo::run(&["build", "--workspace", "--locked"])?;
    let kept = project::target_dir()?.join("sim");
    fs::create_dir_all(&kept)
        .with_context(|| format!("cannot make {} for the traces", kept.display()))?;
    let binary = project::target_dir()?.join("debug").join("flotilla-sim");
    let mut command = std::process::Command::new(binary);
    command.args(arguments).arg("--keep").arg(kept);
    child::run(&mut command)
}

fn check(arguments: &[String]) -> Result<()> {
    let unknown = arguments
        .chunks(2)
        .find(|pair| pair.len() < 2 || !OPTIONS.contains(&pair[0].as_str()));
    match unknown {
        None => Ok(()),
        Some(pair) => {
            let message = format!("expected an option with a value, but got `{}`", pair[0]);
            Err(UsageError(message).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_words(words: &str) -> Result<()> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        check(&words)
    }

    #[test]
    fn options_with_their_values_are_passed_on() {
        check_words("").unwrap();
        check_words("--seeds 20 --scenario snapshots").unwrap();
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for words in ["--fast 1", "--seed", "7", "--seeds 3 --seed"] {
            assert!(
                check_words(words).unwrap_err().is::<UsageError>(),
                "{words}"
            );
        }
    }
}
