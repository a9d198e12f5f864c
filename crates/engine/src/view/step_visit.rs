//! Reads the visits to steps that ended in given entries of the log: the spans that a run adds to its trace.

use super::event::EventView;
use super::run::find_run;
use super::run_definitions::RunDefinitions;
use super::trace::{VisitKey, run_trace};
use super::visit_search::{FoundVisit, VisitSearch, ends_visit};
use crate::definition::TerminalStatus;
use crate::ids::{Namespace, NodeId, OutcomeName, RunId, StepName, WorkflowName, WorkflowVersion};
use crate::run::is_failure;
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{History, RunStatus, StepResults, encode_key, read, visit};
use crate::trace::TraceContext;
use std::ops::{ControlFlow, RangeInclusive};

/// A visit that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct StepVisit {
    /// Names it, and says when it began.
    pub key: VisitKey,
    /// Where the run belongs.
    pub namespace: Namespace,
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// The version that it is pinned to.
    pub version: WorkflowVersion,
    /// The trace of the run.
    pub trace: Option<TraceContext>,
    /// The path of the scope; empty for the run itself (W53).
    pub scope: String,
    /// The step.
    pub step: StepName,
    /// The visit to the step in its scope, from 1.
    pub visit: u32,
    /// The time of the entry in which it ended, in milliseconds.
    pub left_at_ms: u64,
    /// The place of that entry in the log.
    pub raft_index: u64,
    /// The leader that proposed that entry.
    pub node: NodeId,
    /// The outcome with which the run left the step; `None` when the run ended under it.
    pub outcome: Option<OutcomeName>,
    /// Whether the step failed as far as the engine can tell: by an outcome that it knows, or because the
    /// run under which it ended has failed or timed out.
    pub is_failure: bool,
    /// Attempts that were begun.
    pub attempts: u32,
    /// What happened to the run and this step in between, oldest first, and the run's end where that ended
    /// the visit. Of many, the first and the last.
    pub events: Vec<EventView>,
    /// How many events are missing in the middle of `events`.
    pub events_dropped_count: u64,
    /// Whether events are missing before `events`, because they lie too far back or were trimmed.
    pub is_beginning_missing: bool,
}

/// The visits of a run that ended in the entries with these places in the log, in the order in which they
/// ended. A visit whose beginning lies far back or was trimmed is found if it was the last one to its step
/// that ended with an outcome. Visits to steps that a resume has removed (W89) are not found.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn steps_left(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
    entries: RangeInclusive<u64>,
) -> Result<Vec<StepVisit>, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(Vec::new());
    };
    let range = KeyRange {
        // What lies before the trimmed middle does not tell when a visit began that ended behind it.
        from: encode_key::<History>(&(number, run.history.trimming.until + 1)),
        to: encode_key::<History>(&(number, u64::MAX)),
    };
    if !are_any_left(reader, &range, &entries)? {
        return Ok(Vec::new());
    }
    let definitions = RunDefinitions::of(reader, &run, run.history.trimming.until)?;
    let mut search = VisitSearch::new(&run, &definitions, entries);
    visit::<History>(reader, &range, Order::Descending, |(_, first), record| {
        search.look_at(first, &record)
    })?;
    let found =
        search.finish(|place| read::<StepResults>(reader, &(number, place.scope, place.step)))?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let trace = run_trace(reader, number)?;
    let describe = |found: FoundVisit| {
        let definition = definitions.at(found.end.seq);
        let step = found.end.step.expect("a visit is to a step");
        let (events, events_dropped_count) = found.end.events.in_order();
        StepVisit {
            key: VisitKey {
                run: number,
                scope: found.place.scope,
                step,
                entered_at_ms: found.entered_at_ms,
            },
            namespace: run.namespace.clone(),
            run_id: run.id.clone(),
            workflow: definition.name.clone(),
            version: definition.version.clone(),
            trace,
            scope: scope_path::to_text(definition, &found.end.scope.path),
            step: definition.step(step).name.clone(),
            visit: found.end.visit,
            left_at_ms: found.end.at_ms,
            raft_index: found.end.raft_index,
            node: found.end.node,
            is_failure: match &found.end.outcome {
                Some(outcome) => is_failure(outcome),
                None => has_failed(run.status),
            },
            outcome: found.end.outcome,
            attempts: found.attempts,
            events,
            events_dropped_count,
            is_beginning_missing: found.is_beginning_missing,
        }
    };
    Ok(found.into_iter().map(describe).collect())
}

/// Whether a visit ended in these entries at all: most that touch a run end none.
fn are_any_left(
    reader: &dyn Reader,
    range: &KeyRange,
    entries: &RangeInclusive<u64>,
) -> Result<bool, StoreError> {
    let mut are_any = false;
    visit::<History>(reader, range, Order::Descending, |_, record| {
        are_any = entries.contains(&record.raft_index) && record.events.iter().any(ends_visit);
        if are_any || record.raft_index < *entries.start() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(are_any)
}

/// Whether the run ended in a way that makes its open steps failures.
fn has_failed(status: RunStatus) -> bool {
    match status {
        RunStatus::Ended(TerminalStatus::Failed | TerminalStatus::TimedOut) => true,
        RunStatus::Ended(TerminalStatus::Completed | TerminalStatus::Cancelled)
        | RunStatus::Pending
        | RunStatus::Running
        | RunStatus::Waiting => false,
    }
}
