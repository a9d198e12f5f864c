//! The result of a step that has executed a block for each element of an array (W57).

use super::outcome::name;
use super::state::{self, Writers};
use crate::definition::ForEachStep;
use crate::ids::ScopeNumber;
use crate::json::{Json, quote};
use crate::limits::{FAILED_ITEMS_SHOWN_MAX, PAYLOAD_BYTES_MAX};
use crate::message::cut;
use crate::tables::{FailureCause, IterationResults, Iterations, StepTimeout, TargetResult};
use crate::turn::{LoadedRun, Row, Turn, TurnResult};

/// The result of a step without items.
pub(super) fn of_empty(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    step: &ForEachStep,
) -> TargetResult {
    let output = match step.collects_outputs {
        true => "[]".to_owned(),
        false => counts(0, 0, 0),
    };
    success(turn, run, output)
}

/// A step whose iterations are over.
pub(super) struct EndedLoop<'a> {
    pub(super) activation: u64,
    /// The scope of the step.
    pub(super) scope: ScopeNumber,
    pub(super) step: &'a ForEachStep,
    pub(super) state: &'a Iterations,
}

/// The result of a step whose iterations are over. Their writes go to the scope of the step.
pub(super) fn of(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    ended: &EndedLoop<'_>,
) -> TurnResult<TargetResult> {
    let &EndedLoop {
        activation,
        scope,
        step,
        state,
    } = ended;
    let results = turn.list::<IterationResults>(&(run.number, activation), usize::MAX)?;
    let written = results.iter().filter(|(_, result)| result.has_written);
    let writers = Writers {
        into: scope,
        branches: written
            .map(|((_, _, index), _)| state.scope(*index))
            .collect(),
        merge: &step.merge,
    };
    match state::join(turn, run, &writers)? {
        Ok(joined) => {
            let active = run.activation(turn, activation)?;
            let active = active.expect("the step was put back").clone();
            state::note_joined(turn, run, &active, joined);
        }
        Err(not_written) => return Ok(not_written.ends_step(turn, run)),
    }
    if state.is_timed_out {
        let limit_ms = step.timeout_ms.unwrap_or_default();
        let message = StepTimeout::Total.message(limit_ms);
        return Ok(timed_out(
            turn,
            run,
            message,
            shown_outputs(state, &results),
        ));
    }
    if state.failed_count > step.tolerate.of(state.total_count) {
        return Ok(items_failed(turn, run, state, &results));
    }
    if !state.collects_outputs {
        let output = counts(state.total_count, state.good_count, state.failed_count);
        return Ok(success(turn, run, output));
    }
    Ok(match outputs(state, &results) {
        Some(output) => success(turn, run, output),
        None => too_large(turn, run, state),
    })
}

fn success(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, output: String) -> TargetResult {
    TargetResult {
        output: Some(run.store_payload(turn, Json::from_checked(output))),
        ..TargetResult::of_engine(name::of(name::SUCCESS))
    }
}

fn counts(total: u32, succeeded: u32, failed: u32) -> String {
    format!("{{\"total\":{total},\"succeeded\":{succeeded},\"failed\":{failed}}}")
}

/// The outputs in the order of the items: the error of one that failed, null for one that never ran or was cancelled.
/// `None` if they are too large for a payload.
fn outputs(state: &Iterations, results: &[Row<IterationResults>]) -> Option<String> {
    if state.is_too_large {
        return None;
    }
    let mut results = results.iter().peekable();
    let mut text = String::from("[");
    for index in 0..state.total_count {
        if index > 0 {
            text.push(',');
        }
        let own = results.next_if(|((_, _, position), _)| *position == index);
        match own.map(|(_, result)| (&result.output, &result.error)) {
            Some((Some(output), _)) => text.push_str(output.as_str()),
            Some((None, Some(error))) => {
                text.push_str(Json::error(&error.code, &error.message).as_str());
            }
            Some((None, None)) | None => text.push_str("null"),
        }
    }
    text.push(']');
    (text.len() <= PAYLOAD_BYTES_MAX).then_some(text)
}

/// The result of a step whose outputs together are too large.
fn too_large(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, state: &Iterations) -> TargetResult {
    let (total, good) = (state.total_count, state.good_count);
    let message = format!(
        "expected the outputs of the items to have at most {PAYLOAD_BYTES_MAX} bytes together, but they have more; \
         {good} of {total} items succeeded"
    );
    let error = Json::error("result_too_large", &message);
    let counts = counts(total, good, state.failed_count);
    // Join the two objects into one.
    let output = error.as_str().trim_end_matches('}').to_owned() + "}," + &counts[1..];
    failed_with(turn, run, (output, message))
}

/// The result of a step in which too many iterations have failed.
fn items_failed(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    state: &Iterations,
    results: &[Row<IterationResults>],
) -> TargetResult {
    let failed = results.iter().filter_map(|((_, _, index), result)| {
        let error = result.error.as_ref()?;
        Some((*index, result, error))
    });
    let mut shown = failed.take(FAILED_ITEMS_SHOWN_MAX).peekable();
    let is_retryable = shown.peek().is_none_or(|(_, first, _)| first.is_retryable);
    let (count, total) = (state.failed_count, state.total_count);
    let message = cut(&match shown.peek() {
        Some((index, _, error)) => format!(
            "{count} of {total} items failed, the first one at index {index}: {}",
            error.message
        ),
        None => format!("{count} of {total} items failed"),
    });
    let mut text = String::from("{\"error\":{\"code\":\"items_failed\",\"message\":");
    quote(&message, &mut text);
    text.push_str(",\"items\":[");
    for (position, (index, result, error)) in shown.enumerate() {
        let separator = if position > 0 { "," } else { "" };
        text.push_str(&format!("{separator}{{\"index\":{index},\"outcome\":"));
        quote(result.outcome.as_str(), &mut text);
        text.push_str(",\"code\":");
        quote(&error.code, &mut text);
        text.push_str(",\"message\":");
        quote(&error.message, &mut text);
        text.push('}');
    }
    text.push_str("]}");
    close(&mut text, shown_outputs(state, results));
    TargetResult {
        is_retryable,
        ..failed_with(turn, run, (text, message))
    }
}

/// The outputs that a failed step shows: those that it has collected.
fn shown_outputs(state: &Iterations, results: &[Row<IterationResults>]) -> Option<String> {
    (state.collected_bytes > 0)
        .then(|| outputs(state, results))
        .flatten()
}

/// Completes the output of a failed step, with the outputs of its items if there is room for them.
fn close(text: &mut String, outputs: Option<String>) {
    let outputs = outputs.map(|outputs| format!(",\"outputs\":{outputs}"));
    let has_room = |outputs: &String| text.len() + outputs.len() < PAYLOAD_BYTES_MAX;
    let outputs = outputs.filter(has_room).unwrap_or_default();
    text.push_str(&outputs);
    text.push('}');
}

/// The result of a step that has taken too long (W70).
fn timed_out(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    message: String,
    outputs: Option<String>,
) -> TargetResult {
    let timeout = StepTimeout::Total;
    let error = Json::error(timeout.code(), &message);
    let text = error
        .as_str()
        .strip_suffix('}')
        .expect("an error is an object");
    let mut text = text.to_owned();
    close(&mut text, outputs);
    TargetResult {
        outcome: name::of(name::TIMEOUT),
        cause: FailureCause::of_timeout(timeout).into(),
        ..failed_with(turn, run, (text, message))
    }
}

fn failed_with(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    (output, message): (String, String),
) -> TargetResult {
    TargetResult {
        output: Some(run.store_payload(turn, Json::from_checked(output))),
        reason: Some(message),
        ..TargetResult::of_engine(name::of(name::FAILURE))
    }
}
