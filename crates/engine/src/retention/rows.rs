//! The rows that belong to a run, and to a stand-alone action run.

use crate::action;
use crate::ids::{ActionRunNumber, RunNumber};
use crate::run;
use crate::store::StoreError;
use crate::tables::{
    ActionRunKeys, ActionRuns, ActionRunsByRun, BoundIdempotencyKeys, BranchResults, Compensations,
    Exclusions, History, IdempotencyKeys, Infos, Items, IterationResults, PayloadOwner, Payloads,
    PayloadsHeld, PendingWorks, ResumableScopes, ResumableSteps, RunNames, RunRecord, RunRemains,
    RunUsages, Runs, SignalIdPlaces, SignalIds, SignalsWaiting, States, StepResults, StepUsages,
    Table, TakenSignals,
};
use crate::turn::{Row, Turn, TurnResult};
use std::ops::ControlFlow;

/// Deletes a run's record, name and key, so that it can no longer be found. Its index rows are deleted at the end of
/// the turn.
pub(super) fn forget_run(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> TurnResult<()> {
    let run = turn.get::<Runs>(&number)?;
    let run = run.expect("a run is kept until it is forgotten");
    forget_names(turn, number, &run)?;
    turn.delete::<Runs>(&number);
    if run.start_limits.exclusion.is_some() {
        turn.delete::<Exclusions>(&number);
    }
    let indexed_count = run::forget_indexes(turn, number, &run)?;
    run::note_attempt_forgotten(turn, number, &run)?;
    // The record, its name and its key.
    *rows_left = rows_left.saturating_sub(3 + indexed_count);
    sweep_remains(turn, number, rows_left)?;
    Ok(())
}

fn forget_names(turn: &mut Turn<'_, '_>, number: RunNumber, run: &RunRecord) -> TurnResult<()> {
    if run.id.generated_number() != Some(number) {
        turn.delete::<RunNames>(&(run.namespace.clone(), run.id.clone()));
    }
    if let Some(key) = &run.idempotency_key {
        let workflow = turn.pinned(run.definition)?.definition.name.clone();
        turn.delete::<IdempotencyKeys>(&(run.namespace.clone(), workflow, key.clone()));
    }
    Ok(())
}

/// Deletes the idempotency keys that named the run because it held a concurrency key, as many as the budget allows.
fn forget_bound_keys(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    let count_max = rows_left.div_ceil(2);
    for (bound, namespace) in turn.list::<BoundIdempotencyKeys>(&number, count_max)? {
        turn.delete::<BoundIdempotencyKeys>(&bound);
        let (_, key, workflow) = bound;
        let named = ((*namespace).clone(), workflow, key);
        // The key may have been given again since the run was forgotten.
        let names_it = turn.get::<IdempotencyKeys>(&named)?;
        if names_it.is_some_and(|found| *found == number) {
            turn.delete::<IdempotencyKeys>(&named);
        }
        *rows_left = rows_left.saturating_sub(2);
    }
    Ok(())
}

/// Deletes rows that are found by the run's number, as many as the budget allows; the rest is recorded for the next
/// sweep.
pub(super) fn sweep_remains(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    sweep_history(turn, number, rows_left)?;
    forget_bound_keys(turn, number, rows_left)?;
    sweep::<SignalIds>(turn, number, rows_left)?;
    sweep::<SignalIdPlaces>(turn, number, rows_left)?;
    sweep::<SignalsWaiting>(turn, number, rows_left)?;
    sweep::<TakenSignals>(turn, number, rows_left)?;
    sweep::<Compensations>(turn, number, rows_left)?;
    sweep::<Items>(turn, number, rows_left)?;
    sweep::<IterationResults>(turn, number, rows_left)?;
    sweep::<Infos>(turn, number, rows_left)?;
    sweep_usage(turn, number, rows_left)?;
    sweep::<StepResults>(turn, number, rows_left)?;
    sweep::<States>(turn, number, rows_left)?;
    sweep::<BranchResults>(turn, number, rows_left)?;
    sweep::<ResumableScopes>(turn, number, rows_left)?;
    sweep::<ResumableSteps>(turn, number, rows_left)?;
    sweep::<PendingWorks>(turn, number, rows_left)?;
    sweep::<PayloadsHeld>(turn, number, rows_left)?;
    for key in turn.keys::<Payloads>(&PayloadOwner::Run(number), *rows_left)? {
        turn.delete::<Payloads>(&key);
        *rows_left -= 1;
    }
    let count_max = rows_left.div_ceil(3);
    let listed = turn.keys::<ActionRunsByRun>(&number, count_max)?;
    let may_be_more = listed.len() == count_max;
    for (_, action_run) in listed {
        forget_if_kept(turn, action_run, rows_left)?;
        turn.delete::<ActionRunsByRun>(&(number, action_run));
        *rows_left = rows_left.saturating_sub(1);
    }
    if may_be_more {
        // Those that an earlier sweep has forgotten leave room, but the next ones were not looked at.
        *rows_left = 0;
    }
    let is_noted = turn.get::<RunRemains>(&number)?.is_some();
    match (*rows_left, is_noted) {
        // With no room left there may be rows that were not looked at.
        (0, _) => turn.put::<RunRemains>(&number, ()),
        (_, true) => turn.delete::<RunRemains>(&number),
        (_, false) => {}
    }
    Ok(())
}

/// Deletes what the run's tasks have used, the sums of the run last.
fn sweep_usage(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    if turn.get::<RunUsages>(&number)?.is_some() {
        sweep::<StepUsages>(turn, number, rows_left)?;
        sweep::<RunUsages>(turn, number, rows_left)?;
    }
    Ok(())
}

/// Deletes the records of the history, each after the action runs that its turn created.
fn sweep_history(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    let records = first_of_history(turn, number, rows_left)?;
    for (key, record) in records {
        for (_, action_run) in record.created_action_runs() {
            if *rows_left == 0 {
                return Ok(());
            }
            forget_if_kept(turn, action_run, rows_left)?;
        }
        if *rows_left == 0 {
            return Ok(());
        }
        turn.delete::<History>(&key);
        *rows_left -= 1;
    }
    Ok(())
}

/// The first records of the history: at most as many as there are rows left, and no more once the turn is spent, which
/// ends the sweep after them.
fn first_of_history(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> Result<Vec<Row<History>>, StoreError> {
    let mut records = Vec::new();
    if *rows_left == 0 {
        return Ok(records);
    }
    turn.visit::<History>(&number, |key, record| {
        records.push((key, record));
        if records.len() == *rows_left {
            return ControlFlow::Break(());
        }
        if turn.is_spent() {
            *rows_left = records.len();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(records)
}

/// Deletes an action run, unless an earlier sweep has. Only a deletion counts, so that each sweep gets further.
fn forget_if_kept(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    if let Some(record) = turn.get::<ActionRuns>(&number)? {
        action::forget(turn, number, &record)?;
        *rows_left = rows_left.saturating_sub(2);
    }
    Ok(())
}

/// Deletes rows of a table whose keys begin with the run, as many as there is room for.
fn sweep<T: Table>(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    for key in turn.keys::<T>(&number, *rows_left)? {
        turn.delete::<T>(&key);
        *rows_left -= 1;
    }
    Ok(())
}

/// Deletes a stand-alone action run.
pub(super) fn forget_action_run(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    let record = turn.get::<ActionRuns>(&number)?;
    let record = record.expect("an action run is kept until it is forgotten");
    action::forget(turn, number, &record)?;
    if let Some(key) = &record.idempotency_key {
        let key = (record.namespace.clone(), record.action.clone(), key.clone());
        turn.delete::<ActionRunKeys>(&key);
    }
    for payload in [Some(record.input), record.output].into_iter().flatten() {
        turn.delete::<Payloads>(&payload);
    }
    *rows_left = rows_left.saturating_sub(6);
    Ok(())
}
