//! An embedded worker's entry in the registry (A20).

use super::slots::Slots;
use super::{Actionset, COMMAND_DEADLINE, Shared, worker_id};
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
use flotilla_engine::tables::{Process, ProcessKind, WorkerType};
use flotilla_engine::{Body, Command, DeregisterWorker, RegisterWorker, view};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;
use tonic::Status;
use tonic_types::StatusExt;

/// The reasons that require a worker to register: it is not in the registry, or another process
/// took its id.
const NOT_REGISTERED: [&str; 2] = ["worker_not_found", "worker_replaced"];

/// An embedded worker's entry in the registry. It registers once per process, and again only if its
/// actions changed or the cluster has no entry for it, because a registration ends a drain.
pub(super) struct Registration {
    pub(super) worker_id: WorkerId,
    pub(super) incarnation: u64,
    context: Arc<Context>,
    slots: Arc<Slots>,
    namespace: Namespace,
    /// The actions that were last registered.
    known: Option<Actionset>,
}

impl Registration {
    /// The node's worker in a namespace, not registered yet.
    pub(super) fn new(shared: &Shared, namespace: Namespace) -> Self {
        Self {
            worker_id: worker_id(shared.context.node),
            incarnation: rand::random(),
            context: shared.context.clone(),
            slots: shared.slots.clone(),
            namespace,
            known: None,
        }
    }

    /// Registers the worker with its actions, unless that is done. A drained worker stays as it is
    /// until the node restarts: it takes no tasks, whatever its actions are.
    pub(super) async fn renew(&mut self, actions: &Actionset) -> Result<(), Refusal> {
        let is_done = self.known.as_ref() == Some(actions);
        if is_done || (self.known.is_some() && self.is_drained().await?) {
            return Ok(());
        }
        self.submit(self.body(actions)).await?;
        self.known = Some(actions.clone());
        Ok(())
    }

    /// Removes the worker and its settings from the registry: it has nothing to do, and a
    /// registered worker prevents its namespace from being deleted (A41).
    pub(super) async fn withdraw(&mut self) -> Result<(), Refusal> {
        self.submit(Body::DeregisterWorker(DeregisterWorker {
            worker_id: self.worker_id.clone(),
            // Also removes an entry from before a restart.
            incarnation: None,
        }))
        .await?;
        self.known = None;
        Ok(())
    }

    /// Records why a stream broke.
    pub(super) fn note_stream_end(&mut self, status: &Status) {
        if let Some(info) = status.get_details_error_info() {
            self.note_reason(&info.reason);
        }
    }

    /// Records a refusal's reason; true if the worker has to register again.
    pub(super) fn note_reason(&mut self, reason: &str) -> bool {
        let is_lost = NOT_REGISTERED.contains(&reason);
        if is_lost {
            self.known = None;
        }
        is_lost
    }

    async fn submit(&self, body: Body) -> Result<(), Refusal> {
        let command = Command::new(self.namespace.clone(), body);
        let deadline = Instant::now() + COMMAND_DEADLINE;
        self.context.gateway.submit(command, deadline).await?;
        Ok(())
    }

    async fn is_drained(&self) -> Result<bool, Refusal> {
        let deadline = Instant::now() + COMMAND_DEADLINE;
        let worker = self
            .context
            .gateway
            .read(Freshness::Linearizable, deadline, |reader| {
                view::worker(reader, &self.namespace, &self.worker_id)
            })
            .await?;
        Ok(worker.is_some_and(|worker| worker.activity.status.is_draining()))
    }

    fn body(&self, actions: &Actionset) -> Body {
        let process = |name: &ActionName| Process {
            name: name.to_string(),
            kind: ProcessKind::Action,
        };
        Body::RegisterWorker(Box::new(RegisterWorker {
            worker_id: self.worker_id.clone(),
            incarnation: self.incarnation,
            kind: WorkerType::Action,
            max_concurrency: u32::try_from(self.slots.total()).unwrap_or(u32::MAX),
            processes: actions.iter().map(process).collect(),
            labels: BTreeMap::new(),
            metadata: None,
            machine_id: None,
            node: Some(self.context.node),
        }))
    }
}
