//! Action runs as a turn works on them.

use crate::ids::ActionRunNumber;
use crate::run::{self, LoadedRun};
use crate::store::StoreError;
use crate::tables::{ActionRunOwner, ActionRunRecord, ActionRuns, EventKind};
use crate::turn::{Draft, Outcome, Turn};

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

/// Works on a task together with the workflow run that it belongs to, if it belongs to one.
pub(super) fn with_owner<R>(
    turn: &mut Turn<'_, '_>,
    owner: ActionRunOwner,
    work: impl FnOnce(&mut Turn<'_, '_>, Option<&mut LoadedRun>) -> Outcome<R>,
) -> Outcome<R> {
    let ActionRunOwner::Step { run, .. } = owner else {
        return work(turn, None);
    };
    let mut run = run::load(turn, run)?;
    let result = work(turn, Some(&mut run))?;
    run::put_back(turn, run);
    Ok(result)
}

impl Loaded {
    /// Adds an event to the history of the workflow run that the task belongs to, if it belongs to one.
    pub(super) fn note(
        &self,
        turn: &mut Turn<'_, '_>,
        run: Option<&mut LoadedRun>,
        kind: EventKind,
    ) -> Result<(), StoreError> {
        match (self.record.owner, run) {
            (ActionRunOwner::Step { activation, .. }, Some(run)) => {
                run.note_of(turn, activation, kind)
            }
            (ActionRunOwner::Step { .. } | ActionRunOwner::Caller, _) => Ok(()),
        }
    }

    /// Writes the record as it is now.
    pub(super) fn put(self, turn: &mut Turn<'_, '_>) {
        turn.put::<ActionRuns>(&self.number, self.record);
    }

    /// Whether it, or the run that it belongs to, was set aside (design rule 10).
    pub(super) fn is_quarantined(&self, turn: &Turn<'_, '_>) -> bool {
        turn.is_task_quarantined(self.number, &self.record)
    }
}
