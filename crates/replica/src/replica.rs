//! A replica: one member's part of one cluster.

use crate::backup::{Backup, BackupError};
use crate::cluster::change::{ChangeError, ClusterChange};
use crate::cluster::formation::Formation;
use crate::cluster::leadership::Leadership;
use crate::cluster::status::{self, Status};
use crate::core::Core;
use crate::execution::Chore;
use crate::fatal::FatalError;
use crate::gauges::{self, Gauges};
use crate::hooks::Hooks;
use crate::membership::voters;
use crate::opening;
use crate::read::ReadError;
use crate::running::Running;
use crate::start::StartError;
use crate::state::feed::Subscription;
use crate::state::rows;
use crate::submit::SubmitError;
use crate::tuning::Tuning;
use crate::view::View;
use flotilla_engine::{Command, NodeId, Rejection, Reply};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a replica is told at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// This member's id; never used by another, now or before.
    pub node_id: NodeId,
    /// How it came to its cluster.
    pub formation: Formation,
    /// Where it serves its peers.
    pub peer_listen: SocketAddr,
    /// Where clients reach it, as the other members tell them.
    pub client_address: String,
    /// Where it keeps its log and state.
    pub data_directory: PathBuf,
    /// The version of the binary, for the status.
    pub version: String,
    /// The newest engine version that it takes part in: [`flotilla_engine::ENGINE_VERSION`], but for tests of
    /// upgrades.
    pub engine_version: u32,
    /// Timing and bounds.
    pub tuning: Tuning,
}

/// One member's part of one cluster; clones share it. It has no global state, so a process may have
/// several (design rule 15).
///
/// Dropping the last clone closes the stores before it returns, which takes a moment: the data
/// directory is then free, and the process may exit. Call [`Replica::shutdown`] before, where there
/// is time for it.
#[derive(Clone)]
pub struct Replica {
    running: Arc<Running>,
}

/// How much was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries of commands that this node proposed.
    pub entries_proposed: u64,
    /// Commands in them.
    pub commands_proposed: u64,
    /// Entries that were applied here, of any kind.
    pub entries_applied: u64,
    /// Commands in them.
    pub commands_applied: u64,
    /// Attempts to have the leader carry out a command.
    pub commands_forwarded: u64,
    /// Commands refused for lack of room.
    pub commands_refused: u64,
    /// Times that the log was made durable.
    pub log_syncs: u64,
    /// Bytes of entries written to the log.
    pub log_bytes: u64,
    /// Snapshots made.
    pub snapshots_made: u64,
    /// Snapshots of other members that took this one's state's place.
    pub snapshots_installed: u64,
}

impl Replica {
    /// Opens the data directory and takes part in the cluster.
    ///
    /// A first member whose peers are not up yet starts all the same and founds the cluster with
    /// them later; what is then found wrong comes through [`Replica::fatal`].
    ///
    /// # Errors
    /// [`StartError`], with what to do about it.
    pub async fn start(config: Config, hooks: Hooks) -> Result<Self, StartError> {
        let running = opening::start(config, hooks).await?;
        Ok(Self {
            running: Arc::new(running),
        })
    }

    /// This member's id.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        NodeId(self.core().local.node_id)
    }

    /// The id of the cluster; none before it is founded or found.
    #[must_use]
    pub fn cluster_id(&self) -> Option<&str> {
        self.core().local.cluster_id()
    }

    /// The engine version on which the cluster has agreed, as far as this member has applied (design rule 12).
    #[must_use]
    pub fn engine_version(&self) -> u32 {
        *self.core().outlets.engine_version.borrow()
    }

    /// Has a command carried out, wherever the leader is.
    ///
    /// # Errors
    /// [`SubmitError`]; only [`SubmitError::Unknown`] leaves open whether it was done.
    pub async fn submit(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Result<Reply, Rejection>, SubmitError> {
        self.core().submit(command, deadline).await
    }

    /// Returns once this node has applied all that was acknowledged anywhere before the call: what
    /// [`Replica::view`] then shows is linearizable.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::NoLeader`] is worth another try.
    pub async fn read_index(&self, deadline: Instant) -> Result<(), ReadError> {
        self.core().read_index(deadline).await
    }

    /// Whether the state may be read at all: not before the node has caught up with a leader since
    /// it started.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        *self.core().readable.borrow()
    }

    /// Tells when the state may be read.
    #[must_use]
    pub fn readable(&self) -> watch::Receiver<bool> {
        self.core().readable.subscribe()
    }

    /// Reads the state as it is now, unchanged while `read` runs. It blocks its thread: long scans
    /// belong on a blocking one.
    ///
    /// # Errors
    /// [`ReadError::NotReadable`] before [`Replica::is_readable`].
    pub fn view<T>(&self, read: impl FnOnce(&View<'_>) -> T) -> Result<T, ReadError> {
        self.core().check_readable()?;
        if !self.is_readable() {
            return Err(ReadError::NotReadable);
        }
        View::open(self.core().store.as_ref(), read)
    }

    /// The time that this node would stamp an entry with now, in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let core = self.core();
        let membership = Arc::clone(&core.outlets.membership.borrow());
        core.local.clock.peek(voters(membership.membership()))
    }

    /// What is applied here from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.core().outlets.feed.subscribe()
    }

    /// Who leads.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.core().leadership.subscribe()
    }

    /// Whether this node leads and a quorum has answered it lately. One that lost its quorum still takes
    /// itself for the leader, and can neither read nor write.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.core().is_leading()
    }

    /// Whether a leader with a quorum behind it has lately told this node what is committed, so that it
    /// can serve. A new election changes nothing, unless it lasts.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.core().is_led()
    }

    /// Whether this node belongs to a cluster, as far as its own log tells: not while it waits to be taken
    /// in, or for the first members to come.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.core().is_member()
    }

    /// Why the process must end, once it must.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<Arc<FatalError>>> {
        self.core().fatal.subscribe()
    }

    /// How the cluster stands, as far as this node can learn within a second.
    pub async fn status(&self) -> Status {
        status::collect(self.core()).await
    }

    /// How much was done since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let core = self.core();
        let applied = &core.outlets.counters;
        let log = core.log.counters();
        Counters {
            entries_proposed: core.batch_counters.entries.load(Ordering::Relaxed),
            commands_proposed: core.batch_counters.commands.load(Ordering::Relaxed),
            entries_applied: applied.entries.load(Ordering::Relaxed),
            commands_applied: applied.commands.load(Ordering::Relaxed),
            commands_forwarded: core.submit_counters.forwarded.load(Ordering::Relaxed),
            commands_refused: core.submit_counters.refused.load(Ordering::Relaxed),
            log_syncs: log.syncs.load(Ordering::Relaxed),
            log_bytes: log.bytes.load(Ordering::Relaxed),
            snapshots_made: applied.snapshots_made.load(Ordering::Relaxed),
            snapshots_installed: applied.snapshots_installed.load(Ordering::Relaxed),
        }
    }

    /// How it stands at this moment.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        gauges::read(self.core())
    }

    /// Changes who belongs to the cluster or who leads it, from any node. Repeating a change does no
    /// harm: false says that nothing had to change.
    ///
    /// # Errors
    /// [`ChangeError`]: a refusal has changed nothing; only [`SubmitError::Unknown`] leaves open
    /// whether the change was made.
    pub async fn change(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Result<bool, ChangeError> {
        self.core().change(change, deadline).await
    }

    /// Makes a snapshot now, without waiting for it.
    ///
    /// # Errors
    /// [`SubmitError::Shutdown`] when the replica has ended.
    pub async fn trigger_snapshot(&self) -> Result<(), SubmitError> {
        self.core()
            .raft
            .trigger()
            .snapshot()
            .await
            .map_err(|_| SubmitError::Shutdown)
    }

    /// Has a member make a snapshot of all that it has applied, unless it has one, and returns the index
    /// that it covers.
    ///
    /// # Errors
    /// [`BackupError`]: the snapshot may still be made later.
    pub async fn snapshot(&self, node_id: NodeId, deadline: Instant) -> Result<u64, BackupError> {
        self.core().snapshot(node_id, deadline).await
    }

    /// A backup of all that was acknowledged anywhere before the call. The deadline is that of its
    /// beginning; it may be read for as long as it takes.
    ///
    /// # Errors
    /// [`BackupError`].
    pub async fn backup(&self, deadline: Instant) -> Result<Backup, BackupError> {
        self.core().backup(deadline).await
    }

    /// The index that this node has applied last, and its digest after it.
    #[must_use]
    pub fn progress(&self) -> (u64, u128) {
        let rows::Progress { log_id, digest, .. } = *self.core().outlets.progress.borrow();
        (log_id.map_or(0, |log_id| log_id.index()), digest)
    }

    /// Ends the replica in order: a leader hands over first, so that nobody waits for an election.
    /// Later calls answer that it has ended.
    pub async fn shutdown(&self) {
        let core = self.core();
        core.hand_over().await;
        core.shutdown.cancel();
        if let Err(error) = core.raft.shutdown().await {
            tracing::warn!(%error, "consensus did not end in order");
        }
        let store = Arc::clone(&core.store);
        // So that a restart has nothing to replay; a crash at this moment only costs the replay.
        match core
            .links
            .chores
            .run(Chore::Capture, move || store.flush())
            .await
        {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the state was not flushed"),
            Err(error) => tracing::warn!(%error, "the state was not flushed"),
        }
    }

    fn core(&self) -> &Core {
        self.running.core()
    }
}
