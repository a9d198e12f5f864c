//! Commands on runs, and how a run advances.
//!
//! A run is a set of active steps (design rule 7). Advancing is a work list, not a recursion: each
//! piece of work reads the run, changes it, and may add more pieces. `advance` says what the pieces
//! are; each has a file of its own.

mod advance;
mod cancel;
mod child;
mod decide;
mod enter;
mod execute;
mod finish;
mod open;
mod outcome;
mod render;
mod settle;
mod signal;
mod start;
mod wake;

pub use cancel::CancelRun;
pub use decide::{DecideChildInput, InputVerdict};
pub use signal::SignalRun;
pub use start::{StartRun, VersionChoice};

pub(crate) use advance::{Settled, Work, advance};
pub(crate) use open::{Opening, load, open, store_payload};
pub(crate) use outcome::{is_reserved, name as outcome_name};
pub(crate) use wake::{expire_signal, wake_step};
