//! Deleting the rows of an action run.

use crate::ids::ActionRunNumber;
use crate::store::StoreError;
use crate::tables::{ActionRunBlock, ActionRunRecord, ActionRuns, ActionRunsByAction};
use crate::turn::Turn;

/// Deletes an action run's row and its place in the index of its action. The owner deletes its payloads, its idempotency
/// key and its place in the index of its run.
pub(crate) fn forget(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
) -> Result<(), StoreError> {
    turn.delete::<ActionRuns>(&number);
    let by_action = (
        record.namespace.clone(),
        record.action.clone(),
        ActionRunBlock::of(number),
    );
    turn.remove_member::<ActionRunsByAction>(&by_action, number)
}
