//! Setting the next firing of a schedule (W40, design rule 1).

use super::due::{arm, disarm, expected};
use crate::ids::{Namespace, WorkflowName};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{DefinitionNumber, LiveSchedule, NextFiring, ScheduleRecord, Schedules};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Sets the next firing: the first one of a schedule that became live or was enabled, or the one after missed firings.
/// Starts no run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetNextFiring {
    /// Whose schedule.
    pub workflow: WorkflowName,
    /// The revision that was asked.
    pub definition: DefinitionNumber,
    /// What the schedule waits for until now, in milliseconds.
    pub expected_ms: u64,
    /// The firing that comes next, in milliseconds; `None` for never again.
    pub next_ms: Option<u64>,
}

impl SetNextFiring {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.workflow.clone());
        let (record, live) = expected(turn, &key, self.definition, self.expected_ms)?;
        let is_later = |next_ms| match live.next {
            // The very time from which firings count may be one.
            NextFiring::Unplanned { from_ms } => next_ms >= from_ms,
            NextFiring::At { due_ms } => next_ms > due_ms,
            NextFiring::Never => false,
        };
        if !self.next_ms.is_none_or(is_later) {
            return Err(Rejection::FiringOutOfOrder.into());
        }
        disarm(turn, &key, &live);
        let live = LiveSchedule {
            next: NextFiring::at(self.next_ms),
            ..live
        };
        arm(turn, &key, &live);
        let live = Some(live);
        turn.put::<Schedules>(&key, ScheduleRecord { live, ..record });
        Ok(Done {})
    }
}
