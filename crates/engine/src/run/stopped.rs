//! The end of a stopped step: what it waited for has ended (W54).

use super::finish_step::{Attempt, StepEnd, end_call, finish_step};
use super::{cancel_scope, compensation};
use crate::run::work_queue::WorkQueue;
use crate::tables::ActivationState;
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Finishes an active step, or ends it if it was stopped. The result of what a stopped step waited for changes nothing
/// about how the step ends, but a success can be undone.
pub(super) fn finish(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    end: StepEnd,
) -> TurnResult<()> {
    let active = run.activation(turn, end.activation)?;
    let is_stopped = active.is_some_and(|active| {
        active.is_stopping() && active.state.awaits() == end.target_result.from
    });
    if !is_stopped {
        return finish_step(turn, queue, run, end);
    }
    let active = run.take(turn, end.activation)?;
    let mut active = active.expect("the step is active");
    if active.state.opens_scopes() {
        // Its blocks had ended before it was cancelled. It ends with the cancelled scope.
        run.put_back(active);
        return Ok(());
    }
    compensation::enter_late(turn, run, &mut active, &end.target_result)?;
    match active.ending.timeout_result.take() {
        None => cancel_scope::end_step(turn, queue, run, active),
        Some(target_result) => {
            // A resume continues the child.
            if !matches!(active.state, ActivationState::Child(_)) {
                active.state = ActivationState::Executing;
            }
            let attempt = Attempt {
                active,
                target_result,
                output: None,
            };
            end_call(turn, queue, run, attempt)
        }
    }
}
