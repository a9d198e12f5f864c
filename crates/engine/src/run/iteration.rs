//! An iteration that has ended: it is counted, and what the end of its step needs is kept (W57).

use super::failure::{self, error_in};
use super::outcome::is_good;
use super::state::{self, Writers};
use crate::definition::ForEachStep;
use crate::ids::ScopeNumber;
use crate::json::Json;
use crate::limits::{ITEM_CODE_BYTES_MAX, ITEM_MESSAGE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::message::cut_to;
use crate::store::StoreError;
use crate::tables::{
    Activation, BranchResult, EventKind, IterationResult, IterationResults, Iterations, States,
    TargetResult, TaskError,
};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// An iteration that has ended.
pub(super) struct Iteration<'a> {
    pub(super) active: &'a Activation,
    pub(super) step: &'a ForEachStep,
    pub(super) index: u32,
    pub(super) result: BranchResult,
}

impl Iteration<'_> {
    /// Counts the iteration, and keeps what the end of the step needs. With a concurrency of 1, its state writes go to the
    /// scope of the step; if they cannot, the step ends with the returned result.
    pub(super) fn record(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        state: &mut Iterations,
    ) -> TurnResult<Option<TargetResult>> {
        if self.result.is_cancelled {
            return Ok(None);
        }
        let kind = EventKind::IterationEnded {
            index: self.index,
            outcome: self.result.outcome.clone(),
        };
        run.note(self.active, kind);
        let scope = state.scope(self.index);
        let mut kept = IterationResult {
            outcome: self.result.outcome.clone(),
            output: None,
            error: None,
            is_retryable: self.result.is_retryable,
            has_written: false,
        };
        let mut not_written = None;
        if is_good(&self.result.outcome) {
            state.good_count += 1;
            if state.is_sequential {
                let writers = Writers {
                    into: self.active.scope,
                    branches: vec![scope],
                    merge: &self.step.merge,
                };
                match state::join(turn, run, &writers)? {
                    // An event for each iteration would push the others out of the history.
                    Ok(joined) => {
                        let is_of_run = self.active.scope == ScopeNumber::ROOT;
                        run.record.scopes.has_unrecorded_writes |= is_of_run && joined.is_some();
                    }
                    // They are joined when a resume ends the step.
                    Err(refused) => {
                        kept.has_written = true;
                        not_written = Some(refused.ends_step(turn, run));
                    }
                }
            } else {
                kept.has_written = turn.get::<States>(&(run.number, scope))?.is_some();
            }
            kept.output = self.collect(turn, state)?;
        } else {
            state.failed_count += 1;
            kept.error = Some(self.error(turn, state)?);
        }
        if kept.has_written || kept.output.is_some() || kept.error.is_some() {
            let key = (run.number, self.active.number, self.index);
            turn.put::<IterationResults>(&key, kept);
        }
        Ok(not_written)
    }

    /// The output, if the step collects it and there is room.
    fn collect(
        &self,
        turn: &mut Turn<'_, '_>,
        state: &mut Iterations,
    ) -> Result<Option<Json>, StoreError> {
        if !state.collects_outputs || state.is_too_large {
            return Ok(None);
        }
        let output = match self.result.output {
            Some(output) => turn.payload(output)?,
            None => Json::null(),
        };
        Ok(count_element(state, &output).then_some(output))
    }

    /// Why it failed.
    fn error(
        &self,
        turn: &mut Turn<'_, '_>,
        state: &mut Iterations,
    ) -> Result<TaskError, StoreError> {
        let BranchResult {
            outcome,
            output,
            reason,
            ..
        } = &self.result;
        let known = match output {
            Some(output) => error_in(&turn.payload(*output)?),
            None => None,
        };
        let code = failure::cause_of_block(&self.result).code;
        // The output of a block can be that of a step that failed earlier.
        let known = known.filter(|known| code.as_ref().is_none_or(|code| *code == known.code));
        let error = known.unwrap_or_else(|| TaskError {
            code: code.unwrap_or_else(|| outcome.to_string()),
            message: reason.clone().unwrap_or_default(),
        });
        let code = cut_to(&error.code, ITEM_CODE_BYTES_MAX);
        let message = cut_to(&error.message, ITEM_MESSAGE_BYTES_MAX);
        if state.collects_outputs {
            count_element(state, &Json::error(&code, &message));
        }
        Ok(TaskError { code, message })
    }
}

/// Counts an element of the array of outputs; false if that is too large.
fn count_element(state: &mut Iterations, element: &Json) -> bool {
    let bytes = state.collected_bytes + element_bytes(element);
    state.is_too_large |= bytes as usize > PAYLOAD_BYTES_MAX;
    if !state.is_too_large {
        state.collected_bytes = bytes;
    }
    !state.is_too_large
}

/// The size of an element of the array of outputs, with the separator. In bytes.
pub(super) fn element_bytes(element: &Json) -> u32 {
    let separator = 1;
    u32::try_from(element.as_str().len() + separator).expect("a payload is bounded")
}
