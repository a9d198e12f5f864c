//! The run of an execution ends before the plan does (W18).

use super::execution::Execution;
use super::tally;
use crate::run::{ActivationRef, wake_timer};
use crate::tables::{PlanState, PlanWait};
use crate::task;
use crate::turn::{Outcome, Turn};

/// Takes back what the execution waits for, and frees its probe.
pub(crate) fn abandon(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    state: &PlanState,
) -> Outcome<()> {
    match state.wait {
        PlanWait::Executing => {}
        PlanWait::Action(number) => task::cancel(turn, number)?,
        PlanWait::Retry { due_ms } => {
            turn.clear_timer(wake_timer(at, due_ms));
        }
    }
    if let (Some(execution), Some(index)) = (Execution::load(turn, at)?, state.executor()) {
        tally::free_probe(turn, &execution, index)?;
    }
    Ok(())
}
