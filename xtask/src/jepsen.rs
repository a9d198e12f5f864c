//! `cargo xtask jepsen`, `drill` and `abuse`: chaos tests against real servers, what operators do to them, and attacks.

use std::path::Path;

use anyhow::Result;

use crate::flo::Release;
use crate::subcommand::Subcommand;
use crate::{child, flo, requirements};

/// The program that runs all of them.
const PROGRAM: &str = "flotilla-jepsen";

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

/// The command `drill`.
pub(crate) const DRILL: Subcommand = Subcommand {
    name: "drill",
    summary: "Do to clusters under load what operators do, and count what fails or is lost",
    help: DRILL_HELP,
    run: run_drill,
};

const DRILL_HELP: &str = "\
Do to clusters of real processes under load what operators do, one drill after the other, and print a table of
the calls that were tried, that failed in spite of retries, whose outcome is unknown, and of what was lost.
docs/operations says how to do each by hand. Exits with 1 when a call failed or something was lost.

Usage: cargo xtask drill [NAME,…] [OPTIONS]

Drills:
  grow-and-shrink      From one node to three and five, and back to one
  replace-wiped        A node loses its disk, is refused, and a new one takes its place
  transfer-leader      Each node leads in turn
  rolling-restart      Each node is stopped and started again
  backup-restore       A backup is taken from a follower, and becomes a new cluster
  full-disk            All disks fill up to their reserve, and empty again
  rotate-certificates  All certificates are replaced by those of another authority, without a restart
  upgrade              This build serves what the release before left behind

Options:
  --report FILE    Writes the table into the generated part of this document
  --seed S         Repeats what a seed decided [default: drawn, and printed]
  --folder DIR     Where evidence is kept [default: the system's folder for temporary files]

Example:
  cargo xtask drill transfer-leader,rolling-restart
";

/// The command `abuse`.
pub(crate) const ABUSE: Subcommand = Subcommand {
    name: "abuse",
    summary: "Attack clusters that serve honest clients, and measure the effect on nodes and clients",
    help: ABUSE_HELP,
    run: run_abuse,
};

const ABUSE_HELP: &str = "\
Attack clusters of real processes that serve honest clients, one attack after the other, and print a table of
the memory of the nodes, changes of the leader, the clients' throughput before and during the attack, and the
time until it is as before. Exits with 1 if a node exits or exceeds its memory limit, or if the honest clients
are not served well enough. Takes about a minute for each attack, and two and a half for noisy-namespace. The
nodes are release builds; FLOTILLA_BINARY names an existing flo to use instead of building one.

Usage: cargo xtask abuse [NAME,…] [OPTIONS]

Attacks:
  slowloris               Callers of every port send one byte at a time
  idle-connections        10,000 connections that make no call
  handshake-flood         Connections without a TLS handshake, 200 a second to each port
  exhausted-files         More connections than a node may open files
  stalled-bodies          16,384 calls whose 3 MiB message arrives only in part
  stalled-streams         3,000 worker streams whose first message of 4 MiB arrives only in part
  large-requests          300 clients append 3 MiB each, while the leader is killed
  noisy-namespace         80 busy clients of one namespace, and 4 quiet ones of another
  watchers                200 watchers of a run with outputs of 40 MiB
  unread-responses        3,000 calls whose responses of 2 MiB are not read
  unread-small-responses  27,000 calls whose small responses are not read
  poisonous-module        A module that the compiler cannot finish, registered at each node
  hungry-guests           Calls that take 256 MiB each, at nodes with 32 slots
  hung-disk               The file system of the leader is frozen for 8 seconds
  half-open-install       The leader stops while it sends a snapshot

Options:
  --report FILE    Writes the table into the generated part of this document

Example:
  cargo xtask abuse slowloris,watchers
";

/// Attacks are measurements, so the nodes are those that users run.
fn run_abuse(arguments: &[String]) -> Result<()> {
    requirements::ensure()?;
    let program = flo::build_only(PROGRAM)?;
    let release = Release::find()?;
    run_program(&program, &release.path, &named("--abuse", arguments))
}

fn run_drill(arguments: &[String]) -> Result<()> {
    run(&named("--drill", arguments))
}

/// The arguments for those that are named first, or for all.
fn named(flag: &str, arguments: &[String]) -> Vec<String> {
    let (names, options) = match arguments.split_first() {
        Some((names, options)) if !names.starts_with("--") => (names.as_str(), options),
        Some(_) | None => ("all", arguments),
    };
    let named = [flag.to_owned(), names.to_owned()];
    [&named, options].concat()
}

fn run(arguments: &[String]) -> Result<()> {
    requirements::ensure()?;
    let binary = flo::build_beside(&[PROGRAM])?;
    run_program(&binary.with_file_name(PROGRAM), &binary, arguments)
}

fn run_program(program: &Path, binary: &Path, arguments: &[String]) -> Result<()> {
    let mut command = flo::command(program);
    command.args(arguments).env("FLOTILLA_BINARY", binary);
    child::run(&mut command)
}
