//! `cargo xtask pgo`: builds `flo` for release with profile-guided optimization.

mod build;
mod llvm;
mod training;

use std::fs;

use anyhow::{Context, Result};

use crate::sandbox::Sandbox;
use crate::stages::{Stages, say, show_duration};
use crate::subcommand::{self, Subcommand};
use crate::{child, flo, project, requirements};
use build::Builder;

/// The command `pgo`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "pgo",
    summary: "Build flo for release with profile-guided optimization",
    help: HELP,
    run,
};

const HELP: &str = "\
Build `flo` for release with profile-guided optimization. Its throughput is about a sixth higher. The stages are:

1. build `flo` for release with RocksDB, which the next two builds link
2. build an instrumented `flo`
3. run the loads of `flo bench` on three instrumented nodes, and merge their profiles
4. build `flo` with the merged profile, and print its path

The output goes to the folder `pgo` in the target folder. On two cores, this takes about 40 minutes, or about 30 if
stage 1 is already built. It needs llvm-profdata 19 or later: from `rustup component add llvm-tools`, or from Debian's
package llvm-19, which this command installs if you are root.

Usage: cargo xtask pgo

Example, which also measures the new binary:
  cargo xtask pgo
  FLOTILLA_BINARY=~/.cache/flotilla/target/pgo/flo cargo xtask bench-compare
";

fn run(arguments: &[String]) -> Result<()> {
    subcommand::expect_no_arguments(arguments)?;
    requirements::ensure()?;
    let merger = llvm::Profdata::find()?;
    let folder = project::target_dir()?.join("pgo");
    let raw = folder.join("raw");
    let merged = folder.join("flo.profdata");

    let mut stages = Stages::new(4);
    stages.begin("Build flo for release");
    let builder = Builder::prepare(&folder)?;

    stages.begin("Build an instrumented flo");
    let instrumented = builder.instrumented(&raw)?;

    stages.begin("Run the loads of flo bench on three instrumented nodes");
    // Profiles of an earlier build do not fit this one.
    if raw.exists() {
        fs::remove_dir_all(&raw)?;
    }
    let sandbox = Sandbox::create("flotilla-pgo-")?;
    sandbox.run(false, |sandbox| training::run(&instrumented, sandbox))?;
    merger.merge(&raw, &merged)?;

    stages.begin("Build flo with the profile");
    let optimized = builder.optimized(&merged)?;
    let path = folder.join("flo");
    fs::copy(&optimized, &path).with_context(|| format!("expected to write {}", path.display()))?;
    say(child::first_line(flo::command(&path).arg("--version"))?);
    say(path.display().to_string());
    println!("\nThat took {}.", show_duration(stages.elapsed()));
    Ok(())
}
