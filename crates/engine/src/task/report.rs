//! Reporting the outcome of an accepted task, by any process that has its token (W38, W75).

use super::end::{Ending, end};
use super::lease::{drop_lease, drop_report, find_open};
use super::loaded::LoadedTask;
use super::ready::not_before_ms;
use super::token::TaskToken;
use super::tracking::tracked;
use super::usage;
use crate::due_time::DueTime;
use crate::ids::{ActionRunNumber, OutcomeName};
use crate::json::Json;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::run::{error_in, outcome_name};
use crate::store::StoreError;
use crate::tables::{ActionRunStatus, ActionRuns};
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;
use serde::{Deserialize, Serialize};

/// Ends a task with `async` tracking, once: after its acceptance, or before it if the report overtakes the acceptance. The
/// reporter knows only the token, which names the task in any namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTask {
    /// The attempt's token.
    pub token: TaskToken,
    /// Whether the caller has shown the token with a valid MAC (X31).
    pub is_authentic: bool,
    /// What is reported.
    pub report: TaskReport,
}

/// The outcome of an accepted task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// `success` or one of the action's own outcomes.
    pub outcome: OutcomeName,
    /// The output. That of a failure may carry its code as `{"error":{"code","message"}}` (W35).
    pub output: Json,
    /// The earliest time of what follows; at most [`STEP_DELAY_MS_MAX`](crate::limits::STEP_DELAY_MS_MAX) ahead (W74).
    pub not_before: Option<DueTime>,
    /// The patch of the run's state (RFC 7396, W66).
    pub state_patch: Option<Json>,
    /// What it has used: an object of numbers (W87).
    pub usage: Option<Json>,
}

impl TaskReport {
    /// Checks that an action can have this outcome.
    pub(crate) fn check(&self) -> Result<(), Rejection> {
        match self.outcome.is_execution_level() {
            true => Err(Rejection::OutcomeReserved(self.outcome.to_string())),
            false => Ok(()),
        }
    }
}

impl ReportTask {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        self.report.check()?;
        let number = self.token.action_run;
        let mut task = find_open(turn, None, number)?;
        if tracked(turn, task.record.owner)?.is_none() {
            return Err(Rejection::TaskNotTracked(number).into());
        }
        let proof = task.record.report_proof();
        let is_proven = proof.is_some_and(|proof| {
            let is_authentic = self.is_authentic || !proof.requires_mac;
            is_authentic && self.token.is_of(task.record.attempt, proof)
        });
        if !is_proven {
            return Err(Rejection::ReportTokenMismatch(number).into());
        }
        drop_lease(turn, &mut task, LeaseEnd::Completed)?;
        end_reported(turn, task, &self.report)?;
        Ok(Done {})
    }
}

/// Whether the report on an accepted task is awaited.
pub(crate) fn is_report_awaited(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
) -> Result<bool, StoreError> {
    let record = turn.get::<ActionRuns>(&number)?;
    Ok(record.is_some_and(|record| record.report.is_some()))
}

/// Ends an accepted task with the report of a caller that does not have its token (W75).
pub(crate) fn end_accepted(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    report: &TaskReport,
) -> TurnResult<()> {
    let task = find_open(turn, None, number)?;
    end_reported(turn, task, report)
}

fn end_reported(
    turn: &mut Turn<'_, '_>,
    mut task: LoadedTask,
    report: &TaskReport,
) -> TurnResult<()> {
    usage::add(turn, task.record.owner, report.usage.as_ref())?;
    drop_report(turn, &mut task);
    let is_failure = report.outcome.as_str() == outcome_name::FAILURE;
    task.record.error = error_in(&report.output).filter(|_| is_failure);
    let ending = Ending {
        status: ActionRunStatus::Completed,
        outcome: report.outcome.clone(),
        output: Some(report.output.clone()),
        is_retryable: true,
        timeout: None,
        not_before_ms: not_before_ms(turn, report.not_before),
        state_patch: report.state_patch.clone(),
    };
    end(turn, task, ending)
}
