//! The `flo` binary: server, client and worker in one.
//!
//! [`arguments`] defines the command line and [`commands`] implements it, one file per command. A
//! command gets a [`session`](session::Session): the cluster to call and the
//! [`output`](output::Output) to print to. Replies become [`views`], whose fields are the published
//! JSON; [`failure`] turns any error into one sentence and one exit code.

mod argument_source;
mod arguments;
mod byte_count;
mod code;
mod commands;
mod definition_source;
mod failure;
mod file;
mod globals;
mod json_argument;
mod key_value;
mod logging;
mod module_compiler;
mod open_files;
mod output;
mod period;
mod progress;
#[cfg(test)]
mod reference;
mod session;
mod shutdown;
mod supervisor;
mod time;
mod views;

use crate::arguments::Arguments;
use crate::code::Code;
use crate::failure::Failure;
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

/// Many threads allocate small objects that other threads free, for months (ADR 0021).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    if let Some(memory_bytes) = module_compiler::called() {
        return module_compiler::run(memory_bytes);
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::refuse(&error),
    };
    let format = arguments.globals.format;
    let namespace = arguments.namespace();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.in_namespace(namespace.as_deref()).report(format),
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(
                Code::RuntimeStartFailed,
                format!("expected threads, but {error}"),
            )
        })?;
    runtime.block_on(commands::run(arguments))
}
