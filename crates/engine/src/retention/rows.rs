//! Everything that belongs to a run, and to an action run outside any workflow.

use crate::ids::{ActionRunNumber, RunNumber};
use crate::run;
use crate::store::StoreError;
use crate::tables::{
    ActionRunKeys, ActionRunRecord, ActionRuns, ActionRunsByAction, History, IdempotencyKeys,
    PayloadOwner, PayloadRef, Payloads, PendingWorks, RunNames, RunRecord, RunRemains,
    RunRemainsRecord, Runs, SignalIds, SignalsWaiting, StepResults, Table,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// Forgets a run: nobody finds it from now on. Its index rows go at the turn's end.
pub(super) fn forget_run(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    room: &mut usize,
) -> Outcome<()> {
    let run = turn.get::<Runs>(&number)?;
    let run = run.expect("a run is kept until it is forgotten");
    forget_names(turn, number, &run)?;
    turn.delete::<Runs>(&number);
    let indexed_count = run::forget_indexes(turn, number, &run)?;
    // The record, its name and its key.
    *room = room.saturating_sub(3 + indexed_count);
    let remains = RunRemainsRecord {
        payloads_count: run.payloads_count,
        last_action_run: run.last_action_run,
    };
    sweep_remains(turn, number, remains, room)?;
    Ok(())
}

fn forget_names(turn: &mut Turn<'_, '_>, number: RunNumber, run: &RunRecord) -> Outcome<()> {
    if run.id.generated_number() != Some(number) {
        turn.delete::<RunNames>(&(run.namespace.clone(), run.id.clone()));
    }
    if let Some(key) = &run.idempotency_key {
        let workflow = pinned(turn, run.definition)?.definition.name.clone();
        turn.delete::<IdempotencyKeys>(&(run.namespace.clone(), workflow, key.clone()));
    }
    Ok(())
}

/// Sweeps the rows that are found by the run's number, as many as there is room for; what is left is
/// noted for the next sweep.
pub(super) fn sweep_remains(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    mut remains: RunRemainsRecord,
    room: &mut usize,
) -> Result<(), StoreError> {
    sweep::<History>(turn, number, room)?;
    sweep::<SignalIds>(turn, number, room)?;
    sweep::<SignalsWaiting>(turn, number, room)?;
    sweep::<StepResults>(turn, number, room)?;
    sweep::<PendingWorks>(turn, number, room)?;
    while remains.payloads_count > 0 && *room > 0 {
        remains.payloads_count -= 1;
        turn.delete::<Payloads>(&PayloadRef {
            owner: PayloadOwner::Run(number),
            position: remains.payloads_count,
        });
        *room -= 1;
    }
    while let Some(action_run) = remains.last_action_run
        && *room > 0
    {
        let record = turn.get::<ActionRuns>(&action_run)?;
        remains.last_action_run = record.as_ref().and_then(|record| record.previous);
        if let Some(record) = record {
            delete_action_run(turn, action_run, &record);
        }
        *room = room.saturating_sub(2);
    }
    let is_noted = turn.get::<RunRemains>(&number)?.is_some();
    match (*room, is_noted) {
        // With no room left there may be rows that were not looked at.
        (0, _) => turn.put::<RunRemains>(&number, remains),
        (_, true) => turn.delete::<RunRemains>(&number),
        (_, false) => {}
    }
    Ok(())
}

/// Deletes rows of a table whose keys begin with the run, as many as there is room for.
fn sweep<T: Table>(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    room: &mut usize,
) -> Result<(), StoreError> {
    for key in turn.keys::<T>(&number, *room)? {
        turn.delete::<T>(&key);
        *room -= 1;
    }
    Ok(())
}

/// Forgets an action run outside any workflow.
pub(super) fn forget_action_run(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    room: &mut usize,
) -> Result<(), StoreError> {
    let record = turn.get::<ActionRuns>(&number)?;
    let record = record.expect("an action run is kept until it is forgotten");
    delete_action_run(turn, number, &record);
    if let Some(key) = &record.idempotency_key {
        let key = (record.namespace.clone(), record.action.clone(), key.clone());
        turn.delete::<ActionRunKeys>(&key);
    }
    for payload in [Some(record.input), record.output].into_iter().flatten() {
        turn.delete::<Payloads>(&payload);
    }
    *room = room.saturating_sub(6);
    Ok(())
}

fn delete_action_run(turn: &mut Turn<'_, '_>, number: ActionRunNumber, record: &ActionRunRecord) {
    turn.delete::<ActionRuns>(&number);
    let by_action = (record.namespace.clone(), record.action.clone(), number);
    turn.delete::<ActionRunsByAction>(&by_action);
}
