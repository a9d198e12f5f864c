//! Reopening a run that has ended (W89).

use super::child::Above;
use super::concurrency::{self, Acquired, Request};
use super::{continuation, cursor, exclusion, linked_attempts};
use crate::definition::TerminalStatus;
use crate::ids::RunNumber;
use crate::rejection::Rejection;
use crate::resume_rejection::ResumeRejection;
use crate::schedule;
use crate::store::StoreError;
use crate::tables::{
    CompensationProgress, EventKind, PendingWorks, RunRecord, RunRevisionChange, RunStatus,
    ScopeProgress, TriggeredBy, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::workflow::newest;

/// Checks that a run can be resumed, apart from its parent, its cursor and its concurrency keys.
pub(super) fn check(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> TurnResult<()> {
    let record = &run.record;
    check_ended(turn, run.number, record)?;
    let run_id = record.id.clone();
    if record.status == RunStatus::Ended(TerminalStatus::Completed) {
        return Err(Rejection::from(ResumeRejection::Completed(run_id)).into());
    }
    if record.compensations.progress != CompensationProgress::None {
        return Err(Rejection::from(ResumeRejection::Compensated(run_id)).into());
    }
    let workflow = run.definition.definition.name.clone();
    match newest(turn, &record.namespace, &workflow, None)?.is_enabled {
        true => Ok(()),
        false => Err(Rejection::WorkflowDisabled(workflow).into()),
    }
}

/// Checks that a run has ended, and is the last attempt.
pub(super) fn check_ended(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    record: &RunRecord,
) -> TurnResult<()> {
    let run_id = record.id.clone();
    if record.status.is_open() {
        let status = record.status.name().to_owned();
        return Err(Rejection::from(ResumeRejection::Open { run_id, status }).into());
    }
    if record.chain.is_some_and(|chain| chain.next.is_some()) {
        let latest = linked_attempts::latest_in(turn, number, record.chain)?;
        let latest = turn.run_record(latest)?.map(|latest| latest.id.clone());
        let latest = latest.unwrap_or_else(|| run_id.clone());
        return Err(Rejection::from(ResumeRejection::Superseded { run_id, latest }).into());
    }
    Ok(())
}

/// Reopens an ended run that was [checked](check): it requests its target, its locks and its concurrency keys as a new run
/// does. `revision` is the change of its revision, if it is resumed with another one. Returns the work that continues it, if
/// it waits for none of them. A run that is rejected is as before.
pub(super) fn reopen(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    above: &Above,
    revision: Option<Box<RunRevisionChange>>,
) -> TurnResult<Option<Work>> {
    let prepared = exclusion::prepare_again(turn, run.number)?;
    let namespace = &run.record.namespace;
    let conflict = exclusion::conflict(turn, namespace, prepared.as_ref(), &above.runs)?;
    let request = Request {
        held_above: &above.held_keys,
        may_use_existing: false,
        is_handed_over: false,
        conflict,
    };
    let acquired = concurrency::acquire(turn, run, &request)?;
    if let Some(prepared) = prepared {
        exclusion::hold(turn, run, prepared)?;
    }
    drop_deferred(turn, run)?;
    let from = cursor::step_of(run);
    run.note_run(EventKind::RunResumed { from, revision });
    let record = &mut run.record;
    record.become_status(RunStatus::Pending);
    record.end = None;
    record.detail = None;
    record.output = None;
    record.completed_at_ms = None;
    record.resumption.resumes_count += 1;
    // Those that the end of the run has ended count as left.
    record.left_count = record.activations_count;
    record.unwaited_steps_count = 0;
    record.progress = ScopeProgress {
        last_left: record.progress.last_left,
        ..ScopeProgress::default()
    };
    note_schedule(turn, run)?;
    Ok(match acquired {
        // It continues when its locks are compiled.
        Acquired::Held if run.record.awaits_locks() => None,
        Acquired::Held => Some(cursor::first_work(run)),
        Acquired::Queued(work) => work,
        Acquired::Existing(_) => panic!("a run that is resumed is not replaced"),
    })
}

/// Deletes the work that was deferred before the run ended, and that no longer applies: its cursor says what is left of it.
fn drop_deferred(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    if run.record.continuation.is_none() {
        return Ok(());
    }
    let mut is_work_left = false;
    for (key, work) in turn.list::<PendingWorks>(&run.number, usize::MAX)? {
        let is_cleanup = matches!(
            *work,
            Work::ForgetItems(_)
                | Work::ForgetBranches(_)
                | Work::ForgetWrites
                | Work::SettleSignals(_)
        );
        match is_cleanup {
            true => is_work_left = true,
            false => turn.delete::<PendingWorks>(&key),
        }
    }
    if !is_work_left {
        continuation::clear(turn, run);
    }
    Ok(())
}

/// A run that a firing started counts as open again.
fn note_schedule(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> Result<(), StoreError> {
    if let TriggeredBy::Schedule { .. } = run.record.triggered_by {
        let workflow = run.definition.definition.name.clone();
        schedule::run_resumed(turn, &(run.record.namespace.clone(), workflow))?;
    }
    Ok(())
}
