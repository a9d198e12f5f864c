//! The output of a run step: extracted from the result of its target, and checked against a schema (W67).

use super::failure::failed;
use super::finish_step::{Attempt, conclude};
use super::render::{self, DataContext, Mapped};
use super::{schema_check, state};
use crate::definition::{CallRole, OutputRules};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    ActivationState, Awaited, PayloadRef, SchemaVerdict, TargetResult, UncheckedOutput,
};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Takes the step's output from the result of an attempt, and has it checked, before the attempt concludes.
pub(super) fn conclude_with_output(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut attempt: Attempt,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let step = definition.definition.step(attempt.active.step);
    // The output of a fallback is the step's (W72).
    let is_extracted =
        attempt.active.call == CallRole::Target && state::writes(&attempt.target_result);
    let Some(rules) = step.output().filter(|_| is_extracted) else {
        return conclude(turn, queue, run, attempt);
    };
    let result = attempt.target_result.output;
    let output = match extract(turn, run, &attempt, rules)? {
        Ok(output) => output,
        Err(failed) => {
            let state_patch = attempt.target_result.state_patch;
            attempt.target_result = TargetResult {
                state_patch,
                ..failed
            };
            return conclude(turn, queue, run, attempt);
        }
    };
    if rules.schema.is_none() {
        attempt.output = Some(output);
        return conclude(turn, queue, run, attempt);
    }
    attempt.active.state = ActivationState::OutputCheck(Box::new(UncheckedOutput {
        outcome: attempt.target_result.outcome,
        result,
        output,
        not_before_ms: attempt.target_result.not_before_ms,
        state_patch: attempt.target_result.state_patch,
    }));
    schema_check::request(turn, run.at(&attempt.active));
    run.put_back(attempt.active);
    Ok(())
}

/// What the step's mapping makes of the result; the error is what the step ends with otherwise.
fn extract(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    attempt: &Attempt,
    rules: &OutputRules,
) -> Result<Result<Option<PayloadRef>, TargetResult>, StoreError> {
    let result = attempt.target_result.output;
    let Some(template) = &rules.extract else {
        return Ok(Ok(result));
    };
    let context = DataContext::of(attempt.active.scope).with_result(result);
    Ok(match render::stored(turn, run, context, template)? {
        Ok(output) => Ok(Some(output)),
        Err(refused) => {
            let message = cut(&format!("output: {}", refused.message(Mapped::Output)));
            Err(failed(turn, run, refused.code(Mapped::Output), message))
        }
    })
}

/// An output whose check has a result.
pub(super) struct CheckedOutput {
    pub(super) activation: u64,
    pub(super) output: UncheckedOutput,
    pub(super) verdict: SchemaVerdict,
}

/// Concludes the attempt of a step whose output was checked. If it violates the schema, the step has failed, and may be
/// tried again.
pub(super) fn decide(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    checked: CheckedOutput,
) -> TurnResult<()> {
    let Some(active) = run.take(turn, checked.activation)? else {
        return Ok(());
    };
    let UncheckedOutput {
        outcome,
        result,
        output,
        not_before_ms,
        state_patch,
    } = checked.output;
    let (target_result, output) = match checked.verdict {
        SchemaVerdict::Valid => {
            let target_result = TargetResult {
                from: Awaited::Verdict,
                output: result,
                not_before_ms,
                state_patch,
                ..TargetResult::of_engine(outcome)
            };
            (target_result, Some(output))
        }
        SchemaVerdict::Invalid { detail } => {
            let message = violation(&detail);
            let target_result = TargetResult {
                is_retryable: true,
                not_before_ms,
                state_patch,
                ..failed(turn, run, OUTPUT_INVALID, message)
            };
            (target_result, None)
        }
    };
    let attempt = Attempt {
        active,
        target_result,
        output,
    };
    conclude(turn, queue, run, attempt)
}

/// Describes that an output violates its schema.
pub(super) fn violation(detail: &str) -> String {
    cut(&format!(
        "expected the output to satisfy its schema, but {detail}"
    ))
}

/// The code of an output that violates its schema.
pub(super) const OUTPUT_INVALID: &str = "output_invalid";
