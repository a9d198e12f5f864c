//! Action runs as a turn works on them.

use crate::ids::ActionRunNumber;
use crate::store::StoreError;
use crate::tables::{ActionRunRecord, ActionRuns};
use crate::turn::{Draft, Turn};

/// An action run that a turn has loaded: its record is changed here, then put back.
pub(super) struct Loaded {
    pub(super) number: ActionRunNumber,
    pub(super) record: Draft<ActionRunRecord>,
}

/// The action run `number`.
///
/// # Panics
/// When it is not there: only action runs that exist are referred to.
pub(super) fn load(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Result<Loaded, StoreError> {
    let record = turn.draft::<ActionRuns>(&number)?;
    let record = record.expect("an action run is kept as long as its run");
    Ok(Loaded { number, record })
}

impl Loaded {
    /// Writes the record as it is now.
    pub(super) fn put(self, turn: &mut Turn<'_, '_>) {
        turn.put::<ActionRuns>(&self.number, self.record);
    }

    /// Whether it, or the run that it belongs to, was set aside (design rule 10).
    pub(super) fn is_quarantined(&self, turn: &Turn<'_, '_>) -> bool {
        turn.is_task_quarantined(self.number, &self.record)
    }
}
