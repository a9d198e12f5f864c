//! Why a run failed, in words: its `detail`.

use super::loaded::LoadedRun;
use super::open::payload;
use super::outcome::name;
use crate::definition::{Definition, Segment, Step, Target, TerminalStatus};
use crate::ids::OutcomeName;
use crate::json::{self, Json};
use crate::quarantine::cut;
use crate::store::StoreError;
use crate::tables::{Settled, StepResults, TaskError};
use crate::turn::Turn;

/// A step that is left for where its outcome leads.
pub(super) struct Exit<'a> {
    pub(super) definition: &'a Definition,
    pub(super) step: &'a Step,
    pub(super) settled: &'a Settled,
    pub(super) target: Target,
}

impl Exit<'_> {
    /// What the end of `run` says of the step that led there and, where that one did not fail, of
    /// the last one that did; `None` where the run goes on or ends well.
    pub(super) fn detail(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &LoadedRun,
    ) -> Result<Option<String>, StoreError> {
        match self.definition.status_at(self.target) {
            None | Some(TerminalStatus::Completed | TerminalStatus::Cancelled) => return Ok(None),
            Some(TerminalStatus::Failed | TerminalStatus::TimedOut) => {}
        }
        let outcome = &self.settled.outcome;
        let mut words = in_words(self.step, outcome, self.settled.reason.as_deref());
        if !is_failure(outcome)
            && let Some(earlier) = last_failure(turn, self.definition, run)?
        {
            words = format!("{words} after {earlier}");
        }
        Ok(Some(cut(&words)))
    }
}

/// What the last step that failed ended with, in words.
fn last_failure(
    turn: &mut Turn<'_, '_>,
    definition: &Definition,
    run: &LoadedRun,
) -> Result<Option<String>, StoreError> {
    let results = turn.list::<StepResults>(&run.number, usize::MAX)?;
    let failed = results
        .iter()
        .filter(|(_, result)| is_failure(&result.outcome));
    let Some(((_, step), result)) = failed.max_by_key(|(_, result)| result.order) else {
        return Ok(None);
    };
    let error = match result.output {
        Some(output) => {
            let output = payload(turn, output)?;
            error_in(&output)
        }
        None => None,
    };
    let reason = error.map(|error| error.in_words(&result.outcome));
    let step = definition.step(*step);
    Ok(Some(in_words(step, &result.outcome, reason.as_deref())))
}

/// The error in the output of a failed step (W10a).
pub(crate) fn error_in(output: &Json) -> Option<TaskError> {
    Some(TaskError {
        code: error_field(output, "code")?,
        message: error_field(output, "message")?,
    })
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

/// The detail of a run whose step ended with an outcome that leads nowhere (W11).
pub(super) fn no_transition(step: &Step, settled: &Settled) -> String {
    let (outcome, step) = (&settled.outcome, &step.name);
    let text = format!("no transition for outcome \"{outcome}\" of step \"{step}\"");
    cut(&with_reason(text, settled.reason.as_deref()))
}

fn in_words(step: &Step, outcome: &OutcomeName, reason: Option<&str>) -> String {
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
