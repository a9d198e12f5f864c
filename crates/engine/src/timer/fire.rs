//! Firing timers (design rule 6).

use super::set::effective_due_ms;
use crate::ids::{ActionRunNumber, GroupNumber, PlanNumber, RunNumber, StreamNumber, WorkerNumber};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{TimerKey, TimerKind, Timers};
use crate::turn::{Turn, TurnResult};
use crate::{group, plan, run, stream, task, worker};
use serde::{Deserialize, Serialize};

/// Fires a due timer. The command names the timer, so a repeated command has no effect: exactly once without a stored
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireTimer {
    /// The timer.
    pub timer: TimerKey,
}

impl FireTimer {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let timer = self.timer;
        if turn.get::<Timers>(&timer)?.is_none() {
            return Err(Rejection::TimerStale.into());
        }
        let grace_until_ms = turn.cluster().grace_until_ms;
        if effective_due_ms(&timer, grace_until_ms) > turn.now_ms() {
            return Err(Rejection::TimerNotDue.into());
        }
        turn.clear_timer(timer);
        match timer.kind {
            TimerKind::StepWake => {
                run::wake_step(turn, timer)?;
            }
            TimerKind::RunTimeout => run::time_out_run(turn, timer)?,
            TimerKind::RunStart => run::begin_run(turn, timer)?,
            TimerKind::StepTotal | TimerKind::StepAttempt => run::time_out_step(turn, timer)?,
            TimerKind::StepDeadline => {
                run::expire_wait(turn, timer)?;
            }
            TimerKind::TaskReady => {
                task::wake(turn, ActionRunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::LeaseExpiry => {
                worker::expire_leases(turn, WorkerNumber(timer.subject))?;
            }
            TimerKind::WorkerSilence => {
                worker::mark_unhealthy(turn, WorkerNumber(timer.subject))?;
            }
            TimerKind::ReportExpiry => {
                task::expire_report(turn, ActionRunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::CacheExpiry => {
                plan::expire_cache(turn, PlanNumber(timer.subject))?;
            }
            TimerKind::StreamSweep => stream::fire_timer(turn, StreamNumber(timer.subject))?,
            TimerKind::GroupDue => group::fire_timer(turn, GroupNumber(timer.subject))?,
            TimerKind::Continuation => run::fire_continuation(turn, RunNumber(timer.subject))?,
            TimerKind::WaitExpiry => {
                task::expire_wait(turn, ActionRunNumber(timer.subject), timer.detail)?;
            }
            TimerKind::WorkerGone => {
                worker::free_leases_left(turn, WorkerNumber(timer.subject))?;
            }
        }
        Ok(Done {})
    }
}
