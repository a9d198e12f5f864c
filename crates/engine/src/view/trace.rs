//! Reads the trace of a run, and the position of its tasks in it.

use crate::definition::StepIndex;
use crate::ids::{ActionRunNumber, RunNumber, ScopeNumber};
use crate::store::{Reader, StoreError};
use crate::tables::{ActionRunOwner, ActionRuns, Activations, Runs, read};
use crate::trace::TraceContext;

/// Names a visit: a run's stay in a step, from when it enters the step to when it leaves it. Attempts and
/// polls are part of one visit; entering the step again begins another. Visits to one step that begin in
/// the same millisecond have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitKey {
    /// The run.
    pub run: RunNumber,
    /// The scope, within the run (W53).
    pub scope: ScopeNumber,
    /// The step.
    pub step: StepIndex,
    /// The time of the entry in which the run entered the step, in milliseconds.
    pub entered_at_ms: u64,
}

/// Where a task of a step belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskVisit {
    /// The visit that it is worked for.
    pub key: VisitKey,
    /// The trace of its run.
    pub trace: Option<TraceContext>,
}

/// The trace that a run was started in, by its caller or by that of its parent.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn run_trace(reader: &dyn Reader, run: RunNumber) -> Result<Option<TraceContext>, StoreError> {
    Ok(read::<Runs>(reader, &run)?.and_then(|record| record.trace))
}

/// Where the task of an action run belongs; `None` for a stand-alone one, and once the run has left
/// the step.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn task_visit(
    reader: &dyn Reader,
    action_run: ActionRunNumber,
) -> Result<Option<TaskVisit>, StoreError> {
    let owner = read::<ActionRuns>(reader, &action_run)?.map(|record| record.owner);
    let Some(ActionRunOwner::Step { run, activation }) = owner else {
        return Ok(None);
    };
    let Some(record) = read::<Runs>(reader, &run)? else {
        return Ok(None);
    };
    let Some(active) = read::<Activations>(reader, &(run, activation))? else {
        return Ok(None);
    };
    Ok(Some(TaskVisit {
        key: VisitKey {
            run,
            scope: active.scope,
            step: active.step,
            entered_at_ms: active.started_at_ms,
        },
        trace: record.trace,
    }))
}
