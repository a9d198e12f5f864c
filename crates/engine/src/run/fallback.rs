//! The fallback of a step: what it invokes when its target has failed for good (W72).

use super::failure::{self, error_field, is_failure};
use super::render::{self, DataContext, LastAttempt};
use super::timeout_timers;
use crate::definition::{CallRole, Definition};
use crate::limits::NAME_BYTES_MAX;
use crate::run::work_queue::WorkQueue;
use crate::tables::{Activation, ActivationState, EventKind, PayloadRef, TargetResult, Work};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// A step whose target has failed for good.
pub(super) struct FailedCall {
    pub(super) active: Draft<Activation>,
    pub(super) target_result: TargetResult,
}

/// Whether a step whose call ended with `target_result` invokes its fallback.
pub(super) fn applies(
    definition: &Definition,
    active: &Activation,
    target_result: &TargetResult,
) -> bool {
    let has_fallback = match active.call {
        CallRole::Target => definition
            .step(active.step)
            .call(CallRole::Fallback)
            .is_some(),
        CallRole::Fallback
        | CallRole::Compensation
        | CallRole::FallbackCompensation
        | CallRole::OnCancel => false,
    };
    has_fallback && is_failure(&target_result.outcome)
}

/// Invokes the step's fallback.
pub(super) fn invoke(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    failed: FailedCall,
) -> TurnResult<()> {
    let FailedCall {
        mut active,
        target_result,
    } = failed;
    let definition = run.definition.clone();
    let call = definition
        .definition
        .step(active.step)
        .call(CallRole::Fallback);
    let call = call.expect("the step has a fallback");
    let error = failure::error_output(turn, run, &target_result)?;
    let code = code(turn, error)?;
    run.note(&active, EventKind::FallbackStarted { code });
    active.call = CallRole::Fallback;
    active.earlier_attempts_count = active.attempts_count();
    active.attempt = 1;
    active.polls_count = 0;
    active.call_started_at_ms = turn.now_ms();
    active.state = ActivationState::Executing;
    timeout_timers::start_total(turn, run, &mut active);
    if let Some(template) = &call.input {
        let failed = LastAttempt {
            attempt: active.earlier_attempts_count,
            output: Some(error),
        };
        let context = DataContext::of(active.scope).with_last_attempt(failed);
        match render::stored(turn, run, context, template)? {
            Ok(input) => active.input = input,
            Err(refused) => {
                let work = Work::FinishStep {
                    activation: active.number,
                    target_result: refused.ends_call(turn, run),
                };
                run.put_back(active);
                queue.push(run.number, work);
                return Ok(());
            }
        }
    }
    let activation = active.number;
    run.put_back(active);
    queue.push(run.number, Work::Execute { activation });
    Ok(())
}

/// The code of an error, cut to what an event may hold.
fn code(turn: &mut Turn<'_, '_>, error: PayloadRef) -> TurnResult<String> {
    let code = error_field(&turn.payload(error)?, "code");
    let mut code = code.unwrap_or_default();
    code.truncate(code.floor_char_boundary(NAME_BYTES_MAX));
    Ok(code)
}
