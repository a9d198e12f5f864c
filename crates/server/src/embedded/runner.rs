//! Running one WASM task.

use super::program::{Program, call};
use super::slots::Place;
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::workers::ActionKey;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_wasm::{Report, Sandbox, SandboxError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the node may take to learn what the cluster knows of an action.
const READ_DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait before it asks again.
const READ_AGAIN_DELAY: Duration = Duration::from_millis(200);

/// The sandbox of this node.
pub(super) struct Runner {
    context: Arc<Context>,
    sandbox: Arc<Sandbox>,
}

impl Runner {
    pub(super) fn new(context: Arc<Context>) -> Result<Self, SandboxError> {
        Ok(Self {
            context,
            sandbox: Arc::new(Sandbox::new()?),
        })
    }

    /// Runs a task to its end, once a slot is free.
    ///
    /// # Errors
    /// [`Refusal`] when the node could not ask the cluster what to run.
    pub(super) async fn run(
        &self,
        namespace: &Namespace,
        task: v1::TaskAssignment,
        place: Place,
    ) -> Result<Report, Refusal> {
        let action = crate::request::name(ActionName::new(task.action.clone()))?;
        let key = (namespace.clone(), action);
        let program = self.program(&key).await?;
        let slot = place.slot().await;
        let (context, sandbox) = (self.context.clone(), self.sandbox.clone());
        let call = move || {
            // The slot is taken for as long as the call runs, even when nobody waits for it.
            let _slot = slot;
            let load = || {
                let gateway = &context.gateway;
                gateway.read_here(|reader| Program::load(reader, &key))
            };
            call(&sandbox, program, &task, load)
        };
        tokio::task::spawn_blocking(call)
            .await
            .map_err(|error| Refusal::internal(format!("the sandbox failed: {error}")))?
    }

    /// The action's program as the cluster knows it now: this node may be behind the leader that
    /// assigned.
    ///
    /// Without a leader it waits for one: nothing was run yet, so no attempt is to be lost.
    async fn program(&self, key: &ActionKey) -> Result<Option<Program>, Refusal> {
        loop {
            let deadline = Instant::now() + READ_DEADLINE;
            let found = self
                .context
                .gateway
                .read(Freshness::Linearizable, deadline, |reader| {
                    Program::find(reader, key)
                });
            match found.await {
                Err(refusal) if refusal.may_succeed_later() => sleep(READ_AGAIN_DELAY).await,
                found => return found,
            }
        }
    }
}
