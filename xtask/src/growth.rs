//! `cargo xtask bench-growth`: how what a cluster costs grows with clients, payloads and state.

mod bench;
mod clients;
mod http;
mod idle;
mod load;
mod merging;
mod open_runs;
mod options;
mod page;
mod payloads;
mod peak;
mod rates;
mod readiness;
mod report;
mod retention;
mod section;
mod series;
mod show;
mod snapshot;
mod spread;

use std::time::Instant;

use anyhow::Result;

use crate::flo::Release;
use crate::machine::Machine;
use crate::sandbox::Sandbox;
use crate::stages::{Stages, say, show_duration};
use crate::subcommand::Subcommand;
use bench::Bench;
use options::Options;
use page::{Origin, Shelf};
use series::Series;

/// The command `bench-growth`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench-growth",
    summary: "Measure how costs grow with clients, payloads, open runs and rates",
    help: HELP,
    run,
};

const HELP: &str = "\
Measure with `flo bench` how what three nodes cost grows, on this machine and built for release, and write
tables and figures:

- clients    runs of three steps, and starts of runs, by 1, 8, 64 and 512 clients
- payloads   runs of three steps with inputs of 100 B, 10 KiB and 500 KiB
- open-runs  both by 64 clients beside more and more runs that wait, each number on a cluster of its own, in turn:
             memory and disk, how long a node that was killed takes to serve again, how long a snapshot takes and
             what it does to others
- retention  both at half of their peak, while runs expire after seconds and after a day
- rates      runs of three steps at 25 %, 50 % and 75 % of their peak
- idle       what nodes use that have nothing to do

Nothing is encrypted, and what is acknowledged was synced to the disk by a majority. The load shares the machine
with the nodes. Each measurement has a cluster of its own, but those of open-runs. All of it takes about a quarter
of an hour after the build.

Usage: cargo xtask bench-growth [OPTIONS]

Options:
  --only NAMES       Some of clients, payloads, open-runs, retention, rates and idle, with commas between
                     [default: all]
  --seconds S        For how long each load is measured [default: 10]
  --warm-up S        For how long each load runs before [default: 5]
  --open-runs N,...  How many runs wait, in rising order [default: 1000,100000,1000000]
  --out DIR          Where growth.md and its figures go [default: docs/performance]
  --folder DIR       Where the data lies while it runs [default: the folder for temporary files]

A series that was measured replaces its section of growth.md, with its figures, as soon as it is done. The others
stay, each with its own date and version; one that fails or is interrupted leaves everything as it was.

FLOTILLA_BINARY names a flo that is there already, so that none is built.

Examples:
  cargo xtask bench-growth
  cargo xtask bench-growth --only clients,rates --seconds 30
  cargo xtask bench-growth --only open-runs --open-runs 0,10000,50000 --out /tmp/growth
";

fn run(arguments: &[String]) -> Result<()> {
    let options = Options::read(arguments)?;
    let began = Instant::now();
    println!("==> Build flo for release");
    let flo = Release::find()?;
    let machine = Machine::look(vec![flo.version()?]);
    machine.lines().iter().for_each(say);
    let shelf = Shelf::open(&options.out)?;
    let sandbox = match &options.folder {
        Some(folder) => Sandbox::create_in(folder, "flotilla-growth-")?,
        None => Sandbox::create("flotilla-growth-")?,
    };
    sandbox.run(false, |sandbox| {
        let bench = Bench::new(flo.path, &options, sandbox);
        if options.series.contains(&Series::Retention) {
            retention::expect_support(&bench)?;
        }
        let mut stages = Stages::new(options.series.len());
        for series in &options.series {
            stages.begin(series.title());
            let section = series.measure(&bench)?;
            bench.interrupt().check()?;
            let origin = Origin::now(&machine, options.command(*series))?;
            let written = shelf.put(*series, &section, &origin)?;
            say(format!("written: {}", written.display()));
        }
        println!("\nThat took {}.", show_duration(began.elapsed()));
        Ok(())
    })
}
