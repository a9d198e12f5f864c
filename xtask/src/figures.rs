//! `cargo xtask figures`: how fast a cluster of three recovers, and how well it batches.

mod batching;
mod failover;
mod quantiles;

use std::path::Path;

use anyhow::Result;

use crate::cluster::{Cluster, Listening};
use crate::sandbox::Sandbox;
use crate::stages::{Stages, say, show_duration};
use crate::subcommand::{Subcommand, UsageError};
use crate::{flo, requirements};

/// The command `figures`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "figures",
    summary: "Measure recovery and batching on three nodes",
    help: HELP,
    run,
};

const TRIALS_DEFAULT: u32 = 20;

const HELP: &str = "\
Measure three nodes on this machine, built in the same way as for the tests and the demo:

- the time from the leader's SIGKILL to the next applied step of a run, over 20 trials
- commands per log entry and entries per second under 64 concurrent clients

Prints figures and asserts nothing. Takes about three minutes after the build.

Usage: cargo xtask figures [--trials N]

Options:
  --trials N  Kill the leader N times [default: 20]

Example:
  cargo xtask figures --trials 5
";

fn run(arguments: &[String]) -> Result<()> {
    let trials = read_arguments(arguments)?;
    let mut stages = Stages::new(4);
    stages.begin("Build flo");
    requirements::ensure()?;
    let binary = flo::build()?;
    let sandbox = Sandbox::create("flotilla-figures-")?;
    sandbox.run(false, |sandbox| measure(&binary, trials, sandbox, stages))
}

fn read_arguments(arguments: &[String]) -> Result<u32> {
    let wrong = |message: String| Err(UsageError(message).into());
    match arguments {
        [] => Ok(TRIALS_DEFAULT),
        [flag, count] if flag == "--trials" => match count.parse() {
            Ok(trials) if trials > 0 => Ok(trials),
            _ => wrong(format!("expected a number of trials, but got `{count}`")),
        },
        [first, ..] => wrong(format!("expected --trials N alone, but got `{first}`")),
    }
}

fn measure(binary: &Path, trials: u32, sandbox: &Sandbox, mut stages: Stages) -> Result<()> {
    let interrupt = &sandbox.interrupt;
    stages.begin("Start three nodes");
    let mut cluster = Cluster::start(binary, sandbox.folder(), Listening::Anywhere, interrupt)?;
    let leader = cluster.wait_for_leader(None, interrupt)?;
    say(format!("node {} leads", leader.node_id));

    stages.begin("64 clients start runs for 10 s");
    for line in batching::measure(&cluster.client())? {
        say(line);
    }

    stages.begin(&format!(
        "From the leader's SIGKILL to the next applied step, {trials} times"
    ));
    for line in failover::measure(&mut cluster, binary, trials, sandbox)? {
        say(line);
    }

    cluster.stop(interrupt)?;
    println!(
        "\nThe measurement took {}.",
        show_duration(stages.elapsed())
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<u32> {
        let arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read_arguments(&arguments)
    }

    #[test]
    fn there_are_twenty_trials_by_default() {
        assert_eq!(read(&[]).unwrap(), 20);
        assert_eq!(read(&["--trials", "3"]).unwrap(), 3);
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for words in [
            &["--trials"][..],
            &["--trials", "0"],
            &["3"],
            &["--trials", "3", "4"],
        ] {
            assert!(read(words).unwrap_err().is::<UsageError>(), "{words:?}");
        }
    }
}
