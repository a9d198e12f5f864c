//! Runs one WASM task.

use super::decided::decided;
use super::guest_log::GuestLog;
use super::program::Program;
use super::slots::SlotTicket;
use super::store::Store;
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::WASM_MEMORY_LEFT_DIVISOR;
use crate::memory::{FairPool, SharedReservation};
use crate::modules::Unavailable;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::TaskToken;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::store::Reader;
use flotilla_leader::ActionKey;
use flotilla_wasm::{Broken, Invocation, Limits, Module, Report, Sandbox, Task};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long reading an action's program may take.
const READ_DEADLINE: Duration = Duration::from_secs(10);

/// Runs the WASM tasks of this node.
pub(super) struct Runner {
    context: Arc<Context>,
    sandbox: Arc<Sandbox>,
    /// For running calls.
    memory: FairPool,
    log: GuestLog,
}

/// A call that has everything it needs.
struct Call {
    context: Arc<Context>,
    sandbox: Arc<Sandbox>,
    store: Store,
    module: Module,
    limits: Limits,
    task: v1::TaskAssignment,
}

/// A program with its compiled module.
type Ready = (Program, Module);

impl Runner {
    /// `None` if the engine does not work on this machine.
    pub(super) fn new(context: Arc<Context>) -> Option<Self> {
        let sandbox = context.modules.sandbox()?.clone();
        let pool = &context.memory.wasm;
        let memory = FairPool::new(pool, pool.bytes_max() / WASM_MEMORY_LEFT_DIVISOR);
        Some(Self {
            context,
            sandbox,
            memory,
            log: GuestLog::default(),
        })
    }

    /// Runs a task to its end, once its module is compiled and memory and a slot are free. If it is dropped before, a
    /// running call continues but can no longer reach anything.
    ///
    /// # Errors
    /// [`Refusal`] if the node could not read or prepare what to run.
    pub(super) async fn run(
        &self,
        namespace: &Namespace,
        token: TaskToken,
        task: v1::TaskAssignment,
        ticket: SlotTicket,
    ) -> Result<Report, Refusal> {
        let action = request::name("action", ActionName::new(task.action.clone()))?;
        let key = (namespace.clone(), action);
        let wasm = &self.context.metrics.wasm;
        let prepared = self.prepare(&key, ticket).await;
        let (ready, ticket) = prepared.inspect_err(|_| wasm.refuse())?;
        let (program, module) = match ready {
            Ok(ready) => ready,
            Err(broken) => return Ok(wasm.measure(|| broken.into())),
        };
        // Memory first: a task that waits for it keeps no other from a slot.
        let memory = match self.reserve(namespace, program.limits()).await {
            Ok(memory) => memory,
            Err(over_budget) => return Ok(wasm.measure(|| over_budget.into())),
        };
        let slot = ticket.slot().await;
        let given_up = CancellationToken::new();
        let _given_up_when_dropped = given_up.clone().drop_guard();
        let call = Call {
            context: self.context.clone(),
            sandbox: self.sandbox.clone(),
            store: Store::new(&self.context, namespace.clone(), token, given_up),
            module,
            limits: program.limits(),
            task,
        };
        let run = move || {
            // The call holds its slot and its memory while it runs, even if its caller is gone.
            let _held = (slot, memory);
            call.run()
        };
        let report = self.context.modules.threads().run(run).await?;
        let dropped_count = self.log.write(&key, &report.logs);
        wasm.drop_log_lines(dropped_count);
        Ok(report)
    }

    /// Reserves the memory that a call may take, once it is free. The calls of one namespace leave a part to other
    /// namespaces; if calls are too large for that, namespaces take turns.
    async fn reserve(
        &self,
        namespace: &Namespace,
        limits: Limits,
    ) -> Result<SharedReservation, Broken> {
        let call_bytes = limits.call_bytes();
        let reserved = self.memory.share_of(namespace).reserve(call_bytes).await;
        reserved.ok_or_else(|| Broken::OverBudget {
            call_bytes,
            budget_bytes: self.context.memory.wasm.bytes_max(),
        })
    }

    /// The action's program with its module. A task whose module has to be compiled first leaves the line for a slot
    /// meanwhile: others may use the slot.
    async fn prepare(
        &self,
        key: &ActionKey,
        ticket: SlotTicket,
    ) -> Result<(Result<Ready, Broken>, SlotTicket), Refusal> {
        let Some(program) = self.program(key).await? else {
            return Ok((Err(Broken::Missing), ticket));
        };
        if let Some(known) = self.context.modules.find(program.digest()) {
            return Ok((known.map(|module| (program, module)), ticket));
        }
        let slots = ticket.leave();
        let compiled = match self.compile(key).await {
            Ok(ready) => Ok(ready),
            Err(Unavailable::Broken(broken)) => Err(broken),
            Err(Unavailable::Unknown(refusal)) => return Err(refusal),
        };
        Ok((compiled, slots.take()))
    }

    /// Compiles the action's module. If the action was registered again meanwhile, the newer program runs.
    async fn compile(&self, key: &ActionKey) -> Result<Ready, Unavailable> {
        let stored = decided(async || {
            let (deadline, key) = (Instant::now() + READ_DEADLINE, key.clone());
            let gateway = self.context.node_gateway.of(&key.0);
            let load = move |reader: &dyn Reader| Program::load(reader, &key);
            gateway.scan(Freshness::Linearizable, deadline, load).await
        });
        let (program, module) = stored.await?.ok_or(Broken::Missing)?;
        let modules = &self.context.modules;
        let compiled = modules.compile(program.digest(), module).await?;
        Ok((program, compiled))
    }

    /// The action's current program: this node may be behind the leader that assigned the task.
    ///
    /// Without a leader, it waits for one: nothing has run yet, so no attempt should be lost.
    async fn program(&self, key: &ActionKey) -> Result<Option<Program>, Refusal> {
        decided(async || {
            let deadline = Instant::now() + READ_DEADLINE;
            self.context
                .node_gateway
                .of(&key.0)
                .read(Freshness::Linearizable, deadline, |reader| {
                    Program::find(reader, key)
                })
                .await
        })
        .await
    }
}

impl Call {
    fn run(self) -> Report {
        let task = &self.task;
        let invocation = Invocation {
            module: &self.module,
            input: &task.input,
            limits: self.limits,
            task: Task {
                run_id: task.run_id.as_ref().unwrap_or(&task.action_run_id),
                action: &task.action,
                attempt: task.attempt,
            },
            host: Box::new(self.store),
        };
        let wasm = &self.context.metrics.wasm;
        wasm.measure(|| self.sandbox.invoke(invocation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use futures::FutureExt;
    use tokio::task::unconstrained;

    #[tokio::test(flavor = "multi_thread")]
    async fn calls_of_a_namespace_leave_memory_to_others() {
        let node = StillNode::start().await;
        let runner = Runner::new(node.context.clone()).expect("modules run on this machine");
        let limits = Limits::default();
        let noisy = Namespace::new("noisy").expect("a name");
        let mut held = Vec::new();
        // Unconstrained: tokio ends a loop of many reservations by one that seems to wait.
        let reserve = |namespace| unconstrained(runner.reserve(namespace, limits)).now_or_never();
        while let Some(Ok(memory)) = reserve(&noisy) {
            held.push(memory);
        }
        assert!(!held.is_empty());
        let quiet = Namespace::default_namespace();
        assert!(matches!(reserve(&quiet), Some(Ok(_))));
    }
}
