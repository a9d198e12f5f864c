//! Abandoning a plan's execution when its run ends first (W18).

use super::execution::Execution;
use super::executor_stats;
use crate::run::wake_timer;
use crate::tables::{Activation, PlanState, PlanWait};
use crate::task;
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};
use std::sync::Arc;

/// Cancels what the execution waits for, and frees its probe.
pub(crate) fn abandon(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    state: &PlanState,
) -> TurnResult<()> {
    match state.wait {
        PlanWait::Executing => {}
        PlanWait::Action(number) => task::cancel(turn, number)?,
        PlanWait::Retry { due_ms } => {
            turn.clear_timer(wake_timer(run.at(active), due_ms));
        }
    }
    if let Some(index) = state.executor() {
        let execution = Execution::new(run, Draft::of(Arc::new(active.clone())));
        executor_stats::free_probe(turn, &execution, index)?;
    }
    Ok(())
}
