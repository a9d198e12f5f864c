//! Load for the systems with which Flotilla is compared, and workers in separate processes.
//!
//! `cargo xtask bench-compare` starts the servers and calls this program: for load on etcd and on Restate, for
//! the disk as the lower bound of all, and as the worker of `flo bench steps`. Each load is a closed loop of
//! several clients on one thread, as cheap as possible, because it shares the machine with the measured system. Each
//! prints one line of JSON.

mod closed_loop;
mod etcd;
mod fault;
mod floor;
mod report;
mod restate;
mod worker;

use clap::{Parser, Subcommand};
use fault::Fault;
use std::process::ExitCode;

/// Load for the systems with which Flotilla is compared
#[derive(Debug, Parser)]
#[command(name = "flotilla-peers", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Floor(floor::Floor),
    Etcd(etcd::Etcd),
    RestatePrepare(restate::Prepare),
    Restate(restate::Restate),
    Worker(worker::WorkerArguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Fault> {
    // One thread: a load on two cores costs more and takes more from the servers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match command {
        Command::Floor(floor) => floor.run(),
        Command::Etcd(etcd) => runtime.block_on(etcd.run()),
        Command::RestatePrepare(prepare) => runtime.block_on(prepare.run()),
        Command::Restate(restate) => runtime.block_on(restate.run()),
        Command::Worker(worker) => runtime.block_on(worker.run()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
