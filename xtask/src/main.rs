//! The project's own commands, run as `cargo xtask NAME`.
//!
//! Everything here builds in seconds, without RocksDB, so that it can first check what the real
//! build needs. A new command is a module with a [`Subcommand`] and a line in [`SUBCOMMANDS`].

mod arguments;
mod cargo;
mod child;
mod client;
mod cluster;
mod compare;
mod debian;
mod demo;
mod figures;
mod files;
mod fix;
mod flo;
mod fuzz;
mod growth;
mod http_fuzz;
mod install;
mod interrupt;
mod jepsen;
mod libclang;
mod load;
mod local;
mod machine;
mod observe;
mod pgo;
mod process;
mod project;
mod release_data;
mod requirements;
mod sandbox;
mod sim;
mod stages;
mod subcommand;
mod table;
mod verify;
mod virtual_environment;
mod wait;

use std::process::ExitCode;

use child::ChildFailed;
use interrupt::Interrupted;
use subcommand::{Subcommand, UsageError};

/// Every command, in the order in which the help lists them.
const SUBCOMMANDS: &[Subcommand] = &[
    demo::SUBCOMMAND,
    local::SUBCOMMAND,
    observe::SUBCOMMAND,
    verify::SUBCOMMAND,
    fix::SUBCOMMAND,
    figures::SUBCOMMAND,
    compare::SUBCOMMAND,
    growth::SUBCOMMAND,
    pgo::SUBCOMMAND,
    fuzz::SUBCOMMAND,
    http_fuzz::SUBCOMMAND,
    jepsen::SUBCOMMAND,
    jepsen::DRILL,
    jepsen::ABUSE,
    release_data::SUBCOMMAND,
    sim::SUBCOMMAND,
];

/// The exit code of a usage error, as in the command line of `flo`.
const EXIT_CODE_USAGE: u8 = 2;

/// The exit code after Ctrl-C, as shells count it: 128 and the number of SIGINT.
const EXIT_CODE_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match subcommand::dispatch(SUBCOMMANDS, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// A failed child's own code, so that CI and scripts see the actual failure.
fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(failure) = error.downcast_ref::<ChildFailed>() {
        return failure.code;
    }
    if error.is::<UsageError>() {
        return EXIT_CODE_USAGE;
    }
    if error.is::<Interrupted>() {
        return EXIT_CODE_INTERRUPTED;
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_child_decides_the_exit_code() {
        let failure = ChildFailed {
            command: "cargo test".into(),
            code: 101,
        };
        let error = anyhow::Error::from(failure).context("step tests");
        assert_eq!(exit_code(&error), 101);
    }

    #[test]
    fn a_wrong_call_exits_with_two_and_any_other_error_with_one() {
        let wrong_call = anyhow::Error::from(UsageError("no such command".into()));
        assert_eq!(exit_code(&wrong_call), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("no home folder")), 1);
    }
}
