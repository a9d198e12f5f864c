//! The detail of a failed run: why it failed, as text.

use super::outcome::{is_good, name, of_terminal};
use crate::definition::{
    BuiltInTerminal, Definition, Segment, Step, StepIndex, Target, TerminalStatus,
};
use crate::ids::{OutcomeName, ScopeNumber};
use crate::json::{self, Json};
use crate::limits::NAME_BYTES_MAX;
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::{
    BranchResult, EndCause, Ending, FailureCause, PayloadRef, ScopeEnd, StepResults, StepTimeout,
    TargetResult, TaskError, Work,
};
use crate::turn::{LoadedRun, Turn};

/// The code of an end at a custom terminal (W80).
const TERMINAL: &str = "terminal";
/// The code of an end because no transition matches (W80).
const NO_TRANSITION: &str = "no_transition";

/// A step that is left for where its outcome leads.
pub(super) struct Exit<'a> {
    pub(super) definition: &'a Definition,
    pub(super) scope: ScopeNumber,
    pub(super) step: &'a Step,
    pub(super) index: StepIndex,
    pub(super) target_result: &'a TargetResult,
    /// Why the block fails, if the step ends it.
    pub(super) cause: FailureCause,
}

impl Exit<'_> {
    /// Why the run fails or times out: the step that led to its end or, if that step did not fail, the last step that did.
    /// `None` if the run continues, completes or is cancelled.
    pub(super) fn end_reason(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &LoadedRun,
        target: Target,
    ) -> Result<Option<EndReason>, StoreError> {
        match self.definition.status_at(target) {
            None | Some(TerminalStatus::Completed | TerminalStatus::Cancelled) => return Ok(None),
            Some(TerminalStatus::Failed | TerminalStatus::TimedOut) => {}
        }
        let outcome = &self.target_result.outcome;
        let mut words = describe(self.step, outcome, self.target_result.reason.as_deref());
        let mut earlier_code = None;
        if !is_failure(outcome)
            && let Some((earlier, code)) = self.last_failure(turn, run)?
        {
            words = format!("{words} after {earlier}");
            earlier_code = Some(code);
        }
        Ok(Some(EndReason {
            detail: cut(&words),
            earlier_code,
        }))
    }

    /// The work that follows a transition; `reason` says why, where the target does not.
    pub(super) fn follow(&self, target: Target, reason: Option<EndReason>) -> Work {
        let scope = self.scope;
        let (detail, earlier_code) = match reason {
            Some(reason) => (Some(reason.detail), reason.earlier_code),
            None => (None, None),
        };
        let is_retryable = self.is_retryable();
        let end = |outcome, reason| {
            Work::EndScope(ScopeEnd {
                scope,
                step: self.index,
                outcome,
                reason,
                is_retryable,
                cause: self.cause.clone(),
            })
        };
        match target {
            Target::Step(step) => Work::Enter { scope, step },
            Target::BuiltIn(terminal) if scope != ScopeNumber::ROOT => {
                end(of_terminal(terminal), detail)
            }
            Target::End(index) => end(self.definition.ends[index.position()].clone(), None),
            Target::BuiltIn(_) | Target::Custom(_) => Work::Finish(Ending {
                scope,
                terminal: target,
                detail,
                cause: self.end_cause(target, earlier_code),
            }),
        }
    }

    /// The work that follows where no transition matches (W11).
    pub(super) fn without_transition(&self, detail: String) -> Work {
        let reason = EndReason {
            detail,
            earlier_code: None,
        };
        let work = self.follow(Target::BuiltIn(BuiltInTerminal::Failed), Some(reason));
        match work {
            Work::Finish(mut ending) => {
                ending.cause.code = NO_TRANSITION.to_owned();
                Work::Finish(ending)
            }
            work => work,
        }
    }

    /// The work that follows if the step asks for another attempt at the run (W77).
    pub(super) fn retry_run(&self) -> Work {
        let detail = format!("step \"{}\" asked for another attempt", self.step.name);
        let terminal = Target::BuiltIn(BuiltInTerminal::Failed);
        Work::Finish(Ending {
            scope: self.scope,
            terminal,
            detail: Some(detail),
            cause: self.end_cause(terminal, None),
        })
    }

    /// The cause of the run's end (W80): the failure of the step or, if it did not fail, the failure with `earlier_code`.
    fn end_cause(&self, terminal: Target, earlier_code: Option<String>) -> EndCause {
        let code = match terminal {
            Target::Custom(_) => Some(TERMINAL.to_owned()),
            Target::BuiltIn(_) | Target::Step(_) | Target::End(_) => {
                self.cause.code.clone().or(earlier_code)
            }
        };
        let outcome = &self.target_result.outcome;
        EndCause {
            code: code.unwrap_or_else(|| outcome.to_string()),
            step: Some(self.index),
            outcome: Some(outcome.clone()),
        }
    }

    /// The work that ends the step's block with the step's own outcome.
    pub(super) fn end_block(&self, outcome: OutcomeName) -> Work {
        let reason = self.target_result.reason.as_deref();
        let reason = (!is_good(&outcome)).then(|| cut(&describe(self.step, &outcome, reason)));
        Work::EndScope(ScopeEnd {
            scope: self.scope,
            step: self.index,
            outcome,
            reason,
            is_retryable: self.is_retryable(),
            cause: self.cause.clone(),
        })
    }

    /// Whether a block that ends because of this step may be tried again: unless the step failed for good (W69).
    fn is_retryable(&self) -> bool {
        let TargetResult {
            outcome,
            is_retryable,
            ..
        } = self.target_result;
        *is_retryable || !is_failure(outcome) || outcome.as_str() == name::TIMEOUT
    }

    /// The description and the code of the last failure of a step in the scope.
    fn last_failure(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &LoadedRun,
    ) -> Result<Option<(String, String)>, StoreError> {
        let results = turn.list::<StepResults>(&(run.number, self.scope), usize::MAX)?;
        let failed = results
            .iter()
            .filter(|(_, result)| is_failure(&result.outcome));
        let Some(((_, _, step), result)) = failed.max_by_key(|(_, result)| result.order) else {
            return Ok(None);
        };
        let output = match result.output {
            Some(output) => Some(turn.payload(output)?),
            None => None,
        };
        let error = output.as_ref().and_then(error_in);
        let reason = error.map(|error| error.describe(&result.outcome));
        let code = output.and_then(|output| error_field(&output, "code"));
        let code = code.map_or_else(|| result.outcome.to_string(), code_of);
        let step = self.definition.step(*step);
        Ok(Some((
            describe(step, &result.outcome, reason.as_deref()),
            code,
        )))
    }
}

/// Why a run fails or times out.
pub(super) struct EndReason {
    /// The detail of the run.
    detail: String,
    /// The code of an earlier failure, if the step that led to the end did not fail.
    earlier_code: Option<String>,
}

/// Cuts the code of a failure to the maximum length of a code in a definition.
fn code_of(mut code: String) -> String {
    code.truncate(code.floor_char_boundary(NAME_BYTES_MAX));
    code
}

/// Why a block fails that ends because of a step with this result (W69).
pub(super) fn cause_in(
    turn: &mut Turn<'_, '_>,
    target_result: &TargetResult,
) -> Result<FailureCause, StoreError> {
    if !is_failure(&target_result.outcome) {
        return Ok(FailureCause::default());
    }
    let code = match (&target_result.cause.code, target_result.output) {
        (Some(code), _) => Some(code.clone()),
        (None, Some(output)) => error_field(&turn.payload(output)?, "code"),
        (None, None) => None,
    };
    let code = code.unwrap_or_else(|| target_result.outcome.to_string());
    Ok(FailureCause {
        code: Some(code_of(code)),
        // For the block, it has cut an attempt, whichever it was.
        timeout: target_result.cause.timeout.map(|_| StepTimeout::Attempt),
    })
}

/// The code of a block that fails although the step that led to its end did not.
const BLOCK_ENDED: &str = "block_ended";

/// Why a block has failed: because of the step that led to its end (W69). Nothing for one that has not failed.
pub(super) fn cause_of_block(result: &BranchResult) -> FailureCause {
    if !is_failure(&result.outcome) {
        return FailureCause::default();
    }
    let FailureCause { code, timeout } = &result.cause;
    FailureCause {
        code: Some(code.clone().unwrap_or_else(|| BLOCK_ENDED.to_owned())),
        timeout: *timeout,
    }
}

/// A payload with the error of a failed step: its output or, if that is without an error, one made of what is known.
pub(super) fn error_output(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    target_result: &TargetResult,
) -> Result<PayloadRef, StoreError> {
    let code = target_result.cause.code.as_deref();
    if let Some(output) = target_result.output
        && let Some(error) = error_in(&turn.payload(output)?)
        // The output of a block can be that of a step that failed earlier.
        && code.is_none_or(|code| code == error.code)
    {
        return Ok(output);
    }
    let code = code.unwrap_or(target_result.outcome.as_str());
    let message = target_result.reason.as_deref().unwrap_or_default();
    Ok(run.store_payload(turn, Json::error(code, message)))
}

/// The end of a step that the engine fails, with the error as its output (W10a). It is not retried.
pub(super) fn failed(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    code: &str,
    message: String,
) -> TargetResult {
    let output = run.store_payload(turn, Json::error(code, &message));
    TargetResult {
        output: Some(output),
        reason: Some(message),
        ..TargetResult::of_engine(name::of(name::FAILURE))
    }
}

/// Gives a step that failed without an output its error as output (W10a): a wait that timed out, or polls that ran out.
pub(super) fn complete_output(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    target_result: &mut TargetResult,
) {
    if target_result.output.is_some() || !is_failure(&target_result.outcome) {
        return;
    }
    if let Some(reason) = &target_result.reason {
        let output = Json::error(target_result.outcome.as_str(), reason);
        target_result.output = Some(run.store_payload(turn, output));
    }
}

/// The error in the output of a failed step (W10a).
pub(crate) fn error_in(output: &Json) -> Option<TaskError> {
    Some(TaskError {
        code: error_field(output, "code")?,
        message: error_field(output, "message")?,
    })
}

/// The whole error in the output of a failed step, as JSON (W10a).
pub(super) fn error_of(output: &Json) -> Option<Json> {
    let path = [Segment::Field("error".to_owned())];
    let error = json::find(output.as_str(), &path)?;
    Some(Json::from_checked(error.to_owned()))
}

/// A text of the error in the output of a failed step: its `code` or its `message` (W10a).
pub(crate) fn error_field(output: &Json, name: &str) -> Option<String> {
    let path = ["error", name].map(|name| Segment::Field(name.to_owned()));
    json::find(output.as_str(), &path).and_then(json::as_string)
}

/// Whether a step or an executor of a plan has failed (W34).
pub(crate) fn is_failure(outcome: &OutcomeName) -> bool {
    matches!(
        outcome.as_str(),
        name::FAILURE
            | name::TIMEOUT
            | name::EXECUTION_FAILURE
            | name::TARGET_NOT_FOUND
            | name::TARGET_DISABLED
    )
}

/// The detail of a run whose step ended with an outcome that has no transition (W11).
pub(super) fn no_transition(step: &Step, target_result: &TargetResult) -> String {
    let (outcome, step) = (&target_result.outcome, &step.name);
    let text = format!("no transition for outcome \"{outcome}\" of step \"{step}\"");
    cut(&with_reason(text, target_result.reason.as_deref()))
}

fn describe(step: &Step, outcome: &OutcomeName, reason: Option<&str>) -> String {
    let step = &step.name;
    let end = match outcome.as_str() {
        name::TIMEOUT => format!("step \"{step}\" timed out"),
        _ if is_failure(outcome) => format!("step \"{step}\" failed"),
        other => format!("step \"{step}\" ended with outcome \"{other}\""),
    };
    with_reason(end, reason)
}

fn with_reason(end: String, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{end}: {reason}"),
        None => end,
    }
}
