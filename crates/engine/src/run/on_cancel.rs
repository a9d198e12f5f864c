//! The `onCancel` of a step: what is called after it was cancelled. The cancelled scope ends after it (W81).

use super::failure::{self, is_failure};
use super::render::{self, DataContext};
use super::timeout_timers;
use crate::definition::{CallRole, Step};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{Activation, ActivationState, EventKind, TargetResult, Work};
use crate::turn::{LoadedRun, NewVisit, Turn, TurnResult};

/// Activates the handler of a step that was cancelled, if it has one; returns the work that begins it.
pub(super) fn activate(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    cancelled: &Activation,
) -> Option<Work> {
    let step = run.definition.definition.step(cancelled.step);
    if !is_due(step, cancelled) {
        return None;
    }
    let visit = NewVisit {
        scope: cancelled.scope,
        step: cancelled.step,
        visit: cancelled.visit,
    };
    let mut active = run.activate(turn.now_ms(), visit);
    active.call = CallRole::OnCancel;
    active.ending.cancelled_with = cancelled.ending.cancelled_with;
    active.input = cancelled.input;
    let activation = active.number;
    run.put_back(active);
    Some(Work::BeginOnCancel { activation })
}

/// Whether the handler of a step is called when the step is cancelled.
pub(super) fn is_due(step: &Step, active: &Activation) -> bool {
    let has_handler = step.call(CallRole::OnCancel).is_some();
    // A step that waits for its time has not been entered yet (W74).
    let is_entered = !matches!(active.state, ActivationState::Delay { .. });
    has_handler && is_entered && !active.call.is_after_visit()
}

/// Begins a handler: its mapping is resolved, once for all attempts.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    let definition = run.definition.clone();
    let call = definition.definition.step(active.step).call(active.call);
    let mapped = match call.and_then(|call| call.input.as_ref()) {
        Some(template) => {
            let context = DataContext::of(active.scope);
            render::stored(turn, run, context, template)?
        }
        None => Ok(active.input),
    };
    let work = match mapped {
        Ok(input) => {
            active.input = input;
            timeout_timers::start_total(turn, run, &mut active);
            Work::Execute { activation }
        }
        Err(refused) => Work::FinishStep {
            activation,
            target_result: refused.ends_call(turn, run),
        },
    };
    run.put_back(active);
    queue.push(run.number, work);
    Ok(())
}

/// Notes how the last attempt at a handler has ended, and returns the work that waited for it. Its failure changes
/// nothing.
pub(super) fn conclude(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Work, StoreError> {
    if is_failure(&target_result.outcome) {
        let code = failure::cause_in(turn, target_result)?.code;
        let code = cut(&code.unwrap_or_default());
        run.note(active, EventKind::HandlerFailed { code });
    }
    let scope = active.ending.cancelled_with;
    let scope = scope.expect("a handler belongs to a cancelled step");
    Ok(Work::CancelledStepEnded { scope })
}
