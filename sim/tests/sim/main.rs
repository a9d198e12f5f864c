//! The simulation, as `cargo xtask verify` runs it.

mod canaries;
mod repeating;
mod seeds;

use std::path::Path;
use std::process::{Command, Output};

/// Runs the simulation in a separate process.
fn sim(words: &str, folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla-sim"));
    command
        .args(words.split_whitespace())
        .arg("--keep")
        .arg(folder)
        .output()
        .expect("the simulation starts")
}

/// The output of a process.
fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}
