//! What was set aside is taken up again (design rule 10).
//!
//! While something is set aside it stands still: its timers end in nothing when they fire, and nobody
//! tells it anything. To take it up is to give back every obligation that it may have lost, in one turn
//! and as if its row had never been; so nothing is lost and nothing done twice:
//!
//! - run — each active step gets back what it waits for: the timer of a wait, retry or poll, at once where
//!   its time has passed; its task, as below; the hint that its child's input is to be checked. A child or
//!   an action run that ended meanwhile is told now. A child whose parent has ended meanwhile is cancelled,
//!   as it would have been. A breaker's probe that was given to another attempt stays with that one.
//! - action run — the timer of its task's lease or report; a task that nobody holds goes back to the queue,
//!   unless it waits there or for a delay.
//! - worker — the timer of its silence.
//! - schedule — fires again from now on; firings that it missed are made up within its catch-up window.
//! - trigger — fires again, from the record where it stood still.
//! - stream, group — looks at once what has fallen due; what panicked is done by the timer's own turn.
//! - plan — the timer of what it has cached.
//!
//! What has ended expires again. What is gone loses its row and nothing else. A panic in this turn drops it
//! like any other, and the subject stays set aside; one in a later turn sets it aside again.

use crate::ids::{
    ActionRunNumber, GroupNumber, Namespace, PlanNumber, RunNumber, StreamNumber, WorkerNumber,
};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{DefinitionNumber, Quarantine, Quarantined, QuarantinedKind};
use crate::turn::{Outcome, Turn};
use crate::{group, plan, run, schedule, stream, task, trigger, worker};
use serde::{Deserialize, Serialize};

/// Takes up what was set aside after a bug. Names the very thing, not what people call it: another may
/// have its name by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryQuarantined {
    /// What it is.
    pub kind: QuarantinedKind,
    /// Its number among those of the kind.
    pub number: u64,
}

impl RetryQuarantined {
    pub(crate) fn subject(&self) -> Quarantined {
        (self.kind, self.number)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        let Self { kind, number } = *self;
        if turn.get::<Quarantine>(&self.subject())?.is_none() {
            let name = number.to_string();
            return Err(Rejection::QuarantineNotFound { kind, name }.into());
        }
        turn.delete::<Quarantine>(&self.subject());
        turn.take_up(self.subject());
        match kind {
            QuarantinedKind::Run => run::take_up(turn, RunNumber(number))?,
            QuarantinedKind::ActionRun => task::take_up_own(turn, ActionRunNumber(number))?,
            QuarantinedKind::Worker => worker::take_up(turn, WorkerNumber(number))?,
            QuarantinedKind::Schedule => schedule::take_up(turn, DefinitionNumber(number))?,
            QuarantinedKind::Stream => stream::take_up(turn, StreamNumber(number))?,
            QuarantinedKind::Group => group::take_up(turn, GroupNumber(number))?,
            QuarantinedKind::Trigger => trigger::take_up(turn, DefinitionNumber(number))?,
            QuarantinedKind::Plan => plan::take_up(turn, PlanNumber(number))?,
        }
        Ok(Done {})
    }
}
