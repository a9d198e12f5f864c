//! The outcome of a task comes by a report, from whoever has its token (W38).

use super::end::{Ending, end};
use super::lease::{drop_lease, find_open};
use super::loaded::{Loaded, load};
use super::token::TaskToken;
use crate::ids::{ActionRunNumber, Namespace, OutcomeName};
use crate::json::Json;
use crate::plan;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::run::{self, outcome_name};
use crate::tables::{ActionRunStatus, TaskError, TimerKey, TimerKind};
use crate::turn::{Outcome, Turn};
use crate::worker;
use serde::{Deserialize, Serialize};

/// Ends a task of an executor whose tracking is `async`, once: after its acceptance, or before it when
/// the report is faster than the worker. Whoever reports knows the token alone: it names the task in
/// whichever namespace that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTask {
    /// The attempt.
    pub token: TaskToken,
    /// `success` or a name of the action's own.
    pub outcome: OutcomeName,
    /// The output; that of a failure may carry its code as `{"error":{"code","message"}}` (W35).
    pub output: Json,
}

impl ReportTask {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        if run::is_reserved(&self.outcome) {
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
            return Err(Rejection::ReportTokenWrong(number).into());
        }
        if let Some(lease) = drop_lease(turn, &mut task)? {
            let worker = (&task.record.namespace, &lease.worker);
            worker::count(turn, worker, &task.record.action, true)?;
        }
        drop_report(turn, &mut task);
        task.record.error = None;
        let ending = Ending {
            status: ActionRunStatus::Completed,
            outcome: self.outcome.clone(),
            output: Some(self.output.clone()),
            is_retryable: true,
        };
        end(turn, task, ending)?;
        Ok(Done {})
    }
}

/// A report is overdue: the attempt ends `timeout`, and the action is not run again by itself, since
/// what was accepted may still go on somewhere.
pub(crate) fn expire_report(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    attempt: u32,
) -> Outcome<()> {
    let mut task = load(turn, number)?;
    if task.record.attempt != attempt || !drop_report(turn, &mut task) {
        return Ok(());
    }
    task.record.error = Some(TaskError {
        code: outcome_name::TIMEOUT.to_owned(),
        message: "expected a report on the accepted task in time, but none came".to_owned(),
    });
    let ending = Ending {
        status: ActionRunStatus::TimedOut,
        outcome: outcome_name::of(outcome_name::TIMEOUT),
        output: None,
        is_retryable: true,
    };
    end(turn, task, ending)
}

/// Takes the right to report away, with its timer; false when there was none.
pub(super) fn drop_report(turn: &mut Turn<'_, '_>, task: &mut Loaded) -> bool {
    let Some(report) = task.record.report.take() else {
        return false;
    };
    turn.clear_timer(report_timer(task, report.deadline_ms));
    true
}

/// The timer of the report that is awaited on the task's current attempt.
pub(super) fn report_timer(task: &Loaded, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::ReportExpiry,
        due_ms,
        subject: task.number.0,
        detail: task.record.attempt,
    }
}
