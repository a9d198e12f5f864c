//! The tables of ABI 2, a WASI command: all of WASI preview 1 (A8).
//!
//! All of its functions can be imported, since the libraries of every language import most of them,
//! needed or not. Those in [`DENIED`] always return an error.

use super::{Export, Import, Signature, import, required, signature};
use wasmparser::ValType::{self, I32, I64};

/// The program's entry point.
pub(crate) const START: &str = "_start";

/// The module name of the host's functions.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";
/// `args_get(pointers, strings)`: writes the program's arguments.
pub(crate) const ARGS_GET: &str = "args_get";
/// `args_sizes_get(&count, &bytes)`: the size of the arguments.
pub(crate) const ARGS_SIZES_GET: &str = "args_sizes_get";
/// `clock_res_get(clock, &nanoseconds)`: a clock's resolution.
pub(crate) const CLOCK_RES_GET: &str = "clock_res_get";
/// `clock_time_get(clock, precision, &nanoseconds)`.
pub(crate) const CLOCK_TIME_GET: &str = "clock_time_get";
/// `environ_get(pointers, strings)`: writes the environment.
pub(crate) const ENVIRON_GET: &str = "environ_get";
/// `environ_sizes_get(&count, &bytes)`: the size of the environment.
pub(crate) const ENVIRON_SIZES_GET: &str = "environ_sizes_get";
/// `fd_close(descriptor)`: closes a stream.
pub(crate) const FD_CLOSE: &str = "fd_close";
/// `fd_fdstat_get(descriptor, &status)`: a stream's type and rights.
pub(crate) const FD_FDSTAT_GET: &str = "fd_fdstat_get";
/// `fd_fdstat_set_flags(descriptor, flags)`: without effect on streams.
pub(crate) const FD_FDSTAT_SET_FLAGS: &str = "fd_fdstat_set_flags";
/// `fd_filestat_get(descriptor, &status)`: a stream's attributes.
pub(crate) const FD_FILESTAT_GET: &str = "fd_filestat_get";
/// `fd_read(descriptor, buffers, buffers count, &bytes)`.
pub(crate) const FD_READ: &str = "fd_read";
/// `fd_write(descriptor, buffers, buffers count, &bytes)`.
pub(crate) const FD_WRITE: &str = "fd_write";
/// `poll_oneoff(subscriptions, events, subscriptions count, &events count)`.
pub(crate) const POLL_ONEOFF: &str = "poll_oneoff";
/// `proc_exit(status)`, which does not return.
pub(crate) const PROC_EXIT: &str = "proc_exit";
/// `random_get(pointer, length)`: fills a range with random bytes.
pub(crate) const RANDOM_GET: &str = "random_get";
/// `sched_yield()`: does nothing.
pub(crate) const SCHED_YIELD: &str = "sched_yield";

/// A function that can be imported but always returns an error.
pub(crate) struct DeniedImport {
    pub(crate) import: Import,
    pub(crate) denial: Denial,
}

/// Why a function always returns an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It needs files or network, which an action does not have.
    Capability,
    /// It takes a descriptor first, and a stream has no position.
    Position,
    /// It takes a descriptor first, and streams do not support it.
    Stream,
    /// It is for signals.
    Signal,
}

/// What a module must export, in addition to its memory.
pub(super) const EXPORTS: [Export; 1] = [required(START, signature(&[], &[]))];

/// The functions that are implemented.
pub(super) const SERVED: [Import; 16] = [
    import(ARGS_GET, status(&[I32, I32])),
    import(ARGS_SIZES_GET, status(&[I32, I32])),
    import(CLOCK_RES_GET, status(&[I32, I32])),
    import(CLOCK_TIME_GET, status(&[I32, I64, I32])),
    import(ENVIRON_GET, status(&[I32, I32])),
    import(ENVIRON_SIZES_GET, status(&[I32, I32])),
    import(FD_CLOSE, status(&[I32])),
    import(FD_FDSTAT_GET, status(&[I32, I32])),
    import(FD_FDSTAT_SET_FLAGS, status(&[I32, I32])),
    import(FD_FILESTAT_GET, status(&[I32, I32])),
    import(FD_READ, status(&[I32, I32, I32, I32])),
    import(FD_WRITE, status(&[I32, I32, I32, I32])),
    import(POLL_ONEOFF, status(&[I32, I32, I32, I32])),
    import(PROC_EXIT, signature(&[I32], &[])),
    import(RANDOM_GET, status(&[I32, I32])),
    import(SCHED_YIELD, status(&[])),
];

/// The functions that always return an error.
pub(crate) const DENIED: [DeniedImport; 30] = [
    denied("fd_advise", &[I32, I64, I64, I32], Denial::Position),
    denied("fd_allocate", &[I32, I64, I64], Denial::Position),
    denied("fd_datasync", &[I32], Denial::Stream),
    denied("fd_fdstat_set_rights", &[I32, I64, I64], Denial::Stream),
    denied("fd_filestat_set_size", &[I32, I64], Denial::Stream),
    denied(
        "fd_filestat_set_times",
        &[I32, I64, I64, I32],
        Denial::Stream,
    ),
    denied("fd_pread", &[I32, I32, I32, I64, I32], Denial::Position),
    denied("fd_prestat_dir_name", &[I32, I32, I32], Denial::Stream),
    denied("fd_prestat_get", &[I32, I32], Denial::Stream),
    denied("fd_pwrite", &[I32, I32, I32, I64, I32], Denial::Position),
    denied("fd_readdir", &[I32, I32, I32, I64, I32], Denial::Stream),
    denied("fd_renumber", &[I32, I32], Denial::Stream),
    denied("fd_seek", &[I32, I64, I32, I32], Denial::Position),
    denied("fd_sync", &[I32], Denial::Stream),
    denied("fd_tell", &[I32, I32], Denial::Position),
    capability("path_create_directory", &[I32, I32, I32]),
    capability("path_filestat_get", &[I32, I32, I32, I32, I32]),
    capability(
        "path_filestat_set_times",
        &[I32, I32, I32, I32, I64, I64, I32],
    ),
    capability("path_link", &[I32, I32, I32, I32, I32, I32, I32]),
    capability("path_open", &[I32, I32, I32, I32, I32, I64, I64, I32, I32]),
    capability("path_readlink", &[I32, I32, I32, I32, I32, I32]),
    capability("path_remove_directory", &[I32, I32, I32]),
    capability("path_rename", &[I32, I32, I32, I32, I32, I32]),
    capability("path_symlink", &[I32, I32, I32, I32, I32]),
    capability("path_unlink_file", &[I32, I32, I32]),
    denied("proc_raise", &[I32], Denial::Signal),
    capability("sock_accept", &[I32, I32, I32]),
    capability("sock_recv", &[I32, I32, I32, I32, I32, I32]),
    capability("sock_send", &[I32, I32, I32, I32, I32]),
    capability("sock_shutdown", &[I32, I32]),
];

/// Every function except `proc_exit` returns an error number.
const fn status(params: &'static [ValType]) -> Signature<'static> {
    signature(params, &[I32])
}

const fn denied(name: &'static str, params: &'static [ValType], denial: Denial) -> DeniedImport {
    DeniedImport {
        import: import(name, status(params)),
        denial,
    }
}

const fn capability(name: &'static str, params: &'static [ValType]) -> DeniedImport {
    denied(name, params, Denial::Capability)
}
