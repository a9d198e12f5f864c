//! Deleting the rows of an action run.

use crate::ids::ActionRunNumber;
use crate::store::StoreError;
use crate::tables::{ActionRunBlock, ActionRuns, ActionRunsByAction};
use crate::turn::Turn;

/// Deletes an action run's row and its place in the index of its action. The owner deletes its payloads, its idempotency
/// key and its place in the index of its run.
pub(crate) fn forget(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Result<(), StoreError> {
    let record = turn.get::<ActionRuns>(&number)?;
    let record = record.expect("an action run is kept until it is forgotten");
    turn.delete::<ActionRuns>(&number);
    let by_action = (
        record.namespace.clone(),
        record.action.clone(),
        ActionRunBlock::of(number),
    );
    turn.remove_member::<ActionRunsByAction>(&by_action, number)
}
