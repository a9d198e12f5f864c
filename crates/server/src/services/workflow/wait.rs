//! Waits for a run to end.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::watch;
use flotilla_engine::Rejection;
use flotilla_engine::ids::{Namespace, RunId};
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, RunEnding, RunSummary};
use tokio::time::{Instant, sleep_until};

/// How the run has ended; `None` if it is open at `until`, or as soon as callers cannot wait here.
///
/// The run exists at the leader; this node may be behind.
pub(super) async fn until_ended(
    context: &CallContext,
    namespace: &Namespace,
    run_id: &RunId,
    until: Instant,
) -> Result<Option<RunSummary>, Refusal> {
    let key = (namespace.clone(), run_id.clone());
    let gateway = context.gateway.of(namespace);
    // The watch begins before the read, so that no change is missed between the two.
    let mut watched = run_id.clone();
    let mut end_watch = context.watchers.ended_runs.watch(namespace, key)?;
    let look = || {
        context.metrics.count_watch_read();
        let look_up = |reader: &dyn Reader| view::run_end(reader, namespace, run_id);
        gateway.read_here(look_up)
    };
    let mut found = look()?;
    if found.is_none() {
        gateway.catch_up(until).await?;
        found = look()?;
    }
    loop {
        match found.ok_or_else(|| Rejection::RunNotFound(run_id.clone()))? {
            RunEnding::Ended(end) => return Ok(Some(end)),
            RunEnding::Open => {}
            // All attempts are one run: the wait continues with the last one (W77).
            RunEnding::Retried { latest } => {
                let key = (namespace.clone(), latest.clone());
                if watched != latest {
                    end_watch = context.watchers.ended_runs.watch(namespace, key)?;
                    watched = latest;
                    found = look()?;
                    continue;
                }
            }
        }
        tokio::select! {
            () = end_watch.notified() => {}
            () = sleep_until(until) => return Ok(None),
            _ = watch::interrupted(context) => return Ok(None),
        }
        let last_notification = end_watch.last_notification();
        // All callers that wait for the run share one read.
        let shared = end_watch.shared();
        let read = || async { look() };
        let others_count = end_watch.others_count();
        let ending = shared
            .find(last_notification, run_id.clone(), others_count, read)
            .await?;
        found = Option::clone(&ending);
    }
}
