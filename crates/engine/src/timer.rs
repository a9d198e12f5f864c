//! Timers fire (design rule 6).

use crate::ids::{ActionRunNumber, PlanNumber, RunNumber, WorkerNumber};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::tables::{TimerKey, TimerKind, Timers};
use crate::turn::{Outcome, Turn};
use crate::{plan, run, task, worker};
use serde::{Deserialize, Serialize};

/// Fires one due timer. It names the timer, so a second firing finds nothing: exactly once without
/// a key to remember.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireTimer {
    /// The timer.
    pub timer: TimerKey,
}

impl FireTimer {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> Outcome<Reply> {
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
        }
        Ok(Reply::Done)
    }
}

/// When the timer may fire, a new leader's grace included (A4).
pub(crate) fn effective_due_ms(timer: &TimerKey, grace_until_ms: u64) -> u64 {
    if timer.kind.is_graced() {
        timer.due_ms.max(grace_until_ms)
    } else {
        timer.due_ms
    }
}
