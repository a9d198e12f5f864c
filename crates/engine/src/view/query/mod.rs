//! Runs by what people look for (W22).
//!
//! A query is answered from the indexes: each condition that one of them knows gives a stream of run
//! numbers, newest first, and the streams are intersected by leaping to the oldest head. Each run
//! that they agree on is then judged by its own record, so an index may be coarse. Pages continue
//! below a run's number: runs that are added meanwhile have larger ones, and change no later page.

mod bounds;
mod condition;
mod plan;
mod scan;
mod stream;
mod unknown;

pub use condition::{Comparison, Condition, Equality, RunQuery};
pub use scan::runs;
pub use unknown::unknown_attributes;
