//! The parts of a running replica, shared by its tasks.

use crate::backup::BACKUPS_MAX;
use crate::batch::batcher::BatchCounters;
use crate::batch::queue::{Queue, QueueBounds};
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::formation::FormationProgress;
use crate::cluster::leader_contact::LeaderContact;
use crate::cluster::leadership::Leadership;
use crate::cluster::member_disk::{DataDisk, DiskParts, MemberDisk};
use crate::inspection::Inspector;
use crate::lifecycle::Lifecycle;
use crate::log::store::LogStore;
use crate::network::calls::PeerError;
use crate::network::installs::Installs;
use crate::network::links::{Links, Local};
use crate::raft::type_config::ConsensusHandle;
use crate::read::{ReadBarrier, ReadParts, Reads, Waiters};
use crate::state::applier::AppliedState;
use crate::state::snapshot::{Snapshot, SnapshotData, meta_of};
use crate::state::store::StateStore;
use crate::storage::DirectoryLock;
use crate::tuning::Tuning;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

/// The parts of a running replica.
pub(crate) struct Core {
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) tuning: Tuning,
    pub(crate) raft: ConsensusHandle,
    pub(crate) consensus: ConsensusView,
    pub(crate) log: LogStore,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) applied_state: AppliedState,
    pub(crate) queue: Arc<Queue>,
    pub(crate) batch_counters: Arc<BatchCounters>,
    pub(crate) submit_counters: SubmitCounters,
    pub(crate) barrier: ReadBarrier,
    pub(crate) reads: Arc<Reads>,
    pub(crate) leader_contact: Arc<LeaderContact>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) formation: FormationProgress,
    /// Whether peers may count on this node: not before it is known not to be a wiped member.
    pub(crate) is_admitted: AtomicBool,
    /// Whether its disk has lost entries that it had acknowledged: it takes part in nothing.
    pub(crate) has_lost_tail: AtomicBool,
    /// The snapshot that is being received.
    pub(crate) installs: Installs,
    /// Held during a membership change: one at a time.
    pub(crate) changing: Arc<Mutex<()>>,
    pub(crate) disk: Arc<MemberDisk>,
    /// Whether this member is drained.
    pub(crate) drained: watch::Sender<bool>,
    /// Permits for concurrent backups.
    pub(crate) backups: Arc<Semaphore>,
    /// Says what waits on this node.
    pub(crate) inspector: Arc<dyn Inspector>,
    pub(crate) lifecycle: Lifecycle,
    /// The open streams of appends from peers.
    pub(crate) appends: TaskTracker,
    /// Locks the data directory.
    pub(crate) _lock: DirectoryLock,
}

/// The results of submissions since the start.
#[derive(Debug, Default)]
pub(crate) struct SubmitCounters {
    pub(crate) forwarded: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// What a core is made of: the parts of an opened directory, and consensus on them.
pub(crate) struct CoreParts {
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) tuning: Tuning,
    pub(crate) raft: ConsensusHandle,
    pub(crate) log: LogStore,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) applied_state: AppliedState,
    pub(crate) formation: FormationProgress,
    pub(crate) inspector: Arc<dyn Inspector>,
    pub(crate) data_disk: DataDisk,
    pub(crate) lock: DirectoryLock,
}

impl Core {
    /// The core of a replica whose tasks have not started, and the readers that will wait for them.
    pub(crate) fn new(parts: CoreParts) -> (Arc<Self>, Waiters) {
        let tuning = &parts.tuning;
        let applied_state = &parts.applied_state;
        let divergence = applied_state.divergence.clone();
        let lifecycle = Lifecycle::new(parts.local.node_id, divergence);
        let (barrier, waiters) = ReadBarrier::new();
        let consensus = ConsensusView::new(&parts.raft, &parts.local, tuning);
        let leader_contact = LeaderContact::new(tuning.leader_timeout());
        let reads = Reads::new(ReadParts {
            barrier: barrier.clone(),
            applied_position: applied_state.applied_position.subscribe(),
            consensus: consensus.clone(),
            lifecycle: lifecycle.clone(),
            leader_timeout: tuning.leader_timeout(),
        });
        let disk = MemberDisk::new(DiskParts {
            data_disk: parts.data_disk,
            reserve_bytes: tuning.disk_reserve_bytes,
            log: parts.log.clone(),
            store: Arc::clone(&parts.store),
            local: Arc::clone(&parts.local),
            consensus: consensus.clone(),
        });
        let core = Self {
            queue: Arc::new(Queue::new(queue_bounds(tuning))),
            batch_counters: Arc::default(),
            submit_counters: SubmitCounters::default(),
            barrier,
            reads: Arc::new(reads),
            leader_contact: Arc::new(leader_contact),
            leadership: watch::Sender::new(Leadership::default()),
            lifecycle,
            formation: parts.formation,
            is_admitted: AtomicBool::new(false),
            has_lost_tail: AtomicBool::new(false),
            installs: Installs::default(),
            changing: Arc::default(),
            disk: Arc::new(disk),
            drained: watch::Sender::new(false),
            backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
            inspector: parts.inspector,
            appends: TaskTracker::new(),
            local: parts.local,
            links: parts.links,
            tuning: parts.tuning,
            raft: parts.raft,
            consensus,
            log: parts.log,
            store: parts.store,
            applied_state: parts.applied_state,
            _lock: parts.lock,
        };
        (Arc::new(core), waiters)
    }

    /// Lets peers count on this node.
    pub(crate) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Release);
    }

    /// Whether peers may count on this node.
    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Acquire)
    }

    /// A snapshot of the state after the entry at `index` or a later one, taken now if necessary.
    ///
    /// # Errors
    /// [`PeerError::Failed`] if none is ready in time.
    pub(crate) async fn snapshot_at(&self, index: u64) -> Result<Snapshot, PeerError> {
        let failed = |error: &dyn std::fmt::Display| PeerError::Failed(error.to_string());
        let deadline = Instant::now() + self.tuning.install_snapshot_timeout;
        let mut applied_position = self.applied_state.applied_position.subscribe();
        let applied =
            applied_position.wait_for(|applied_position| applied_position.index() >= Some(index));
        let applied = timeout_at(deadline, applied).await;
        applied
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        let made = self.snapshot_here(deadline).await;
        made.map_err(|error| failed(&error))?;
        // A state that is received meanwhile replaces it.
        let rows = self.store.captured();
        let rows = rows.ok_or_else(|| failed(&"the snapshot has just been replaced"))?;
        let meta = meta_of(rows.as_ref()).map_err(|error| failed(&error))?;
        let snapshot = SnapshotData::Captured(rows);
        Ok(Snapshot { meta, snapshot })
    }

    /// The index of this node's last snapshot.
    pub(crate) fn snapshot_index(&self) -> Option<u64> {
        let captured = self.store.captured()?;
        crate::state::rows::applied_position(captured.as_ref())
            .ok()?
            .index()
    }
}

fn queue_bounds(tuning: &Tuning) -> QueueBounds {
    QueueBounds {
        intake_max: tuning.intake_max,
        progress_max: tuning.progress_max,
        bytes_max: tuning.waiting_bytes_max,
    }
}
