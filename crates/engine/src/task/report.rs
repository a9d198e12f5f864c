//! Reporting the outcome of an accepted task, by any process that has its token (W38).

use super::end::{Ending, end};
use super::lease::{drop_lease, drop_report, find_open};
use super::token::TaskToken;
use crate::ids::{Namespace, OutcomeName};
use crate::json::Json;
use crate::plan;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::ActionRunStatus;
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;
use serde::{Deserialize, Serialize};

/// Ends a task of an executor with `async` tracking, once: after its acceptance, or before it if the report overtakes
/// the acceptance. The reporter knows only the token, which names the task in any namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTask {
    /// The attempt's token.
    pub token: TaskToken,
    /// `success` or one of the action's own outcomes.
    pub outcome: OutcomeName,
    /// The output. That of a failure may carry its code as `{"error":{"code","message"}}` (W35).
    pub output: Json,
}

impl ReportTask {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> TurnResult<Done> {
        if self.outcome.is_execution_level() {
            return Err(Rejection::OutcomeReserved(self.outcome.to_string()).into());
        }
        let number = self.token.action_run;
        let mut task = find_open(turn, None, number)?;
        if plan::tracked(turn, task.record.owner)?.is_none() {
            return Err(Rejection::TaskNotTracked(number).into());
        }
        let leased = task.record.lease.as_ref().map(|lease| lease.secret);
        let secret = task.record.report.map(|report| report.secret).or(leased);
        if !secret.is_some_and(|secret| self.token.is_of(task.record.attempt, secret)) {
            return Err(Rejection::ReportTokenMismatch(number).into());
        }
        drop_lease(turn, &mut task, LeaseEnd::Completed)?;
        drop_report(turn, &mut task);
        task.record.error = None;
        let ending = Ending {
            status: ActionRunStatus::Completed,
            outcome: self.outcome.clone(),
            output: Some(self.output.clone()),
            is_retryable: true,
            timeout: None,
        };
        end(turn, task, ending)?;
        Ok(Done {})
    }
}
