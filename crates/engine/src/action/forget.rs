//! Deleting the rows of an action run.

use crate::ids::ActionRunNumber;
use crate::store::StoreError;
use crate::tables::{ActionRunOwner, ActionRuns, ActionRunsByAction, ActionRunsByRun};
use crate::turn::Turn;

/// Deletes an action run's row and its index rows. The owner deletes its payloads and its idempotency key.
pub(crate) fn forget(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Result<(), StoreError> {
    let record = turn.get::<ActionRuns>(&number)?;
    let record = record.expect("an action run is kept until it is forgotten");
    turn.delete::<ActionRuns>(&number);
    let by_action = (record.namespace.clone(), record.action.clone(), number);
    turn.delete::<ActionRunsByAction>(&by_action);
    match record.owner {
        ActionRunOwner::Step { run, .. } => turn.delete::<ActionRunsByRun>(&(run, number)),
        ActionRunOwner::Caller => {}
    }
    Ok(())
}
