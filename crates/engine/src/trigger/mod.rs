//! Triggers: runs that start for the records of a stream (W41, W42, W93).
//!
//! A trigger reads its stream through a dedicated consumer group, which no consumer may join. A firing names the cursor
//! and the records at it, and advances the cursor in the turn that starts the runs; so each record starts exactly one
//! run, across all changes of leader (design rule 6). A trigger with records to fire has one row in the table of due
//! triggers, which the turns that change its stream update. A trigger whose stream is missing begins when the stream is
//! created.

mod batch;
mod condition;
mod due;
mod fire;
mod live;
mod source;

pub use batch::{BatchedRecord, TriggerBatch, input};
pub use due::TriggerKey;
pub use fire::FireTrigger;

pub(crate) use condition::{Candidate, Verdict};
pub(crate) use due::Unread;
pub(crate) use live::{count, delete, make_live, quarantine, release_from_quarantine, set_enabled};
pub(crate) use source::{stream_appeared, stream_changed, stream_gone};
