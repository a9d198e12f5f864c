//! The fallback of a step: what it invokes when its target has failed for good (W72).

use super::failure::{self, error_field, is_failure};
use super::render::{self, DataContext, FailedAttempt};
use super::step_deadline;
use crate::definition::{CallKind, Definition};
use crate::limits::NAME_BYTES_MAX;
use crate::run::work_queue::WorkQueue;
use crate::tables::{Activation, ActivationState, EventKind, TargetResult, Work};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// A step whose target has failed for good.
pub(super) struct Failed {
    pub(super) active: Draft<Activation>,
    pub(super) target_result: TargetResult,
}

/// Whether a step whose call ended with `target_result` invokes its fallback.
pub(super) fn is_due(
    definition: &Definition,
    active: &Activation,
    target_result: &TargetResult,
) -> bool {
    let has_fallback = match active.call {
        CallKind::Target => definition
            .step(active.step)
            .call(CallKind::Fallback)
            .is_some(),
        CallKind::Fallback => false,
    };
    has_fallback && is_failure(&target_result.outcome)
}

/// Invokes the step's fallback.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    failed: Failed,
) -> TurnResult<()> {
    let Failed {
        mut active,
        mut target_result,
    } = failed;
    let definition = run.definition.clone();
    let call = definition
        .definition
        .step(active.step)
        .call(CallKind::Fallback);
    let call = call.expect("the step has a fallback");
    failure::complete_output(turn, run, &mut target_result);
    let code = code(turn, &target_result)?;
    run.note(&active, EventKind::FallbackStarted { code });
    active.call = CallKind::Fallback;
    active.earlier_attempts_count += active.attempt;
    active.attempt = 1;
    active.polls_count = 0;
    active.call_started_at_ms = turn.now_ms();
    active.state = ActivationState::Executing;
    step_deadline::begin_total(turn, run, &mut active);
    if let Some(template) = &call.input {
        let failed = FailedAttempt {
            attempt: active.earlier_attempts_count,
            output: target_result.output,
        };
        let context = DataContext::of(active.scope).with_failed(failed);
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

/// The code of a failure, cut to what an event may hold.
fn code(turn: &mut Turn<'_, '_>, target_result: &TargetResult) -> TurnResult<String> {
    let code = match target_result.output {
        Some(output) => error_field(&turn.payload(output)?, "code"),
        None => None,
    };
    let mut code = code.unwrap_or_else(|| target_result.outcome.to_string());
    code.truncate(code.floor_char_boundary(NAME_BYTES_MAX));
    Ok(code)
}
