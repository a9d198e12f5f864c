//! Action runs while a turn works on them.

use crate::effect::Effect;
use crate::ids::ActionRunNumber;
use crate::limits::RETENTION_MS_DEFAULT;
use crate::quota::QuotaDimension;
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, ActionRuns, EventKind, Expiration, Expirations, Expiring,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// An action run loaded or created by a turn: its record is changed here, then put.
pub(crate) struct LoadedTask {
    pub(crate) number: ActionRunNumber,
    pub(crate) record: Draft<ActionRunRecord>,
}

/// Loads the action run `number`.
///
/// # Panics
/// If it does not exist: references to action runs are never dangling.
pub(super) fn load(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
) -> Result<LoadedTask, StoreError> {
    let record = turn.draft::<ActionRuns>(&number)?;
    let record = record.expect("an action run is kept as long as its run");
    Ok(LoadedTask { number, record })
}

/// Works on a task together with its workflow run, if it has one.
pub(super) fn with_owner<R>(
    turn: &mut Turn<'_, '_>,
    owner: ActionRunOwner,
    work: impl FnOnce(&mut Turn<'_, '_>, Option<&mut LoadedRun>) -> TurnResult<R>,
) -> TurnResult<R> {
    let ActionRunOwner::Step { run, .. } = owner else {
        return work(turn, None);
    };
    let mut run = turn.load_run(run)?;
    let result = work(turn, Some(&mut run))?;
    turn.put_back_run(run);
    Ok(result)
}

impl LoadedTask {
    /// Adds an event to the history of the task's workflow run, if it has one.
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

    /// Writes the current record.
    pub(crate) fn put(self, turn: &mut Turn<'_, '_>) {
        turn.put::<ActionRuns>(&self.number, self.record);
    }

    /// Whether the action run, or the run that it belongs to, is quarantined (design rule 10).
    pub(super) fn is_quarantined(&self, turn: &Turn<'_, '_>) -> bool {
        turn.is_task_quarantined(self.number, &self.record)
    }
}

/// A stand-alone action run that has ended is retained, so that callers can read how it ended.
pub(super) fn expire_later(turn: &mut Turn<'_, '_>, task: &LoadedTask) {
    turn.note_use(&task.record.namespace, QuotaDimension::OpenActionRuns, -1);
    turn.effect(Effect::ActionRunEnded {
        action_run: task.number,
    });
    let expiration = Expiration {
        due_ms: turn.now_ms().saturating_add(RETENTION_MS_DEFAULT),
        subject: Expiring::ActionRun(task.number),
    };
    turn.put::<Expirations>(&expiration, ());
    turn.effect(Effect::ArmRetention {
        due_ms: expiration.due_ms,
    });
}
