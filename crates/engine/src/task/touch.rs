//! Extending a task's lease (A4).

use super::lease::{LeasedTask, check, set_end};
use super::token::TaskToken;
use crate::ids::Namespace;
use crate::limits::LEASE_MS_MAX;
use crate::rejection::Rejection;
use crate::reply::LeaseExtended;
use crate::turn::{Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Sets the lease to end `extend_ms` from now. That of a cancelled task is not extended (W54).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchTask {
    /// The attempt's token.
    pub token: TaskToken,
    /// The extension, in milliseconds; capped at a day.
    pub extend_ms: u64,
}

impl TouchTask {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<LeaseExtended> {
        let LeasedTask { task, .. } = check(turn, namespace, &self.token)?;
        if task.record.is_cancelling {
            return Err(Rejection::from(Undeliverable::TaskCancelled(task.number)).into());
        }
        let extend_ms = self.extend_ms.min(LEASE_MS_MAX);
        let expires_at_ms = turn.now_ms().saturating_add(extend_ms);
        let expires_at_ms = set_end(turn, task, expires_at_ms)?;
        Ok(LeaseExtended { expires_at_ms })
    }
}
