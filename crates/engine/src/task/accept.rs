//! A worker accepts a task: its outcome comes later, by a report (W38).

use super::lease::{Leased, check, drop_lease, find_open};
use super::report::report_timer;
use super::token::TaskToken;
use crate::ids::Namespace;
use crate::plan;
use crate::rejection::Rejection;
use crate::reply::TaskAccepted;
use crate::tables::AwaitedReport;
use crate::turn::{Outcome, Turn};
use crate::worker;
use serde::{Deserialize, Serialize};

/// Ends a task's lease without an outcome, for an executor whose tracking is `async`. To accept it
/// again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptTask {
    /// The attempt: a report on it carries the same token.
    pub token: TaskToken,
}

impl AcceptTask {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<TaskAccepted> {
        let number = self.token.action_run;
        let record = find_open(turn, Some(namespace), number)?.record;
        if let Some(report) = record.report
            && self.token.is_of(record.attempt, report.secret)
        {
            let deadline_ms = report.deadline_ms;
            return Ok(TaskAccepted { deadline_ms });
        }
        let Leased { mut task, lease } = check(turn, namespace, &self.token)?;
        let tracked = plan::tracked(turn, task.record.owner)?;
        let tracked = tracked.ok_or(Rejection::TaskNotTracked(number))?;
        drop_lease(turn, &mut task)?;
        let worker = (namespace, &lease.worker);
        worker::count(turn, worker, &task.record.action, true)?;
        let deadline_ms = turn.now_ms().saturating_add(tracked.timeout_ms);
        turn.set_timer(report_timer(&task, deadline_ms));
        task.record.report = Some(AwaitedReport {
            secret: lease.secret,
            deadline_ms,
        });
        task.put(turn);
        tracked.note_acceptance(turn, number, deadline_ms)?;
        Ok(TaskAccepted { deadline_ms })
    }
}
