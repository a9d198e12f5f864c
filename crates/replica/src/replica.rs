//! A replica: one member's Raft participant, with its log and state.

use crate::attempt::SubmitError;
use crate::backup::{Backup, BackupError};
use crate::cluster::change::{ChangeError, ClusterChange};
use crate::cluster::formation::{FormError, Formation, FormedCluster};
use crate::cluster::leader_contact::Standstill;
use crate::cluster::leadership::Leadership;
use crate::cluster::status::Status;
use crate::cluster::timing::TimingMismatch;
use crate::core::Core;
use crate::environment::Environment;
use crate::execution::{BlockingPool, JobKind};
use crate::fatal::FatalError;
use crate::gauges::{self, Gauges};
use crate::inspection::{InspectError, Pending};
use crate::membership::voters;
use crate::network::host_services::HostCallSender;
use crate::network::local::HOME_GROUP_ID;
use crate::read::ReadError;
use crate::running::Running;
use crate::start_error::StartError;
use crate::startup;
use crate::state::feed::Subscription;
use crate::state::rows;
use crate::tuning::Tuning;
use crate::view::View;
use bytes::Bytes;
use flotilla_engine::{CommandEnvelope, NodeId, Rejection, Reply};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a replica that shuts down waits until the appends that it has begun are answered.
const APPENDS_GRACE: Duration = Duration::from_secs(1);

/// How long consensus may take to end: it waits for a disk that hangs.
const CONSENSUS_GRACE: Duration = Duration::from_secs(5);

/// The configuration of a replica.
#[derive(Clone, Debug)]
pub struct Config {
    /// This member's id; never used by another, now or before.
    pub node_id: NodeId,
    /// How it becomes a member of its cluster.
    pub formation: Formation,
    /// What its host requires of a new cluster, as readable text. First members whose texts differ do not form a cluster.
    pub formation_requirements: String,
    /// The address that serves its peers.
    pub peer_listen: SocketAddr,
    /// Hosts of members that `formation` does not name. With TLS, a caller needs a certificate for the host of a member.
    pub peer_names: Vec<String>,
    /// Its address for clients, as the other members report it.
    pub client_address: String,
    /// The directory of its log and state.
    pub data_directory: PathBuf,
    /// The version of the binary, for the status.
    pub version: String,
    /// The newest engine version that it supports: [`flotilla_engine::ENGINE_VERSION`], except in
    /// tests of upgrades.
    pub engine_version: u32,
    /// Timing and limits.
    pub tuning: Tuning,
}

/// One member's Raft participant in one cluster; clones share it. It has no global state, so a
/// process may have several (design rule 15).
///
/// Dropping the last clone closes the stores before it returns, which takes a moment: the data
/// directory is then free, and the process may exit. Call [`Replica::shutdown`] before, if there is
/// time for it.
#[derive(Clone)]
pub struct Replica {
    running: Arc<Running>,
}

/// The counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries of commands that this node proposed.
    pub entries_proposed: u64,
    /// Commands in them.
    pub commands_proposed: u64,
    /// Entries of any kind that were applied here.
    pub entries_applied: u64,
    /// Commands in them.
    pub commands_applied: u64,
    /// Attempts to have the leader execute a command.
    pub commands_forwarded: u64,
    /// Commands that were shed.
    pub commands_refused: u64,
    /// How often the log was made durable.
    pub log_fsyncs: u64,
    /// Bytes of entries written to the log.
    pub log_bytes: u64,
    /// Snapshots taken of this replica's state.
    pub snapshots_made: u64,
    /// Snapshots of other members that replaced this one's state.
    pub snapshots_installed: u64,
    /// Snapshots that were refused because another one was being installed.
    pub snapshots_refused: u64,
}

impl Replica {
    /// Opens the data directory and takes part in the cluster.
    ///
    /// A first member whose peers are not up yet, or whose cluster is not to be formed yet, starts anyway and forms it
    /// later, after [`Replica::form`]; an error that is found then comes through [`Replica::fatal`].
    ///
    /// # Errors
    /// [`StartError`], with what to do about it.
    pub async fn start(config: Config, environment: Environment) -> Result<Self, StartError> {
        let running = startup::start(config, environment).await?;
        Ok(Self {
            running: Arc::new(running),
        })
    }

    /// This member's id.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        NodeId(self.core().local.node_id)
    }

    /// The id of the cluster; `None` before it is formed or found.
    #[must_use]
    pub fn cluster_id(&self) -> Option<&str> {
        self.core().local.cluster_id()
    }

    /// The engine version on which the cluster has agreed, as far as this member has applied (design rule 12).
    #[must_use]
    pub fn engine_version(&self) -> u32 {
        *self.core().applied_state.engine_version.borrow()
    }

    /// Submits a command on behalf of its actor, wherever the leader is.
    ///
    /// # Errors
    /// [`SubmitError`]; the command may have been executed only if the error is
    /// [`SubmitError::Unknown`].
    pub async fn submit(
        &self,
        envelope: CommandEnvelope,
        deadline: Instant,
    ) -> Result<Result<Reply, Rejection>, SubmitError> {
        self.core().submissions.submit(envelope, deadline).await
    }

    /// Returns once this node has applied everything that was acknowledged anywhere before the
    /// call: [`Replica::view`] is then linearizable.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::NoLeader`] is worth a retry.
    pub async fn read_index(&self, deadline: Instant) -> Result<(), ReadError> {
        self.core().reads.read_index(deadline).await
    }

    /// Whether the state may be read at all: not before the node has caught up with a leader since
    /// it started.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.core().reads.is_readable()
    }

    /// Reports when the state may be read.
    #[must_use]
    pub fn readable(&self) -> watch::Receiver<bool> {
        self.core().reads.readable()
    }

    /// Reads the current state, unchanged while `read` runs. It blocks its thread: run long scans
    /// on a blocking one.
    ///
    /// # Errors
    /// [`ReadError::NodeCatchingUp`] before [`Replica::is_readable`].
    pub fn view<T>(&self, read: impl FnOnce(&View<'_>) -> T) -> Result<T, ReadError> {
        self.core().lifecycle.check_serving()?;
        if !self.is_readable() {
            return Err(ReadError::NodeCatchingUp);
        }
        View::open(self.core().store.as_ref(), read)
    }

    /// As [`Replica::view`], but reads what this member has applied in whatever state it is, however old that is: to judge
    /// calls about the member itself, which it answers in any state.
    ///
    /// # Errors
    /// [`ReadError`] if the state cannot be read.
    pub fn stored_view<T>(&self, read: impl FnOnce(&View<'_>) -> T) -> Result<T, ReadError> {
        View::open(self.core().store.as_ref(), read)
    }

    /// The Raft group to which this replica belongs.
    #[must_use]
    pub fn group_id(&self) -> u64 {
        HOME_GROUP_ID
    }

    /// The current time of this node's log clock, in milliseconds: what it would stamp an entry
    /// with.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let core = self.core();
        let membership = Arc::clone(&core.applied_state.membership.borrow());
        core.local.clock.peek(voters(membership.membership()))
    }

    /// Subscribes to what is applied here from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.core().applied_state.feed.subscribe()
    }

    /// What a call of a service of `target`'s host must state.
    #[must_use]
    pub fn host_call_sender(&self, target: NodeId) -> HostCallSender {
        HostCallSender::new(&self.core().local.sender(target.0))
    }

    /// The current leader.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.core().leadership.subscribe()
    }

    /// Whether this node leads and a quorum has recently responded to it. A leader that lost its
    /// quorum still considers itself the leader, and can neither read nor write.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.core().consensus.is_leading()
    }

    /// Whether a leader with a quorum has recently confirmed to this node what is committed, so
    /// that it can serve. A new election does not interrupt it, unless it takes long.
    #[must_use]
    pub fn has_leader_contact(&self) -> bool {
        self.core().leader_contact.is_recent()
    }

    /// Why this node learns nothing of what the cluster commits, if that has lasted for longer than
    /// an election: callers that wait for a change in [`Replica::view`] must not wait here.
    #[must_use]
    pub fn standstill(&self) -> watch::Receiver<Option<Standstill>> {
        self.core().leader_contact.standstill()
    }

    /// Whether this node is drained: it must not lead, and callers that wait must wait at another one.
    #[must_use]
    pub fn drained(&self) -> watch::Receiver<bool> {
        self.core().candidacy.drained()
    }

    /// Whether this node belongs to a cluster, according to its own log: not while it waits to be
    /// added, or for the other first members.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.core().consensus.is_member()
    }

    /// Lets the first members form a new, empty cluster as soon as all of them respond and are empty, and waits until this
    /// node belongs to it. May be sent to any first member, and repeated.
    ///
    /// # Errors
    /// [`FormError`]; after [`FormError::Waiting`] the cluster may be formed later.
    pub async fn form(&self, deadline: Instant) -> Result<FormedCluster, FormError> {
        self.core().formation.form(deadline).await
    }

    /// What this node waits for before it belongs to a cluster; `None` if it does not wait.
    #[must_use]
    pub fn awaited(&self) -> Option<String> {
        self.core().formation.awaited()
    }

    /// Why the process must end, once it must.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<Arc<FatalError>>> {
        self.core().lifecycle.fatal()
    }

    /// The cluster's status, as far as this node can learn it within a second.
    pub async fn status(&self) -> Status {
        self.core().status_reports.collect().await
    }

    /// How this node's timing differs from that of the leader that it follows; `None` if it does not, as far as known.
    #[must_use]
    pub fn timing_mismatch(&self) -> Option<TimingMismatch> {
        let core = self.core();
        let leader = core.leadership.borrow().leader.clone();
        core.timing.mismatch(leader.map(|leader| leader.node_id))
    }

    /// The counters since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let core = self.core();
        let applied = &core.applied_state.counters;
        let log = core.log.counters();
        let submissions = core.submissions.counters();
        Counters {
            entries_proposed: core.batch_counters.entries.load(Ordering::Relaxed),
            commands_proposed: core.batch_counters.commands.load(Ordering::Relaxed),
            entries_applied: applied.entries.load(Ordering::Relaxed),
            commands_applied: applied.commands.load(Ordering::Relaxed),
            commands_forwarded: submissions.forwarded.load(Ordering::Relaxed),
            commands_refused: submissions.refused.load(Ordering::Relaxed),
            log_fsyncs: log.syncs.load(Ordering::Relaxed),
            log_bytes: log.bytes.load(Ordering::Relaxed),
            snapshots_made: applied.snapshots_made.load(Ordering::Relaxed),
            snapshots_installed: applied.snapshots_installed.load(Ordering::Relaxed),
            snapshots_refused: core.installs.refused(),
        }
    }

    /// The current values, for metrics.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        gauges::read(self.core())
    }

    /// Changes the membership or the leader, from any node. Repeating a change is harmless: false
    /// means that nothing had to change.
    ///
    /// # Errors
    /// [`ChangeError`]: a refusal has changed nothing; only after [`SubmitError::Unknown`] the
    /// change may have been made.
    pub async fn change(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Result<bool, ChangeError> {
        self.core().changes.change(change, deadline).await
    }

    /// What waits at this replica.
    #[must_use]
    pub fn pending(&self) -> Pending {
        let core = self.core();
        Pending {
            commands: core.queue.pending(),
            install: core.installs.pending(),
            outgoing_snapshot_count: core.links.outgoing_snapshot_count(),
        }
    }

    /// What waits on a member, in the encoding of its [`Inspector`](crate::Inspector). Needs no leader.
    ///
    /// # Errors
    /// [`InspectError`].
    pub async fn inspect(
        &self,
        node_id: NodeId,
        rows_max: u32,
        deadline: Instant,
    ) -> Result<Bytes, InspectError> {
        self.core()
            .inspections
            .inspect(node_id, rows_max, deadline)
            .await
    }

    /// Begins a snapshot now, without waiting for it.
    ///
    /// # Errors
    /// [`SubmitError::Shutdown`] if the replica has ended.
    pub async fn trigger_snapshot(&self) -> Result<(), SubmitError> {
        self.core()
            .raft
            .trigger()
            .snapshot()
            .await
            .map_err(|_| SubmitError::Shutdown)
    }

    /// Makes a member take a snapshot of everything that it has applied, unless it has one, and
    /// returns the index that it covers.
    ///
    /// # Errors
    /// [`BackupError`]: the snapshot may still be made later.
    pub async fn snapshot(&self, node_id: NodeId, deadline: Instant) -> Result<u64, BackupError> {
        self.core().backups.snapshot(node_id, deadline).await
    }

    /// A backup of everything that was acknowledged anywhere before the call. The deadline applies
    /// to its beginning; reading it may take any time.
    ///
    /// # Errors
    /// [`BackupError`].
    pub async fn backup(&self, deadline: Instant) -> Result<Backup, BackupError> {
        self.core().backups.backup(deadline).await
    }

    /// The last index that this node has applied, and its digest after it.
    #[must_use]
    pub fn applied_position(&self) -> (u64, u128) {
        let rows::AppliedPosition { log_id, digest, .. } =
            *self.core().applied_state.applied_position.borrow();
        (log_id.map_or(0, |log_id| log_id.index()), digest)
    }

    /// If this node leads, transfers leadership to another voter, if one takes over soon.
    pub async fn hand_over(&self) {
        self.core().transfers.hand_over().await;
    }

    /// The pool of the replica's blocking jobs. In a simulation, jobs run on the caller's runtime.
    #[must_use]
    pub fn blocking_pool(&self) -> BlockingPool {
        self.core().links.blocking_pool.clone()
    }

    /// Shuts the replica down: a leader transfers leadership first, so that no caller waits for an
    /// election. Later calls return that it has ended.
    pub async fn shutdown(&self) {
        let core = self.core();
        core.transfers.hand_over().await;
        core.lifecycle.end();
        // Consensus that ends under an append logs an error.
        core.appends.close();
        if timeout(APPENDS_GRACE, core.appends.wait()).await.is_err() {
            tracing::debug!("appends of peers were cut");
        }
        match timeout(CONSENSUS_GRACE, core.raft.shutdown()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "consensus did not shut down cleanly"),
            Err(_) => tracing::warn!("consensus does not shut down: it was left behind"),
        }
        if core.lifecycle.is_hung() {
            return;
        }
        let store = Arc::clone(&core.store);
        // So that a restart has nothing to replay; a crash at this moment only costs the replay.
        match core
            .links
            .blocking_pool
            .run(JobKind::Capture, move || store.flush())
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
