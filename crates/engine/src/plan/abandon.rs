//! The run of an execution ends before the plan does (W18).

use super::execution::Execution;
use super::tally;
use crate::run::{LoadedRun, wake_timer};
use crate::tables::{Activation, PlanState, PlanWait};
use crate::task;
use crate::turn::{Draft, Outcome, Turn};
use std::sync::Arc;

/// Takes back what the execution waits for, and frees its probe.
pub(crate) fn abandon(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    (active, state): (&Activation, &PlanState),
) -> Outcome<()> {
    match state.wait {
        PlanWait::Executing => {}
        PlanWait::Action(number) => task::cancel(turn, number)?,
        PlanWait::Retry { due_ms } => {
            turn.clear_timer(wake_timer(run.at(active), due_ms));
        }
    }
    if let Some(index) = state.executor() {
        let execution = Execution::new(run, Draft::of(Arc::new(active.clone())));
        tally::free_probe(turn, &execution, index)?;
    }
    Ok(())
}
