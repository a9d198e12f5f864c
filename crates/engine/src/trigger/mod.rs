//! Triggers: runs that start because a stream grows (W41, W42).
//!
//! A trigger reads its stream through a consumer group of its own, which nobody else may join. A
//! firing names where the group stands and the records that lie there, and moves the group on in the
//! turn that starts the runs: so each record starts exactly one run, whatever leaders come and go
//! (design rule 6). A trigger with records to fire has one row in the table of due ones, kept in step
//! by the turns that change its stream; a trigger whose stream is missing begins when it appears.

mod batch;
mod due;
mod fire;
mod live;
mod source;

pub use batch::{BatchedRecord, TriggerBatch, input};
pub use fire::FireTrigger;

pub(crate) use due::Unread;
pub(crate) use live::{make_live, set_aside, set_enabled, take_up};
pub(crate) use source::{stream_appeared, stream_changed, stream_gone};
