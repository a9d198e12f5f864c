//! Queries for runs (W22).
//!
//! The indexes answer a query. Each condition that an index supports gives a stream of run numbers, newest first, and
//! the streams are intersected by leaping to the smallest head. Each run in the intersection is then checked against
//! its own record, so an index may be coarse. Pages continue below a run's number: runs added meanwhile have larger
//! numbers and change no later page.

mod bounds;
mod condition;
mod plan;
mod scan;
mod stream;
mod unknown;

pub use condition::{Comparison, Condition, Equality, RunQuery};
pub use scan::runs;
pub use unknown::unknown_attributes;
