//! Waiting for an action run to end.

use crate::context::Context;
use crate::errors::Refusal;
use crate::watch::Watch;
use flotilla_engine::Rejection;
use flotilla_engine::ids::{ActionRunNumber, Namespace, RunId};
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, ActionRunView};
use tokio::time::{Instant, sleep_until};

/// What rings when an action run may have ended.
enum Bell {
    /// It stands alone.
    ActionRun(Watch<ActionRunNumber>),
    /// It belongs to a workflow run, whose history tells its end.
    Run(Watch<(Namespace, RunId)>),
}

impl Bell {
    async fn rung(&mut self) {
        match self {
            Self::ActionRun(watch) => watch.rung().await,
            Self::Run(watch) => watch.rung().await,
        }
    }
}

/// The action run when it has ended, or as it is when the time is over. What this node had to have
/// applied before is the caller's business.
pub(super) async fn until_ended(
    context: &Context,
    (namespace, number): (&Namespace, ActionRunNumber),
    until: Instant,
) -> Result<ActionRunView, Refusal> {
    let look = || {
        let look_up = |reader: &dyn Reader| view::action_run(reader, namespace, number);
        let found = context.gateway.read_here(look_up)?;
        found.ok_or_else(|| Refusal::from(Rejection::ActionRunNotFound(number)))
    };
    let found = look()?;
    if !found.record.status.is_open() || until <= Instant::now() {
        return Ok(found);
    }
    let mut bell = match found.step {
        Some((run_id, _)) => Bell::Run(context.watchers.runs.watch((namespace.clone(), run_id))?),
        None => Bell::ActionRun(context.watchers.action_runs.watch(number)?),
    };
    loop {
        // Read again after the bell is listened to, so that nothing falls between the two.
        let found = look()?;
        if !found.record.status.is_open() {
            return Ok(found);
        }
        tokio::select! {
            () = bell.rung() => {}
            () = sleep_until(until) => return Ok(found),
            () = context.shutdown.cancelled() => return Err(Refusal::shutting_down()),
        }
    }
}
