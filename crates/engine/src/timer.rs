//! Timers fire (design rule 6).

use crate::ids::{
    ActionRunNumber, GroupNumber, Namespace, PlanNumber, RunNumber, StreamNumber, WorkerNumber,
};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::store::StoreError;
use crate::tables::{TimerKey, TimerKind, Timers};
use crate::turn::{Outcome, Turn};
use crate::{group, plan, run, stream, task, worker};
use serde::{Deserialize, Serialize};

/// Fires one due timer. It names the timer, so a second firing finds nothing: exactly once without
/// a key to remember.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireTimer {
    /// The timer.
    pub timer: TimerKey,
}

impl FireTimer {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        let timer = self.timer;
        if turn.get::<Timers>(&timer)?.is_none() {
            return Err(Rejection::TimerGone.into());
        }
        let grace_until_ms = turn.cluster()?.grace_until_ms;
        if effective_due_ms(&timer, grace_until_ms) > turn.now_ms() {
            return Err(Rejection::TimerNotDue.into());
        }
        turn.clear_timer(timer);
        match timer.kind {
            TimerKind::StepWake => {
                run::wake_step(turn, RunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::SignalTimeout => {
                run::expire_signal(turn, RunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::TaskReady => {
                task::wake(turn, ActionRunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::LeaseExpiry => {
                task::expire(turn, ActionRunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::WorkerSilence => {
                worker::fall_silent(turn, WorkerNumber(timer.subject))?;
            }
            TimerKind::ReportExpiry => {
                task::expire_report(turn, ActionRunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::CacheExpiry => {
                plan::expire_cache(turn, PlanNumber(timer.subject))?;
            }
            TimerKind::StreamSweep => stream::fall_due(turn, StreamNumber(timer.subject))?,
            TimerKind::GroupDue => group::fall_due(turn, GroupNumber(timer.subject))?,
            TimerKind::Continuation => run::fire_continuation(turn, RunNumber(timer.subject))?,
        }
        Ok(Done {})
    }
}

/// Sets the one timer of a subject that looks for itself what has fallen due, unless it is set for an
/// earlier time. It is brought forward but never put off: that would cost two writes a change.
pub(crate) fn bring_forward(
    turn: &mut Turn<'_, '_>,
    set_for_ms: &mut Option<u64>,
    timer: TimerKey,
) {
    match *set_for_ms {
        Some(due_ms) if due_ms <= timer.due_ms => return,
        Some(due_ms) => turn.clear_timer(TimerKey { due_ms, ..timer }),
        None => {}
    }
    *set_for_ms = Some(timer.due_ms);
    turn.set_timer(timer);
}

/// Sets a timer again that may have fired in vain while its subject was set aside (design rule 10), for now
/// if its time has passed. Returns when it is due, in milliseconds.
pub(crate) fn restore(turn: &mut Turn<'_, '_>, timer: TimerKey) -> Result<u64, StoreError> {
    if turn.get::<Timers>(&timer)?.is_some() {
        return Ok(timer.due_ms);
    }
    let due_ms = timer.due_ms.max(turn.now_ms());
    turn.set_timer(TimerKey { due_ms, ..timer });
    Ok(due_ms)
}

/// When the timer may fire, a new leader's grace included (A4).
pub(crate) fn effective_due_ms(timer: &TimerKey, grace_until_ms: u64) -> u64 {
    if timer.kind.is_graced() {
        timer.due_ms.max(grace_until_ms)
    } else {
        timer.due_ms
    }
}
