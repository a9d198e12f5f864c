//! An embedded worker's entry in the registry (A20).

use super::slots::Slots;
use super::{Actionset, COMMAND_DEADLINE, Shared, worker_id};
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
use flotilla_engine::{Body, Departure, DeregisterWorker, RegisterWorker, ReleaseWorker, view};
use flotilla_engine::{Process, ProcessKind, WorkerType};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;
use tonic_types::StatusExt;

/// The reason by which a worker learns that it is not in the registry.
const NOT_FOUND: &str = "worker_not_found";
/// The reason by which a worker learns that another process took its id.
const REPLACED: &str = "worker_replaced";
/// How long the cluster may take to take back the tasks of a node that stops: less than `STOP_GRACE`.
const RELEASE_DEADLINE: Duration = Duration::from_secs(2);

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
        if let Err(refusal) = self.submit(self.body(actions)).await {
            self.note_reason(refusal.reason());
            return Err(refusal);
        }
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

    /// Returns the worker's tasks, because the node stops.
    pub(super) async fn release(&self) -> Result<(), Refusal> {
        if self.known.is_none() {
            return Ok(());
        }
        let release = Body::ReleaseWorker(ReleaseWorker {
            worker_id: self.worker_id.clone(),
            incarnation: self.incarnation,
            departure: Departure::Stopped,
        });
        self.submit_within(release, RELEASE_DEADLINE).await
    }

    /// Records why a stream broke.
    pub(super) fn note_stream_end(&mut self, status: &Status) {
        if let Some(info) = status.get_details_error_info() {
            self.note_reason(&info.reason);
        }
    }

    /// Records a refusal's reason; true if the worker has to register again. If another process took
    /// its id, it registers as a new process: the registry does not let a replaced one take the id
    /// back. The other process has ended, because a node's data directory belongs to one process.
    pub(super) fn note_reason(&mut self, reason: &str) -> bool {
        let is_replaced = reason == REPLACED;
        let is_lost = is_replaced || reason == NOT_FOUND;
        if is_replaced {
            self.incarnation = rand::random();
        }
        if is_lost {
            self.known = None;
        }
        is_lost
    }

    async fn submit(&self, body: Body) -> Result<(), Refusal> {
        self.submit_within(body, COMMAND_DEADLINE).await
    }

    async fn submit_within(&self, body: Body, time: Duration) -> Result<(), Refusal> {
        let command = body.into_command(self.namespace.clone());
        let deadline = Instant::now() + time;
        let gateway = &self.context.node_gateway;
        gateway.submit(command, deadline).await?;
        Ok(())
    }

    async fn is_drained(&self) -> Result<bool, Refusal> {
        let deadline = Instant::now() + COMMAND_DEADLINE;
        let worker = self
            .context
            .node_gateway
            .of(&self.namespace)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;

    fn registration(node: &StillNode, incarnation: u64) -> Registration {
        Registration {
            worker_id: worker_id(node.context.node),
            incarnation,
            context: node.context.clone(),
            slots: Slots::new(2),
            namespace: Namespace::default_namespace(),
            known: None,
        }
    }

    fn registered(node: &StillNode) -> u64 {
        let namespace = Namespace::default_namespace();
        let id = worker_id(node.context.node);
        let worker = node.read(|reader| view::worker(reader, &namespace, &id));
        worker.unwrap().record.incarnation
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_worker_takes_its_id_back_from_a_process_of_before_as_a_new_one() {
        let node = StillNode::start().await;
        let actions = Actionset::default();
        let mut worker = registration(&node, 1);
        worker.renew(&actions).await.unwrap();
        // The command of a process that has ended arrives late.
        registration(&node, 2).renew(&actions).await.unwrap();
        assert!(worker.note_reason("worker_replaced"));
        worker.renew(&actions).await.unwrap();
        assert_eq!(registered(&node), worker.incarnation);
        let refusal = registration(&node, 2).renew(&actions).await.unwrap_err();
        assert_eq!(refusal.reason(), "worker_replaced");
        assert_eq!(registered(&node), worker.incarnation);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_worker_that_is_refused_as_replaced_registers_as_a_new_process() {
        let node = StillNode::start().await;
        let actions = Actionset::default();
        registration(&node, 1).renew(&actions).await.unwrap();
        registration(&node, 2).renew(&actions).await.unwrap();
        let mut worker = registration(&node, 1);
        worker.renew(&actions).await.unwrap_err();
        worker.renew(&actions).await.unwrap();
        assert_eq!(registered(&node), worker.incarnation);
    }
}
