//! Releasing quarantined items (design rule 10).
//!
//! A quarantined item stands still: its timers fire without effect, and no results reach it. Releasing it restores, in
//! one turn, every obligation that it may have lost, as if it had never been quarantined. Nothing is lost and nothing
//! is done twice:
//!
//! - run — each active step gets back what it waits for: the timer of a wait, retry or poll, due immediately if its
//!   time has passed; its task, as below; the hint that its child's input must be validated. Results of children and
//!   action runs that ended meanwhile are delivered now. A child whose parent has ended meanwhile is cancelled, as it
//!   would have been. A breaker's probe that was given to another attempt stays with that one.
//! - action run — the end of its task's lease, if that was suspended, or the timer of its report; a task without a lease
//!   returns to the queue, unless it waits there already or is delayed.
//! - worker — its heartbeat timer and the timer of its leases, or the timer that frees the leases of one that is gone.
//! - schedule — fires again from now on; missed firings are made up within its catch-up window.
//! - trigger — fires again, from the record where it stopped.
//! - stream, group — immediately looks for what is due; the timer's own turn repeats the work that panicked.
//! - plan — the timer of its cached results.
//!
//! An ended item starts its retention again. An item that no longer exists only loses its quarantine row. A panic in
//! this turn rolls it back like any other, and the item stays quarantined; a panic in a later turn quarantines it
//! again.

use crate::ids::{ActionRunNumber, GroupNumber, PlanNumber, RunNumber, StreamNumber, WorkerNumber};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{DefinitionNumber, Quarantine, QuarantinedItem, QuarantinedKind};
use crate::turn::{Turn, TurnResult};
use crate::{group, plan, run, schedule, stream, task, trigger, worker};
use serde::{Deserialize, Serialize};

/// Releases a quarantined item. The command names the item by its number, because another one may have its published
/// name by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseQuarantined {
    /// The kind of item.
    pub kind: QuarantinedKind,
    /// Its number among those of the kind.
    pub number: u64,
}

impl ReleaseQuarantined {
    pub(crate) fn subject(&self) -> QuarantinedItem {
        (self.kind, self.number)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let Self { kind, number } = *self;
        if turn.get::<Quarantine>(&self.subject())?.is_none() {
            let name = number.to_string();
            return Err(Rejection::QuarantineNotFound { kind, name }.into());
        }
        turn.release_quarantined(self.subject());
        match kind {
            QuarantinedKind::Run => run::release_from_quarantine(turn, RunNumber(number))?,
            QuarantinedKind::ActionRun => task::release_stand_alone(turn, ActionRunNumber(number))?,
            QuarantinedKind::Worker => worker::release_from_quarantine(turn, WorkerNumber(number))?,
            QuarantinedKind::Schedule => {
                schedule::release_from_quarantine(turn, DefinitionNumber(number))?
            }
            QuarantinedKind::Stream => stream::release_from_quarantine(turn, StreamNumber(number))?,
            QuarantinedKind::Group => group::release_from_quarantine(turn, GroupNumber(number))?,
            QuarantinedKind::Trigger => {
                trigger::release_from_quarantine(turn, DefinitionNumber(number))?
            }
            QuarantinedKind::Plan => plan::release_from_quarantine(turn, PlanNumber(number))?,
        }
        Ok(Done {})
    }
}
