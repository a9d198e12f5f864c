//! The gateway: submits commands and reads the applied state, in the Raft group that has it.
//!
//! A namespace lives in one Raft group. The home group has what belongs to no namespace: the members, the settings and
//! the directory of namespaces. A caller must choose with [`Gateway::of`] or [`Gateway::home`] before it can read or
//! submit. Today a cluster has one group, so every choice leads to the same replica.

use crate::errors::Refusal;
use crate::faults::planted::{self, Bug};
use crate::limits::READ_RESERVATION_BYTES;
use crate::memory::{FairPool, MemoryPool, PoolShare};
use crate::slow_commands::SlowCommands;
use flotilla_engine::ids::Namespace;
use flotilla_engine::reply::UnexpectedReply;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Command, CommandScope, Operation, Rejection, Reply, TaskToken};
use flotilla_replica::Replica;
use tokio::time::{Instant, timeout_at};

/// Leads to the Raft groups of the cluster, from any node.
pub(crate) struct Gateway {
    replica: Replica,
    slow_commands: SlowCommands,
    /// For reads in progress.
    reads: FairPool,
}

/// Submits commands to one Raft group and reads its state, from any node.
#[derive(Clone, Copy)]
pub(crate) struct GroupGateway<'g> {
    replica: &'g Replica,
    slow_commands: &'g SlowCommands,
    /// For reads in progress of the namespace.
    reads: PoolShare<'g>,
}

/// How fresh the state of a read must be (design rule 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Sees everything that was acknowledged anywhere before the read began.
    Linearizable,
    /// Sees what this node has applied.
    Stale,
}

impl Freshness {
    /// The freshness that a request's `stale` asks for.
    pub(crate) fn of(is_stale: bool) -> Self {
        if is_stale {
            Self::Stale
        } else {
            Self::Linearizable
        }
    }
}

impl Gateway {
    /// The gateway over the replica of the only group, with the memory for its reads in progress.
    pub(crate) fn new(replica: Replica, slow_commands: SlowCommands, reads: &MemoryPool) -> Self {
        Self {
            replica,
            slow_commands,
            reads: FairPool::new(reads, READ_RESERVATION_BYTES),
        }
    }

    /// The group in which the namespace lives.
    pub(crate) fn of(&self, namespace: &Namespace) -> GroupGateway<'_> {
        self.only_group(self.reads.share_of(namespace))
    }

    /// The group that has the task. Reports by token name no namespace (W38); tokens are opaque to clients, so they can
    /// name a group once there are several.
    pub(crate) fn of_task(&self, _token: &TaskToken) -> GroupGateway<'_> {
        self.only_group(self.reads.share_of_cluster())
    }

    /// The group that has what belongs to no namespace, and the view of the node as a whole.
    pub(crate) fn home(&self) -> GroupGateway<'_> {
        self.only_group(self.reads.share_of_cluster())
    }

    /// Submits a command to the group of its scope. Every refusal says whether the command may have been applied.
    ///
    /// What only the home group may decide, such as that a namespace exists, goes to [`Gateway::home`] instead.
    pub(crate) async fn submit<O: Operation>(
        &self,
        command: Command<O>,
        deadline: Instant,
    ) -> Result<O::Reply, Refusal> {
        let group = match command.scope.clone().into() {
            CommandScope::Cluster => self.home(),
            CommandScope::Namespace(namespace) => self.of(&namespace),
        };
        group.submit(command, deadline).await
    }

    /// The log of slow commands.
    pub(crate) fn slow_commands(&self) -> &SlowCommands {
        &self.slow_commands
    }

    fn only_group<'g>(&'g self, reads: PoolShare<'g>) -> GroupGateway<'g> {
        GroupGateway {
            replica: &self.replica,
            slow_commands: &self.slow_commands,
            reads,
        }
    }
}

impl<'g> GroupGateway<'g> {
    /// The replica behind it.
    pub(crate) fn replica(self) -> &'g Replica {
        self.replica
    }

    /// The engine version on which the group has agreed, as far as this node knows.
    pub(crate) fn engine_version(self) -> u32 {
        self.replica.engine_version()
    }

    /// Submits a command. Every refusal says whether the command may have been applied.
    pub(crate) async fn submit<O: Operation>(
        self,
        command: Command<O>,
        deadline: Instant,
    ) -> Result<O::Reply, Refusal> {
        Ok(self.propose(command, deadline).await??)
    }

    /// As `submit`, but returns the engine's rejection separately.
    pub(crate) async fn propose<O: Operation>(
        self,
        command: Command<O>,
        deadline: Instant,
    ) -> Result<Result<O::Reply, Rejection>, Refusal> {
        Ok(match self.propose_any(command.untyped(), deadline).await? {
            Ok(reply) => Ok(typed::<O>(reply)?),
            Err(rejection) => Err(rejection),
        })
    }

    async fn propose_any(
        self,
        command: Command,
        deadline: Instant,
    ) -> Result<Result<Reply, Rejection>, Refusal> {
        let command = planted::changed(command);
        if let Some(reply) = planted::early_reply(&command) {
            let replica = self.replica.clone();
            tokio::spawn(async move { replica.submit(command, deadline).await });
            return Ok(Ok(reply));
        }
        let (kind, scope) = (command.body.kind(), command.scope.clone());
        let began = Instant::now();
        let submitted = self.replica.submit(command, deadline).await;
        self.slow_commands.observe(kind, &scope, began.elapsed());
        Ok(submitted?)
    }

    /// Waits until this node has applied everything that was acknowledged before.
    pub(crate) async fn catch_up(self, deadline: Instant) -> Result<(), Refusal> {
        if planted::has(Bug::StaleRead) {
            return Ok(());
        }
        Ok(self.replica.read_index(deadline).await?)
    }

    /// Reads a few rows.
    pub(crate) async fn read<T>(
        self,
        freshness: Freshness,
        deadline: Instant,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send,
    ) -> Result<T, Refusal> {
        if freshness == Freshness::Linearizable {
            self.catch_up(deadline).await?;
        }
        self.read_here(read)
    }

    /// Reads many rows or large ones, on a blocking thread. It waits until memory is free for the result.
    pub(crate) async fn scan<T: Send + 'static>(
        self,
        freshness: Freshness,
        deadline: Instant,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        if freshness == Freshness::Linearizable {
            self.catch_up(deadline).await?;
        }
        let bytes = READ_RESERVATION_BYTES.min(self.reads.bytes_max());
        let memory = timeout_at(deadline, self.reads.reserve(bytes)).await;
        let memory = memory.map_err(|_| {
            Refusal::overloaded(
                "expected memory for the read before its deadline, but other reads, of this or other namespaces, use all that it may have",
            )
        })?;
        // The thread owns the reservation, because it reads to the end even if the caller has gone.
        let (found, _memory) = self
            .scan_here(move |reader| Ok((read(reader)?, memory)))
            .await?;
        Ok(found)
    }

    /// As `scan`, of this node's applied state, but reserves no memory: for the node's own reads, which run one at a time, and
    /// for reads whose caller has reserved it.
    pub(crate) async fn scan_here<T: Send + 'static>(
        self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let replica = self.replica.clone();
        let scan = move || replica.view(|view| read(view));
        let scanned = tokio::task::spawn_blocking(scan).await.map_err(|error| {
            Refusal::internal(format!(
                "expected to read the state, but the reader failed: {error}"
            ))
        })?;
        Ok(scanned??)
    }

    /// Reads a few rows of this node's applied state, without waiting.
    pub(crate) fn read_here<T>(
        self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>,
    ) -> Result<T, Refusal> {
        Ok(self.replica.view(|view| read(view))??)
    }
}

/// The reply as its command's type. A reply of another command is a bug, perhaps of the former
/// leader.
fn typed<O: Operation>(reply: Reply) -> Result<O::Reply, Refusal> {
    O::Reply::try_from(reply).map_err(|error| {
        let error: UnexpectedReply = error.into();
        Refusal::internal(error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use futures::FutureExt;
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test]
    async fn a_read_waits_until_other_reads_leave_memory_for_it() {
        let node = StillNode::start().await;
        let (gateway, reads) = (node.context.gateway.home(), &node.context.memory.reads);
        let all = reads.try_reserve(reads.bytes_max()).expect("it is free");
        let scan = |after| gateway.scan(Freshness::Stale, Instant::now() + after, |_| Ok(1));
        let refused = scan(Duration::from_millis(1))
            .await
            .expect_err("all is used");
        assert!(refused.may_succeed_later());
        let mut waiting = Box::pin(scan(Duration::from_secs(60)));
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        drop(all);
        assert_eq!(waiting.await.expect("there is memory"), 1);
        assert_eq!(reads.bytes_reserved(), 0);
    }

    #[tokio::test]
    async fn reads_of_a_namespace_leave_room_for_others() {
        let node = StillNode::start().await;
        let gateway = &node.context.gateway;
        let namespaces = ["noisy", "quiet"].map(|name| Namespace::new(name).expect("a name"));
        let [noisy, quiet] = namespaces.each_ref().map(|namespace| gateway.of(namespace));
        let bytes = noisy.reads.bytes_max();
        let all = noisy.reads.reserve(bytes).await;
        let soon = || Instant::now() + Duration::from_millis(1);
        let refused = noisy.scan(Freshness::Stale, soon(), |_| Ok(())).await;
        assert!(refused.is_err_and(|refusal| refusal.may_succeed_later()));
        let later = Instant::now() + Duration::from_secs(60);
        let read = quiet.scan(Freshness::Stale, later, |_| Ok(())).await;
        assert!(read.is_ok(), "{:?}", read.err());
        drop(all);
    }

    #[tokio::test]
    async fn a_read_keeps_its_memory_after_its_caller_has_gone() {
        let node = StillNode::start().await;
        let (gateway, reads) = (node.context.gateway.home(), &node.context.memory.reads);
        let (began, mut beginning) = tokio::sync::mpsc::channel(1);
        let (finish, finishing) = mpsc::sync_channel::<()>(1);
        let deadline = Instant::now() + Duration::from_secs(60);
        let scan = gateway.scan(Freshness::Stale, deadline, move |_| {
            began.blocking_send(()).expect("the test waits for it");
            // An error says that the test has dropped the sender.
            finishing.recv().ok();
            Ok(())
        });
        tokio::select! {
            _ = scan => panic!("the read has not ended"),
            _ = beginning.recv() => {}
        }
        assert_eq!(reads.bytes_reserved(), READ_RESERVATION_BYTES);
        drop(finish);
        let all = reads.reserve(reads.bytes_max()).await;
        assert!(all.is_some(), "the read has released its memory");
    }
}
