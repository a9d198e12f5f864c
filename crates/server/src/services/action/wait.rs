//! Waiting for an action run to end.

use crate::access::CallContext;
use crate::deadline::Wait;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::watch::{self, RunChanges, Watch};
use flotilla_engine::Rejection;
use flotilla_engine::ids::{ActionRunNumber, Namespace};
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, ActionRunView};
use tokio::time::{Instant, sleep_until};

/// What wakes the waiter when an action run may have ended.
enum EndWatch {
    /// A stand-alone action run.
    ActionRun(Watch<ActionRunNumber>),
    /// An action run of a workflow run, whose history shows its end.
    Run(RunChanges),
}

impl EndWatch {
    async fn notified(&mut self) {
        match self {
            Self::ActionRun(watch) => watch.notified().await,
            Self::Run(watch) => watch.notified().await,
        }
    }
}

/// The action run once it has ended, or its current state when the time is over. The caller must
/// have made sure that this node has applied the run.
pub(super) async fn until_ended(
    context: &CallContext,
    namespace: &Namespace,
    number: ActionRunNumber,
    wait: Wait,
) -> Result<ActionRunView, Refusal> {
    let missing = || Refusal::from(Rejection::ActionRunNotFound(number));
    let gateway = context.gateway.of(namespace);
    let look = || {
        let look_up = |reader: &dyn Reader| view::action_run_row(reader, namespace, number);
        gateway.read_here(look_up)?.ok_or_else(missing)
    };
    let whole = async || {
        let namespace = namespace.clone();
        let look_up = move |reader: &dyn Reader| view::action_run(reader, &namespace, number);
        let scan = gateway.scan(Freshness::Stale, wait.read_deadline, look_up);
        let found = scan.await?;
        found.ok_or_else(missing)
    };
    let found = look()?;
    if !found.record.status.is_open() || wait.until <= Instant::now() {
        return whole().await;
    }
    let mut end_watch = match found.step {
        Some((run_id, _)) => {
            let key = (namespace.clone(), run_id);
            EndWatch::Run(context.watchers.runs.watch(namespace, key)?)
        }
        None => EndWatch::ActionRun(context.watchers.action_runs.watch(namespace, number)?),
    };
    loop {
        // Reads again after the watch began, so that no change is missed between the two.
        if !look()?.record.status.is_open() {
            return whole().await;
        }
        tokio::select! {
            () = end_watch.notified() => {}
            () = sleep_until(wait.until) => return whole().await,
            refusal = watch::interrupted(context) => return Err(refusal),
        }
    }
}
