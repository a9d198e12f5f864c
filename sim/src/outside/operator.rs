//! The operator: prepares what the clients need, and stops what would never end by itself.

use super::caller::Caller;
use super::workload;
use crate::bug::Bug;
use crate::record::Outcome;
use crate::time::Time;
use std::time::Duration;

/// Registers and creates what the clients need; when their time is over, disables the schedule.
pub(crate) async fn operate(mut caller: Caller, time: Time, until_ms: u64, bug: Option<Bug>) {
    for body in workload::preparations(bug) {
        let command = caller.command(body);
        let outcome = caller.insist(command).await;
        assert!(
            !matches!(outcome, Outcome::Rejected(_)),
            "the setup of the clients is refused: {outcome:?}"
        );
    }
    let rest_ms = until_ms.saturating_sub(time.now_ms());
    tokio::time::sleep(Duration::from_millis(rest_ms)).await;
    let command = caller.command(workload::disable_schedule());
    caller.insist(command).await;
}
