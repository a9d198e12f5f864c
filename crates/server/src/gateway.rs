//! The gateway: submits commands and reads the applied state, in the Raft group that has it.
//!
//! A namespace lives in one Raft group. The home group has what belongs to no namespace: the members, the settings and
//! the directory of namespaces. A caller must choose with [`Gateway::of`] or [`Gateway::home`] before it can read or
//! submit. Today a cluster has one group, so every choice leads to the same replica.

use crate::errors::Refusal;
use crate::faults::planted::{self, Bug};
use crate::slow_commands::SlowCommands;
use flotilla_engine::ids::Namespace;
use flotilla_engine::reply::UnexpectedReply;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Command, Operation, Rejection, Reply, TaskToken};
use flotilla_replica::Replica;
use tokio::time::Instant;

/// Leads to the Raft groups of the cluster, from any node.
pub(crate) struct Gateway {
    replica: Replica,
    slow_commands: SlowCommands,
}

/// Submits commands to one Raft group and reads its state, from any node.
#[derive(Clone, Copy)]
pub(crate) struct GroupGateway<'g> {
    replica: &'g Replica,
    slow_commands: &'g SlowCommands,
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
    /// The gateway over the replica of the only group.
    pub(crate) fn new(replica: Replica, slow_commands: SlowCommands) -> Self {
        Self {
            replica,
            slow_commands,
        }
    }

    /// The group in which the namespace lives.
    pub(crate) fn of(&self, _namespace: &Namespace) -> GroupGateway<'_> {
        self.only_group()
    }

    /// The group that has the task. Reports by token name no namespace (W38); tokens are opaque to clients, so they can
    /// name a group once there are several.
    pub(crate) fn of_task(&self, _token: &TaskToken) -> GroupGateway<'_> {
        self.only_group()
    }

    /// The group that has what belongs to no namespace, and the view of the node as a whole.
    pub(crate) fn home(&self) -> GroupGateway<'_> {
        self.only_group()
    }

    /// The log of slow commands.
    pub(crate) fn slow_commands(&self) -> &SlowCommands {
        &self.slow_commands
    }

    fn only_group(&self) -> GroupGateway<'_> {
        GroupGateway {
            replica: &self.replica,
            slow_commands: &self.slow_commands,
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

    /// Reads many rows or large ones, on a blocking thread.
    pub(crate) async fn scan<T: Send + 'static>(
        self,
        freshness: Freshness,
        deadline: Instant,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        if freshness == Freshness::Linearizable {
            self.catch_up(deadline).await?;
        }
        self.scan_here(read).await
    }

    /// As `scan`, of this node's applied state.
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
