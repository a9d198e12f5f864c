//! `cargo xtask jepsen`: chaos tests against real servers.

use anyhow::Result;

use crate::subcommand::Subcommand;
use crate::{child, flo, requirements};

/// The command `jepsen`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "jepsen",
    summary: "Run clients against three nodes while faults happen, and judge what they saw",
    help: HELP,
    run,
};

const HELP: &str = "\
Run clients against a cluster of real processes while faults happen, and judge what they saw.
jepsen/README.md tells of workloads, nemeses and checkers. Exits with 1 when something is wrong, and
keeps history, logs and a timeline in the folder that it names.

Usage: cargo xtask jepsen [--seconds N] [--seed S] [--workload W,…] [--nemesis N,…]

Options:
  --seconds N      How long clients work, in all; each nemesis gets an equal share [default: 60]
  --seed S         Repeats what a seed decided [default: drawn, and printed]
  --workload W,…   Only these workloads [default: all]
  --nemesis N,…    Only these nemeses; `all` for each in turn [default: combined]
  --bug B          Plants a bug into the nodes, to see it found
  --planted        Plants each bug in turn instead, and says how soon it is found
  --report FILE    Writes the figures into the generated part of this document
  --folder DIR     Where the evidence is kept [default: the system's folder for temporary files]
  --keep           Keeps history, logs and timeline also when nothing is wrong
  --judge FILE     Judges a kept history again instead of a run

Example:
  cargo xtask jepsen --seconds 120 --nemesis kill-leader,partition-leader
";

fn run(arguments: &[String]) -> Result<()> {
    requirements::ensure()?;
    let binary = flo::build()?;
    let program = binary.with_file_name("flotilla-jepsen");
    let mut command = flo::command(&program);
    command.args(arguments).env("FLOTILLA_BINARY", binary);
    child::run(&mut command)
}
