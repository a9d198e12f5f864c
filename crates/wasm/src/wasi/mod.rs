//! ABI 2, a WASI command (A8): preview 1 without files and network.
//!
//! A guest has three streams, two clocks, random bytes, its name and three variables. The functions
//! for anything else can be called, because the libraries of every language are linked with them,
//! and return an error. ADR 0010 says why this is written here and not taken from a library.
//!
//! What a guest writes to stderr is its log; the last line is the message of a failure.

mod answer;
mod call;
mod clocks;
mod memory;
mod poll;
mod process;
mod stderr;
mod streams;
mod strings;

use crate::abi::preview1::{
    ARGS_GET, ARGS_SIZES_GET, CLOCK_RES_GET, CLOCK_TIME_GET, DENIED, Denial, ENVIRON_GET,
    ENVIRON_SIZES_GET, FD_CLOSE, FD_FDSTAT_GET, FD_FDSTAT_SET_FLAGS, FD_FILESTAT_GET, FD_READ,
    FD_WRITE, MODULE, POLL_ONEOFF, PROC_EXIT, RANDOM_GET, SCHED_YIELD,
};
use crate::flo::requests;
use crate::guest::{self, Guest};
use crate::span::Span;
use answer::{Errno, Refused};
use memory::Memory;
use poll::PollRequest;
use streams::Transfer;
use wasmtime::{FuncType, Linker, Val, ValType};

pub(crate) use call::run;
pub(crate) use process::Process;

type Caller<'a> = wasmtime::Caller<'a, Guest<Process>>;

/// The guest requested to exit with this status.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("exit status {0}")]
struct Exit(u32);

/// Binds every function of preview 1, and those of `flo` with which a command asks for more than its result.
pub(crate) fn link(linker: &mut Linker<Guest<Process>>) -> wasmtime::Result<()> {
    link_process(linker)?;
    link_clocks(linker)?;
    link_streams(linker)?;
    link_denied(linker)?;
    requests::link(linker)
}

fn link_process(linker: &mut Linker<Guest<Process>>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        ARGS_SIZES_GET,
        |mut call: Caller<'_>, count, bytes| {
            serve(&mut call, |guest, memory| {
                strings::sizes(guest.state.arguments(), memory, count, bytes)
            })
        },
    )?;
    linker.func_wrap(MODULE, ARGS_GET, |mut call: Caller<'_>, pointers, bytes| {
        serve(&mut call, |guest, memory| {
            strings::place(guest.state.arguments(), memory, pointers, bytes)
        })
    })?;
    linker.func_wrap(
        MODULE,
        ENVIRON_SIZES_GET,
        |mut call: Caller<'_>, count, bytes| {
            serve(&mut call, |guest, memory| {
                strings::sizes(guest.state.variables(), memory, count, bytes)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        ENVIRON_GET,
        |mut call: Caller<'_>, pointers, bytes| {
            serve(&mut call, |guest, memory| {
                strings::place(guest.state.variables(), memory, pointers, bytes)
            })
        },
    )?;
    linker.func_wrap(MODULE, PROC_EXIT, |status: u32| -> wasmtime::Result<()> {
        Err(Exit(status).into())
    })?;
    linker.func_wrap(
        MODULE,
        RANDOM_GET,
        |mut call: Caller<'_>, pointer, length| {
            serve(&mut call, |guest, memory| {
                clocks::random(guest, memory, Span::new(pointer, length))
            })
        },
    )?;
    Ok(())
}

fn link_clocks(linker: &mut Linker<Guest<Process>>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        CLOCK_RES_GET,
        |mut call: Caller<'_>, clock, result| {
            serve(&mut call, |_, memory| {
                clocks::resolution(memory, clock, result)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        CLOCK_TIME_GET,
        |mut call: Caller<'_>, clock, _precision: u64, result| {
            serve(&mut call, |guest, memory| {
                clocks::time(&guest.state, memory, clock, result)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        POLL_ONEOFF,
        |mut call: Caller<'_>, subscriptions, events, count, result| {
            serve(&mut call, |guest, memory| {
                let request = PollRequest {
                    subscriptions,
                    events,
                    count,
                    result,
                };
                poll::poll(guest, memory, &request)
            })
        },
    )?;
    linker.func_wrap(MODULE, SCHED_YIELD, || Errno::Success.code())?;
    Ok(())
}

fn link_streams(linker: &mut Linker<Guest<Process>>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        FD_READ,
        |mut call: Caller<'_>, descriptor, buffers, count, result| {
            serve(&mut call, |guest, memory| {
                let transfer = Transfer {
                    buffers,
                    count,
                    result,
                };
                streams::read(guest, memory, descriptor, transfer)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        FD_WRITE,
        |mut call: Caller<'_>, descriptor, buffers, count, result| {
            serve(&mut call, |guest, memory| {
                let transfer = Transfer {
                    buffers,
                    count,
                    result,
                };
                streams::write(guest, memory, descriptor, transfer)
            })
        },
    )?;
    linker.func_wrap(MODULE, FD_CLOSE, |mut call: Caller<'_>, descriptor| {
        serve(&mut call, |guest, _| Ok(guest.state.close(descriptor)?))
    })?;
    linker.func_wrap(
        MODULE,
        FD_FDSTAT_GET,
        |mut call: Caller<'_>, descriptor, result| {
            serve(&mut call, |guest, memory| {
                streams::descriptor_status(&guest.state, memory, descriptor, result)
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        FD_FDSTAT_SET_FLAGS,
        |mut call: Caller<'_>, descriptor, _flags: u32| {
            // No stream ever blocks, so there is nothing to set.
            serve(&mut call, |guest, _| {
                guest.state.stream(descriptor)?;
                Ok(())
            })
        },
    )?;
    linker.func_wrap(
        MODULE,
        FD_FILESTAT_GET,
        |mut call: Caller<'_>, descriptor, result| {
            serve(&mut call, |guest, memory| {
                streams::file_status(&guest.state, memory, descriptor, result)
            })
        },
    )?;
    Ok(())
}

/// Binds the functions that always return an error, from their table.
fn link_denied(linker: &mut Linker<Guest<Process>>) -> wasmtime::Result<()> {
    for denied in &DENIED {
        let (name, denial) = (denied.import.name, denied.denial);
        let params = denied
            .import
            .signature
            .params
            .iter()
            .map(|param| match param {
                wasmparser::ValType::I64 => ValType::I64,
                _ => ValType::I32,
            });
        let function = FuncType::new(linker.engine(), params, [ValType::I32]);
        linker.func_new(MODULE, name, function, move |mut call, params, results| {
            let process = &mut call.data_mut().state;
            let errno = match denial {
                Denial::Capability => process.deny(name),
                Denial::Position => error_of_stream(process, params, Errno::NotSeekable),
                Denial::Stream => error_of_stream(process, params, Errno::NotSupported),
                Denial::Signal => Errno::NotSupported,
            };
            results.fill(Val::I32(errno.code()));
            Ok(())
        })?;
    }
    Ok(())
}

/// The error of a function whose first parameter is a descriptor, which may not exist.
fn error_of_stream(process: &Process, params: &[Val], otherwise: Errno) -> Errno {
    let descriptor = params.first().and_then(Val::i32).map(i32::cast_unsigned);
    match descriptor.map(|descriptor| process.stream(descriptor)) {
        Some(Ok(_)) => otherwise,
        Some(Err(_)) | None => Errno::BadDescriptor,
    }
}

/// Runs a function on the guest's memory, and turns its result into an error number or the end of
/// the call.
fn serve(
    call: &mut Caller<'_>,
    function: impl FnOnce(&mut Guest<Process>, &mut Memory<'_>) -> Result<(), Refused>,
) -> wasmtime::Result<i32> {
    let Some((bytes, guest)) = guest::split(call) else {
        return Ok(Errno::BadPointer.code());
    };
    match function(guest, &mut Memory::new(bytes)) {
        Ok(()) => Ok(Errno::Success.code()),
        Err(Refused::Errno(errno)) => Ok(errno.code()),
        Err(Refused::Ended(ended)) => Err(ended.into()),
    }
}
