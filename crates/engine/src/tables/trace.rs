//! The traces that runs are part of.

use super::tables;
use crate::ids::RunNumber;
use crate::trace::TraceContext;

tables! {
    /// The trace that a run was started in, by run: of those that were started in one, and of their
    /// children. Live as long as the run.
    62 RunTraces(RunNumber) -> TraceContext;
}
