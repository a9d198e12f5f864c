//! The WASM sandbox that runs actions (A7, A9).
//!
//! Two entry points. [`inspect`] is asked when an action is registered: a pure function that
//! refuses a module which could never run, with a sentence and a hint. [`Sandbox::invoke`] is asked
//! when a task runs: it compiles the module once, then gives each call an instance, a memory and a
//! deadline of its own, so that nothing of one call is seen by the next.
//!
//! The boundary is drawn here and nowhere else: a guest's bytes, pointers, lengths, names and log
//! lines are all untrusted, and every one of them is checked against [`Limits`] or a constant
//! beside it. What a guest may reach outside itself is the [`Host`] trait.
//!
//! Deliberately absent: any workspace crate, async, clocks given to guests, files and network. A
//! guest never runs inside `apply` (design rule 8), so its results need not be deterministic.

mod abi;
mod cache;
mod call;
mod compiler;
mod error;
mod guest;
mod host;
mod imports;
mod inspection;
mod limiter;
mod limits;
mod log;
mod outcome;
mod rejection;
mod sandbox;
mod span;
mod text;
mod ticker;

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
pub use text::to_binary;
