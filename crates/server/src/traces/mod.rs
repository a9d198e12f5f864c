//! OpenTelemetry spans of calls, steps and tasks, exported to a collector (ADR 0019).
//!
//! The only state kept for them is the trace in which a run was started, which is part of the run.
//! The ids of a step's span are derived from the run and the step. So the node that assigns its
//! task, the worker that runs it and the node that sees the step end agree on them, whichever node
//! leads meanwhile. Each step is a separate trace, unless its run was started in a caller's.

mod call;
mod context;
mod step;
mod steps;
mod task;
mod tracer;

pub(crate) use call::{CallTrace, TracedCall};
pub(crate) use steps::start;
pub(crate) use task::{TracedTask, carried};
pub(crate) use tracer::Tracer;
