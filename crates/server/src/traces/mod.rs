//! Spans of OpenTelemetry: what this node tells a collector of calls, steps and tasks (ADR 0019).
//!
//! No state is kept for it but the trace that a run was started in, which is part of the run. The ids of a step's span
//! follow from the run and the step, so that the node that hands its task out, the worker that takes it and the node
//! that sees the step end agree on them, whoever leads meanwhile. Each step is a trace of its own, unless its run was
//! started in a caller's.

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
