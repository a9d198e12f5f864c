//! Abandoning a plan's execution when its run ends first (W18).

use super::execution::Execution;
use super::executor_stats;
use crate::run::wake_timer;
use crate::tables::{Activation, PlanWait};
use crate::task::{self, CancelMode};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};
use std::sync::Arc;

/// Cancels what the execution waits for, and frees its probe; returns whether a result is still to come.
pub(crate) fn abandon(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    mode: CancelMode,
) -> TurnResult<bool> {
    let state = active.state.plan().expect("the step executes a plan");
    let is_result_awaited = match state.wait {
        PlanWait::Executing => false,
        PlanWait::Action(number) => task::cancel(turn, number, mode)?,
        PlanWait::Retry { due_ms } => {
            turn.clear_timer(wake_timer(run.at(active), due_ms));
            false
        }
    };
    if let Some(index) = state.executor() {
        let execution = Execution::new(run, Draft::of(Arc::new(active.clone())));
        executor_stats::free_probe(turn, &execution, index)?;
    }
    Ok(is_result_awaited)
}
