//! Accepting a task: its outcome arrives later in a report (W38).

use super::lease::{LeasedTask, check, drop_lease, find_open, report_timer};
use super::token::TaskToken;
use crate::ids::Namespace;
use crate::plan;
use crate::rejection::Rejection;
use crate::reply::TaskAccepted;
use crate::tables::AwaitedReport;
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;
use serde::{Deserialize, Serialize};

/// Ends a task's lease without an outcome, for an executor with `async` tracking. Idempotent.
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
            && self.token.is_of(record.attempt, report.secret)
        {
            let deadline_at_ms = report.deadline_at_ms;
            return Ok(TaskAccepted { deadline_at_ms });
        }
        let LeasedTask { mut task, lease } = check(turn, namespace, &self.token)?;
        let tracked = plan::tracked(turn, task.record.owner)?;
        let tracked = tracked.ok_or(Rejection::TaskNotTracked(number))?;
        drop_lease(turn, &mut task, LeaseEnd::Completed)?;
        let deadline_at_ms = turn.now_ms().saturating_add(tracked.timeout_ms);
        turn.set_timer(report_timer(&task, deadline_at_ms));
        task.record.report = Some(AwaitedReport {
            secret: lease.secret,
            deadline_at_ms,
        });
        task.put(turn);
        tracked.note_acceptance(turn, number, deadline_at_ms)?;
        Ok(TaskAccepted { deadline_at_ms })
    }
}
