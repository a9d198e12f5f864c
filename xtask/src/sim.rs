//! `cargo xtask sim`: the cluster simulated in one process, from as many seeds as wanted.

use std::fs;

use anyhow::{Context, Result};

use crate::subcommand::{Subcommand, UsageError};
use crate::{cargo, child, project, requirements};

/// The command `sim`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "sim",
    summary: "Simulate the cluster from seeds, with faults, and check what must hold",
    help: HELP,
    run,
};

const HELP: &str = "\
Simulate the whole cluster in one process, on one thread, from a seed: network, clocks, disks, crashes.
Faults come for a while, then all is put right and what was begun must end. The same seed gives the same
commands, faults and entries at the same times. A failure prints what was broken and the words that repeat
it, and keeps its trace below the target folder. `sim/README.md` tells what is simulated and what is not.

Usage: cargo xtask sim [OPTIONS]

Options:
  --seeds N        Simulate so many seeds, each in a process of its own
  --seed S         The first seed, or the only one [default: 1]
  --seconds N      How long faults come, in simulated seconds [default: 20]
  --scenario NAME  mixed: all faults and commands; snapshots: installs that overlap [default: mixed]
  --bug NAME       Plant a bug: early-acknowledgement, lost-sync or stale-read
  --trace FILE     Keep the trace, of one seed

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
    // The whole workspace, as everywhere: a build of one package resolves fewer features.
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
