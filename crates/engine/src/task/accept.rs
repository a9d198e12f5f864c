//! Accepting a task: its outcome arrives later in a report (W38).

use super::end::end_cancelled;
use super::lease::{LeasedTask, check, drop_lease, find_open, report_timer};
use super::loaded::with_owner;
use super::token::TaskToken;
use super::tracking::tracked;
use crate::ids::Namespace;
use crate::rejection::Rejection;
use crate::reply::TaskAccepted;
use crate::tables::{AwaitedReport, EventKind};
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;
use serde::{Deserialize, Serialize};

/// Ends the lease of a task with `async` tracking, without an outcome. Idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptTask {
    /// The attempt's token, which the report must carry too.
    pub token: TaskToken,
}

impl AcceptTask {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<TaskAccepted> {
        let number = self.token.action_run;
        let record = find_open(turn, Some(namespace), number)?.record;
        if let Some(report) = record.report
            && self.token.is_of(record.attempt, report.proof)
        {
            let deadline_at_ms = report.deadline_at_ms;
            return Ok(TaskAccepted { deadline_at_ms });
        }
        let LeasedTask { mut task, lease } = check(turn, namespace, &self.token)?;
        let tracked = tracked(turn, task.record.owner)?;
        let tracked = tracked.ok_or(Rejection::TaskNotTracked(number))?;
        drop_lease(turn, &mut task, LeaseEnd::Completed)?;
        if task.record.is_cancelling {
            end_cancelled(turn, task)?;
            let deadline_at_ms = None;
            return Ok(TaskAccepted { deadline_at_ms });
        }
        let now_ms = turn.now_ms();
        let deadline_at_ms = tracked
            .timeout_ms
            .map(|timeout_ms| now_ms.saturating_add(timeout_ms));
        if let Some(deadline_at_ms) = deadline_at_ms {
            turn.set_timer(report_timer(&task, deadline_at_ms));
        }
        task.record.report = Some(AwaitedReport {
            proof: lease.proof,
            deadline_at_ms,
        });
        with_owner(turn, task.record.owner, |turn, run| {
            let kind = EventKind::AwaitingReport {
                action_run: number,
                deadline_at_ms,
            };
            Ok(task.note(turn, run, kind)?)
        })?;
        task.put(turn);
        Ok(TaskAccepted { deadline_at_ms })
    }
}
