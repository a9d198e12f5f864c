//! Runs one WASM task.

use super::decided::decided;
use super::program::{Call, Program};
use super::slots::SlotTicket;
use super::store::Store;
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::workers::ActionKey;
use flotilla_api::v1;
use flotilla_engine::TaskToken;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_wasm::{Host, Report, Sandbox, SandboxError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long reading an action's program may take.
const READ_DEADLINE: Duration = Duration::from_secs(10);

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

    /// Runs a task to its end, once a slot is free. If it is dropped before, a running call
    /// continues but can no longer reach anything.
    ///
    /// # Errors
    /// [`Refusal`] if the node could not read what to run.
    pub(super) async fn run(
        &self,
        namespace: &Namespace,
        token: TaskToken,
        task: v1::TaskAssignment,
        ticket: SlotTicket,
    ) -> Result<Report, Refusal> {
        let action = crate::request::name(ActionName::new(task.action.clone()))?;
        let key = (namespace.clone(), action);
        let program = self.program(&key).await?;
        let slot = ticket.slot().await;
        let (context, sandbox) = (self.context.clone(), self.sandbox.clone());
        let given_up = CancellationToken::new();
        let _given_up_when_dropped = given_up.clone().drop_guard();
        let call = move || {
            // The call holds its slot while it runs, even if its caller is gone.
            let _slot = slot;
            let load = || {
                let gateway = &context.gateway;
                gateway.read_here(|reader| Program::load(reader, &key))
            };
            let host = || -> Box<dyn Host> {
                let (context, namespace) = (context.clone(), key.0.clone());
                Box::new(Store::new(context, namespace, token, given_up.clone()))
            };
            let call = Call {
                sandbox: &sandbox,
                task: &task,
                host: &host,
            };
            context.metrics.wasm.measure(|| call.run(program, load))
        };
        tokio::task::spawn_blocking(call)
            .await
            .map_err(|error| Refusal::internal(format!("the sandbox failed: {error}")))?
    }

    /// The action's current program: this node may be behind the leader that assigned the task.
    ///
    /// Without a leader, it waits for one: nothing has run yet, so no attempt should be lost.
    async fn program(&self, key: &ActionKey) -> Result<Option<Program>, Refusal> {
        decided(|| {
            let deadline = Instant::now() + READ_DEADLINE;
            self.context
                .gateway
                .read(Freshness::Linearizable, deadline, |reader| {
                    Program::find(reader, key)
                })
        })
        .await
    }
}
