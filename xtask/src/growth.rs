//! `cargo xtask bench-growth`: how the costs of a cluster grow with clients, payloads and state.

mod active;
mod bench;
mod clients;
mod http;
mod idle;
mod load;
mod long_runs;
mod loops;
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
Measure with `flo bench` how the costs of three nodes grow, on this machine and built for release, and write
tables and figures:

- clients    runs of three steps, and starts of runs, by 1, 8, 64 and 512 clients
- payloads   runs of three steps with inputs of 100 B, 10 KiB and 500 KiB
- long-runs  runs of 3, 10, 100 and 1,000 steps by 16 clients
- loops      runs of 100, 1,000 and 10,000 items by one client
- active     one run at a time with 100, 300 or 1,000 active steps, and small runs with as many actions
- open-runs  both by 64 clients while more and more runs wait, each number on a separate cluster, in turn:
             memory and disk, how long a killed node takes to serve again, how long a snapshot takes and how it
             affects the load
- retention  both at half of their peak, while runs expire after seconds and after a day
- rates      runs of three steps at 25 %, 50 % and 75 % of their peak
- idle       what idle nodes use

Nothing is encrypted, and a write is acknowledged after a majority has synced it to disk. The load shares the
machine with the nodes. Each measurement has a separate cluster, except those of open-runs. All series take about
a quarter of an hour after the build.

Usage: cargo xtask bench-growth [OPTIONS]

Options:
  --only NAMES       Some of clients, payloads, long-runs, loops, active, open-runs, retention, rates and idle, separated
                     by commas [default: all]
  --seconds S        How long each load is measured [default: 10]
  --warm-up S        How long each load runs before the measurement [default: 5]
  --open-runs N,...  How many runs wait, in rising order [default: 1000,100000,1000000]
  --out DIR          Where growth.md and its figures go [default: docs/performance]
  --folder DIR       Where the data is kept during the measurement [default: the folder for temporary files]

Each measured series replaces its section of growth.md, with its figures, as soon as it is done. The other
sections stay, each with its date and version. A series that fails or is interrupted changes nothing.

FLOTILLA_BINARY names an existing flo to use instead of building one.

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
        println!("\nThe measurement took {}.", show_duration(began.elapsed()));
        Ok(())
    })
}
