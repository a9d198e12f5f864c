//! Composes the parts of a replica.
//!
//! Each part names only the parts that it needs, never [`Core`]: so what depends on what can be read here.

use crate::backup::{BackupParts, Backups};
use crate::batch::batcher::BatchCounters;
use crate::batch::queue::{Queue, QueueBounds};
use crate::cluster::candidacy::Candidacy;
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::drain::Drains;
use crate::cluster::formation::{Formation, FormationProcess};
use crate::cluster::formation_progress::FormationProgress;
use crate::cluster::inspections::Inspections;
use crate::cluster::leader_contact::LeaderContact;
use crate::cluster::leader_search::LeaderSearch;
use crate::cluster::leadership::Leadership;
use crate::cluster::member_disk::{DataDisk, DiskParts, MemberDisk};
use crate::cluster::members::{ChangeParts, Changes};
use crate::cluster::probe::Probes;
use crate::cluster::retired_ids::RetiredIds;
use crate::cluster::status::StatusReports;
use crate::cluster::timing::Timing;
use crate::cluster::transfer::Transfers;
use crate::control::ControlWriter;
use crate::inspection::Inspector;
use crate::lifecycle::Lifecycle;
use crate::log::store::LogStore;
use crate::network::installs::Installs;
use crate::network::links::Links;
use crate::network::local::Local;
use crate::raft::type_config::ConsensusHandle;
use crate::read::{ReadBarrier, ReadParts, Reads, Waiters};
use crate::snapshot_maker::SnapshotMaker;
use crate::state::applier::AppliedState;
use crate::state::store::StateStore;
use crate::storage::DirectoryLock;
use crate::submit::{SubmissionParts, Submissions};
use crate::tuning::Tuning;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// The parts of a running replica, for its public interface, its tasks and the handler of its peers.
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
    pub(crate) submissions: Submissions,
    pub(crate) control_writer: ControlWriter,
    pub(crate) barrier: ReadBarrier,
    pub(crate) reads: Arc<Reads>,
    pub(crate) leader_contact: Arc<LeaderContact>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) formation: FormationProcess,
    pub(crate) probes: Probes,
    pub(crate) candidacy: Arc<Candidacy>,
    pub(crate) status_reports: StatusReports,
    pub(crate) timing: Timing,
    pub(crate) transfers: Transfers,
    pub(crate) drains: Drains,
    /// The snapshot that is being received.
    pub(crate) installs: Installs,
    pub(crate) retired_ids: RetiredIds,
    pub(crate) changes: Arc<Changes>,
    pub(crate) disk: Arc<MemberDisk>,
    pub(crate) snapshot_maker: SnapshotMaker,
    pub(crate) backups: Backups,
    pub(crate) inspections: Inspections,
    pub(crate) lifecycle: Lifecycle,
    /// The open streams of appends from peers.
    pub(crate) appends: TaskTracker,
    /// Locks the data directory.
    pub(crate) _lock: DirectoryLock,
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
    pub(crate) formation: Formation,
    pub(crate) inspector: Arc<dyn Inspector>,
    pub(crate) data_disk: DataDisk,
    pub(crate) lock: DirectoryLock,
}

impl Core {
    /// The core of a replica whose tasks have not started, and the readers that will wait for them.
    pub(crate) fn new(parts: CoreParts) -> (Arc<Self>, Waiters) {
        let (barrier, waiters) = ReadBarrier::new();
        let basis = Basis::new(parts, barrier);
        let disk = Arc::new(basis.disk());
        let leader_search = basis.leader_search();
        let control_writer = basis.control_writer(&leader_search);
        let submissions = basis.submissions(&leader_search, &disk);
        let reads = Arc::new(basis.reads());
        let snapshot_maker = basis.snapshot_maker(&disk);
        let backups = basis.backups(&reads, &snapshot_maker);
        let inspections = basis.inspections();
        let probes = basis.probes();
        let formation = basis.formation(&probes);
        let candidacy = Arc::new(basis.candidacy());
        let status_reports = basis.status_reports(&candidacy, &snapshot_maker);
        let transfers = basis.transfers(&probes, &status_reports);
        let drains = basis.drains(&candidacy, &transfers, &status_reports);
        let retired_ids = basis.retired_ids();
        let changes = Changes::new(ChangeParts {
            leader_search,
            leadership: basis.leadership.subscribe(),
            barrier: basis.barrier.clone(),
            applied_state: basis.parts.applied_state.clone(),
            probes: probes.clone(),
            transfers: transfers.clone(),
            drains: drains.clone(),
            retired_ids: retired_ids.clone(),
            local: Arc::clone(&basis.parts.local),
            links: Arc::clone(&basis.parts.links),
            raft: basis.parts.raft.clone(),
            consensus: basis.consensus.clone(),
        });
        let changes = Arc::new(changes);
        let core = Self {
            queue: basis.queue,
            batch_counters: Arc::default(),
            submissions,
            control_writer,
            barrier: basis.barrier,
            reads,
            leader_contact: basis.leader_contact,
            leadership: basis.leadership,
            lifecycle: basis.lifecycle,
            formation,
            probes,
            candidacy,
            status_reports,
            timing: Timing::new(basis.parts.local.election_ms),
            transfers,
            drains,
            installs: Installs::default(),
            retired_ids,
            changes,
            disk,
            snapshot_maker,
            backups,
            inspections,
            appends: TaskTracker::new(),
            local: basis.parts.local,
            links: basis.parts.links,
            tuning: basis.parts.tuning,
            raft: basis.parts.raft,
            consensus: basis.consensus,
            log: basis.parts.log,
            store: basis.parts.store,
            applied_state: basis.parts.applied_state,
            _lock: basis.parts.lock,
        };
        (Arc::new(core), waiters)
    }
}

/// What several parts of a core share.
struct Basis {
    parts: CoreParts,
    barrier: ReadBarrier,
    lifecycle: Lifecycle,
    consensus: ConsensusView,
    leader_contact: Arc<LeaderContact>,
    leadership: watch::Sender<Leadership>,
    queue: Arc<Queue>,
    formation_progress: Arc<FormationProgress>,
}

impl Basis {
    fn new(parts: CoreParts, barrier: ReadBarrier) -> Self {
        let divergence = parts.applied_state.divergence.clone();
        let timeout = parts.tuning.leader_timeout();
        Self {
            barrier,
            lifecycle: Lifecycle::new(parts.local.node_id, divergence),
            consensus: ConsensusView::new(&parts.raft, &parts.local, &parts.tuning),
            leader_contact: Arc::new(LeaderContact::new(timeout)),
            leadership: watch::Sender::new(Leadership::default()),
            queue: Arc::new(Queue::new(queue_bounds(&parts.tuning))),
            formation_progress: Arc::new(FormationProgress::new(parts.formation.first_members())),
            parts,
        }
    }

    fn reads(&self) -> Reads {
        Reads::new(ReadParts {
            barrier: self.barrier.clone(),
            applied_position: self.parts.applied_state.applied_position.subscribe(),
            consensus: self.consensus.clone(),
            lifecycle: self.lifecycle.clone(),
            leader_timeout: self.parts.tuning.leader_timeout(),
        })
    }

    fn disk(&self) -> MemberDisk {
        MemberDisk::new(DiskParts {
            data_disk: self.parts.data_disk.clone(),
            reserve_bytes: self.parts.tuning.disk_reserve_bytes,
            log: self.parts.log.clone(),
            store: Arc::clone(&self.parts.store),
            local: Arc::clone(&self.parts.local),
            consensus: self.consensus.clone(),
        })
    }

    fn leader_search(&self) -> LeaderSearch {
        LeaderSearch {
            leadership: self.leadership.subscribe(),
            leader_contact: Arc::clone(&self.leader_contact),
            consensus: self.consensus.clone(),
            lifecycle: self.lifecycle.clone(),
            leader_timeout: self.parts.tuning.leader_timeout(),
        }
    }

    fn control_writer(&self, leader_search: &LeaderSearch) -> ControlWriter {
        ControlWriter {
            raft: self.parts.raft.clone(),
            links: Arc::clone(&self.parts.links),
            leader_search: leader_search.clone(),
        }
    }

    fn submissions(&self, leader_search: &LeaderSearch, disk: &Arc<MemberDisk>) -> Submissions {
        Submissions::new(SubmissionParts {
            queue: Arc::clone(&self.queue),
            leader_search: leader_search.clone(),
            links: Arc::clone(&self.parts.links),
            disk: Arc::clone(disk),
            consensus: self.consensus.clone(),
            engine_version: self.parts.applied_state.engine_version.subscribe(),
            tuning: self.parts.tuning.clone(),
        })
    }

    fn snapshot_maker(&self, disk: &Arc<MemberDisk>) -> SnapshotMaker {
        SnapshotMaker {
            raft: self.parts.raft.clone(),
            store: Arc::clone(&self.parts.store),
            applied_position: self.parts.applied_state.applied_position.subscribe(),
            disk: Arc::clone(disk),
            lifecycle: self.lifecycle.clone(),
            timeout: self.parts.tuning.install_snapshot_timeout,
        }
    }

    fn backups(&self, reads: &Arc<Reads>, snapshot_maker: &SnapshotMaker) -> Backups {
        Backups::new(BackupParts {
            snapshot_maker: snapshot_maker.clone(),
            reads: Arc::clone(reads),
            store: Arc::clone(&self.parts.store),
            local: Arc::clone(&self.parts.local),
            links: Arc::clone(&self.parts.links),
            consensus: self.consensus.clone(),
        })
    }

    fn inspections(&self) -> Inspections {
        Inspections {
            inspector: Arc::clone(&self.parts.inspector),
            local: Arc::clone(&self.parts.local),
            links: Arc::clone(&self.parts.links),
            consensus: self.consensus.clone(),
        }
    }

    fn probes(&self) -> Probes {
        Probes {
            local: Arc::clone(&self.parts.local),
            links: Arc::clone(&self.parts.links),
            progress: Arc::clone(&self.formation_progress),
        }
    }

    fn formation(&self, probes: &Probes) -> FormationProcess {
        FormationProcess {
            formation: self.parts.formation.clone(),
            progress: Arc::clone(&self.formation_progress),
            probes: probes.clone(),
            local: Arc::clone(&self.parts.local),
            log: self.parts.log.clone(),
            raft: self.parts.raft.clone(),
            consensus: self.consensus.clone(),
            lifecycle: self.lifecycle.clone(),
        }
    }

    fn candidacy(&self) -> Candidacy {
        Candidacy::new(self.parts.local.node_id, self.parts.raft.clone())
    }

    fn status_reports(
        &self,
        candidacy: &Arc<Candidacy>,
        snapshot_maker: &SnapshotMaker,
    ) -> StatusReports {
        StatusReports {
            local: Arc::clone(&self.parts.local),
            links: Arc::clone(&self.parts.links),
            raft: self.parts.raft.clone(),
            consensus: self.consensus.clone(),
            applied_state: self.parts.applied_state.clone(),
            snapshot_maker: snapshot_maker.clone(),
            candidacy: Arc::clone(candidacy),
            lifecycle: self.lifecycle.clone(),
        }
    }

    fn transfers(&self, probes: &Probes, status_reports: &StatusReports) -> Transfers {
        Transfers {
            local: Arc::clone(&self.parts.local),
            raft: self.parts.raft.clone(),
            consensus: self.consensus.clone(),
            leadership: self.leadership.subscribe(),
            probes: probes.clone(),
            status_reports: status_reports.clone(),
            tuning: self.parts.tuning.clone(),
        }
    }

    fn drains(
        &self,
        candidacy: &Arc<Candidacy>,
        transfers: &Transfers,
        status_reports: &StatusReports,
    ) -> Drains {
        Drains {
            candidacy: Arc::clone(candidacy),
            transfers: transfers.clone(),
            status_reports: status_reports.clone(),
            local: Arc::clone(&self.parts.local),
            links: Arc::clone(&self.parts.links),
            consensus: self.consensus.clone(),
            leadership: self.leadership.subscribe(),
            leader_contact: Arc::clone(&self.leader_contact),
            election_max: self.parts.tuning.election_max,
        }
    }

    fn retired_ids(&self) -> RetiredIds {
        RetiredIds {
            store: Arc::clone(&self.parts.store),
            lifecycle: self.lifecycle.clone(),
        }
    }
}

fn queue_bounds(tuning: &Tuning) -> QueueBounds {
    QueueBounds {
        intake_max: tuning.intake_max,
        progress_max: tuning.progress_max,
        bytes_max: tuning.waiting_bytes_max,
    }
}
