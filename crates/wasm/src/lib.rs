//! The WASM sandbox that runs actions (A7, A8, A9).
//!
//! A module is an action in one of two ways, which its exports determine: with `handle` it follows
//! Flo's own ABI, with `_start` it is a WASI command, so that any language that compiles to WASI
//! works.
//!
//! There are three entry points. [`inspect`] runs when an action is registered: a pure function that
//! rejects a module that could never run, with a message and a hint. [`try_compile`] runs in a process
//! with limits, which finds out whether a module can be compiled within them ([`COMPILE_CPU_SECONDS_MAX`],
//! [`COMPILE_MEMORY_BYTES_MAX`]). [`Sandbox::invoke`] runs with each task, on a module that
//! [`Sandbox::compile`] has compiled once: it gives each call a separate instance, memory and deadline,
//! so that no call sees anything of another.
//!
//! This crate is the trust boundary: a guest's bytes, pointers, lengths, names and log lines are
//! all untrusted, and every one of them is checked against [`Limits`] or a constant beside it. The
//! [`Host`] trait defines what a guest can reach outside itself; a WASI command can reach its three
//! streams, clocks and random bytes.
//!
//! Deliberately absent: any workspace crate, async, files and network. A guest never runs inside
//! `apply` (design rule 8), so its results need not be deterministic.

mod abi;
mod cache;
mod compiler;
mod deadline;
mod error;
mod flo;
mod guest;
mod host;
mod inspection;
mod limiter;
mod limits;
mod log;
mod outcome;
mod rejection;
mod sandbox;
mod span;
mod task;
mod text;
mod ticker;
mod wasi;

pub use abi::Abi;
pub use cache::ModuleDigest;
pub use compiler::{check_code_bytes, try_compile};
pub use error::{Broken, Failure, InvocationError};
pub use host::{Host, KvError, NoStore};
pub use inspection::{ModuleInfo, inspect};
pub use limits::{
    CODE_BYTES_MAX, COMPILE_CPU_SECONDS_MAX, COMPILE_MEMORY_BYTES_MAX, Limits, LimitsRejected,
    MODULES_CACHED_BYTES_MAX,
};
pub use log::{LogLevel, LogLine, Logs};
pub use outcome::{OutcomeName, OutcomeNameRejected};
pub use rejection::ModuleRejected;
pub use sandbox::{Answer, Invocation, Module, Report, Requests, Sandbox, SandboxError};
pub use task::Task;
pub use text::to_binary;
