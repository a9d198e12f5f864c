//! Steps that are entered later, because the action before them asked for a delay (W74).

use super::enter::{self, Entry};
use super::step_timer::wake_timer;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{ActivationState, EventKind};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Sets the timer that enters the step.
pub(super) fn schedule(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    entry: Entry,
    due_ms: u64,
) -> Result<(), StoreError> {
    let visit = enter::next_visit(turn, run, entry)?;
    let mut active = run.activate(turn.now_ms(), visit);
    run.note(&active, EventKind::StepDelayed { due_ms });
    active.state = ActivationState::Delay { due_ms };
    turn.set_timer(wake_timer(run.at(&active), due_ms));
    run.put_back(active);
    Ok(())
}

/// Enters a step whose time has come.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    let is_delayed = matches!(active.state, ActivationState::Delay { .. });
    let entry = Entry {
        scope: active.scope,
        step: active.step,
    };
    if !is_delayed || !enter::is_allowed(turn, queue, run, entry)? {
        run.put_back(active);
        return Ok(());
    }
    let now_ms = turn.now_ms();
    active.started_at_ms = now_ms;
    active.call_started_at_ms = now_ms;
    active.state = ActivationState::Executing;
    enter::begin(turn, queue, run, active)
}
