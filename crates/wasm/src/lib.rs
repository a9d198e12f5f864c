//! The WASM sandbox that runs actions (A7, A8, A9).
//!
//! A module is an action in one of two ways, told by its exports: with `handle` it is one of Flo's
//! own, with `_start` it is a WASI command, so that any language which compiles to WASI will do.
//!
//! Two entry points. [`inspect`] is asked when an action is registered: a pure function that
//! refuses a module which could never run, with a sentence and a hint. [`Sandbox::invoke`] is asked
//! when a task runs: it compiles the module once, then gives each call an instance, a memory and a
//! deadline of its own, so that nothing of one call is seen by the next.
//!
//! The boundary is drawn here and nowhere else: a guest's bytes, pointers, lengths, names and log
//! lines are all untrusted, and every one of them is checked against [`Limits`] or a constant
//! beside it. What a guest may reach outside itself is the [`Host`] trait; a WASI command reaches
//! its three streams, clocks and random bytes.
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
pub use error::{Broken, Failure, InvocationError};
pub use host::{Host, KvError, NoStore};
pub use inspection::{ModuleInfo, inspect};
pub use limits::{Limits, LimitsRejected};
pub use log::{LogLevel, LogLine, Logs};
pub use outcome::{OutcomeName, OutcomeNameRejected};
pub use rejection::ModuleRejected;
pub use sandbox::{Answer, Invocation, Report, Sandbox, SandboxError};
pub use task::Task;
pub use text::to_binary;
