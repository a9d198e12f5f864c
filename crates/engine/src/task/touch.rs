//! Extending a task's lease (A4).

use super::lease::{LeasedTask, check, lease_timer};
use super::token::TaskToken;
use crate::ids::Namespace;
use crate::limits::LEASE_MS_MAX;
use crate::reply::LeaseExtended;
use crate::tables::Lease;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Sets the lease to end `extend_ms` from now.
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
        let LeasedTask { mut task, lease } = check(turn, namespace, &self.token)?;
        turn.clear_timer(lease_timer(&task, lease.expires_at_ms));
        let expires_at_ms = turn
            .now_ms()
            .saturating_add(self.extend_ms.min(LEASE_MS_MAX));
        turn.set_timer(lease_timer(&task, expires_at_ms));
        task.record.lease = Some(Lease {
            expires_at_ms,
            ..lease
        });
        task.put(turn);
        Ok(LeaseExtended { expires_at_ms })
    }
}
