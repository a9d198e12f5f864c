//! `cargo xtask bench-compare`: our workloads and those of other systems, in turn, on this machine.

mod bench;
mod etcd;
mod floor;
mod flotilla;
mod options;
mod python;
mod report;
mod restate;
mod results;
mod verdict;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::flo::{self, Release};
use crate::machine::Machine;
use crate::requirements;
use crate::sandbox::Sandbox;
use crate::stages::{say, show_duration};
use crate::subcommand::Subcommand;
use bench::Bench;
use etcd::Etcd;
use options::{Contest, Options};
use python::Python;
use restate::Restate;
use results::Results;

/// The command `bench-compare`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench-compare",
    summary: "Measure our workloads and those of etcd and Restate in turn",
    help: HELP,
    run,
};

const HELP: &str = "\
Measure three nodes of Flotilla and other systems on this machine, one after another in each round. All are
release builds with their data on the same disk. Print every figure, the medians and the ratios:

- floor    fdatasync of 4 KiB appends, before each round
- etcd     starts of runs by 128 clients and by one, against puts of 256 bytes on three members of etcd
- restate  runs of three steps by 64 clients and by one, served by a worker over the Rust SDK, against
           the same three steps on Restate, on one node and on three, with 4 partitions
- python   the same with a Python worker for Flotilla, against one node of Restate

Nothing is encrypted. Each system keeps its default durability: it acknowledges a write after syncing it to
disk, on a majority if there are three nodes. Each load is one process, each side has one worker process, and
all of them share the machine with the servers. Results are verified: the output of each run, etcd's revision
and its number of keys.

Usage: cargo xtask bench-compare [OPTIONS]

Options:
  --only NAMES   Some of floor, etcd, restate and python, separated by commas [default: all]
  --rounds N     How often each workload is measured [default: 3]
  --seconds S    How long each load is measured [default: 10]
  --warm-up S    How long each load runs before the measurement [default: 5]
  --defaults     Also measure Restate with its default number of partitions (24)
  --json FILE    Write the report as JSON
  --folder DIR   Where the data is kept during the measurement [default: the folder for temporary files]

etcd comes from Debian's package etcd-server, Restate from its npm packages, grpcio from pip. Each is fetched
into the target folder if it is missing there. FLOTILLA_BINARY names an existing flo to use instead of
building one.

Example:
  cargo xtask bench-compare --only etcd --rounds 5 --json etcd.json
";

/// The systems to compare with.
struct Others {
    etcd: Option<Etcd>,
    restate: Option<Restate>,
    python: Option<Python>,
}

fn run(arguments: &[String]) -> Result<()> {
    let options = Options::read(arguments)?;
    println!("==> Fetch the other systems, and build flo for release");
    let others = Others::prepare(&options)?;
    requirements::ensure()?;
    let flo = Release::find()?;
    let peers = flo::build_release("flotilla-peers", "flotilla-peers")?;
    let machine = Machine::look(others.versions(&flo)?);
    machine.lines().iter().for_each(say);
    let sandbox = match &options.folder {
        Some(folder) => Sandbox::create_in(folder, "flotilla-compare-")?,
        None => Sandbox::create("flotilla-compare-")?,
    };
    sandbox.run(false, |sandbox| {
        let bench = Bench {
            flo: flo.path,
            peers,
            options: &options,
            sandbox,
        };
        let began = Instant::now();
        let results = compare(&bench, &others)?;
        println!("\n==> Medians of {} rounds\n", options.rounds);
        for line in verdict::table(&results) {
            println!("{line}");
        }
        let ratios = verdict::ratios(&results);
        if !ratios.is_empty() {
            println!(
                "\n==> Ratios: our rate divided by theirs, and their latencies divided by ours\n"
            );
        }
        for line in ratios {
            println!("{line}");
        }
        if let Some(path) = &options.json {
            let report = verdict::json(&results, &machine, &options);
            let text = serde_json::to_string_pretty(&report)? + "\n";
            fs::write(path, text)
                .with_context(|| format!("expected to write {}", path.display()))?;
        }
        println!("\nThat took {}.", show_duration(began.elapsed()));
        Ok(())
    })
}

fn compare(bench: &Bench<'_>, others: &Others) -> Result<Results> {
    let rounds = bench.options.rounds;
    let mut results = Results::default();
    for round in 1..=rounds {
        println!("\n==> Round {round} of {rounds}");
        floor::measure(bench, &mut results)?;
        others.measure(bench, &mut results)?;
    }
    Ok(results)
}

impl Others {
    /// Finds or fetches what the contests need.
    fn prepare(options: &Options) -> Result<Self> {
        let is_wanted = |contest| options.includes(contest);
        let needs_restate = is_wanted(Contest::Restate) || is_wanted(Contest::Python);
        Ok(Self {
            etcd: is_wanted(Contest::Etcd).then(Etcd::find).transpose()?,
            restate: needs_restate.then(Restate::prepare).transpose()?,
            python: is_wanted(Contest::Python)
                .then(Python::prepare)
                .transpose()?,
        })
    }

    /// The version of each system, ours first.
    fn versions(&self, flo: &Release) -> Result<Vec<String>> {
        let mut versions = vec![flo.version()?];
        if let Some(etcd) = &self.etcd {
            versions.push(etcd.version()?);
        }
        if let Some(restate) = &self.restate {
            versions.push(restate.version()?);
        }
        if let Some(python) = &self.python {
            versions.push(python.version()?);
        }
        Ok(versions)
    }

    /// One round: ours, then the other systems of the same contest.
    fn measure(&self, bench: &Bench<'_>, results: &mut Results) -> Result<()> {
        if let Some(etcd) = &self.etcd {
            flotilla::measure_starts(bench, results)?;
            etcd.measure(bench, results)?;
        }
        let Some(restate) = &self.restate else {
            return Ok(());
        };
        let is_whole = bench.options.includes(Contest::Restate);
        if is_whole {
            flotilla::measure_steps(bench, results)?;
            restate.measure(bench, restate::THREE, results)?;
        }
        if let Some(python) = &self.python {
            flotilla::measure_python(bench, python, results)?;
        }
        // The Python worker is compared with Restate, too.
        restate.measure(bench, restate::SINGLE, results)?;
        if is_whole && bench.options.with_defaults {
            restate.measure(bench, restate::THREE_DEFAULT, results)?;
            restate.measure(bench, restate::SINGLE_DEFAULT, results)?;
        }
        Ok(())
    }
}
