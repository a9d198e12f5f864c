//! Commands on runs, and how a run advances.
//!
//! A run is a set of active steps (design rule 7). Advancing is a work list, not a recursion: each
//! piece of work reads the run, changes it, and may add more pieces. `advance` says what the pieces
//! are; each has a file of its own.

mod advance;
mod attributes;
mod cancel;
mod child;
mod continuation;
mod decide;
mod enter;
mod execute;
mod failure;
mod finish;
mod index;
mod loaded;
mod open;
mod outcome;
mod render;
mod settle;
mod signal;
mod start;
mod take_up;
mod wake;

pub use cancel::CancelRun;
pub use decide::DecideChildInput;
pub use signal::SignalRun;
pub use start::{StartRun, VersionChoice};

pub(crate) use advance::{WorkQueue, advance, advance_after_wait};
pub(crate) use continuation::fire as fire_continuation;
pub(crate) use execute::open_action;
pub(crate) use failure::{error_field, error_in, is_failure};
pub(crate) use index::forget as forget_indexes;
pub(crate) use loaded::{
    ActivationRef, LoadedRun, TurnRuns, load, note, put_back, record, write_all,
};
pub(crate) use open::{Opening, open, payload};
pub(crate) use outcome::{is_reserved, name as outcome_name};
pub(crate) use settle::{next_attempt, wake_timer};
pub(crate) use take_up::{is_awaited, take_up};
pub(crate) use wake::{expire_signal, wake_step};
