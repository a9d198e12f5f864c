//! The disk of this member, and what it still has space for.

use crate::attempt::SubmitError;
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::disk_pressure::{Disk, DiskPressure, quorum_disk_pressure};
use crate::log::record::LogEntry;
use crate::log::store::LogStore;
use crate::network::local::Local;
use crate::proposal::Proposal;
use crate::state::store::StateStore;
use crate::storage::{DiskSpace, Storage};
use flotilla_engine::Admission;
use openraft::EntryPayload;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The disk of this member, as last measured.
pub(crate) struct MemberDisk {
    parts: DiskParts,
    disk: watch::Sender<Disk>,
}

/// What decisions about the disk depend on.
pub(crate) struct DiskParts {
    pub(crate) data_disk: DataDisk,
    /// Below this much free space the node takes no new work.
    pub(crate) reserve_bytes: u64,
    pub(crate) log: LogStore,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) local: Arc<Local>,
    pub(crate) consensus: ConsensusView,
}

/// The disk to measure.
#[derive(Clone)]
pub(crate) struct DataDisk {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: PathBuf,
}

impl MemberDisk {
    /// The disk before its first measurement.
    pub(crate) fn new(parts: DiskParts) -> Self {
        Self {
            parts,
            disk: watch::Sender::default(),
        }
    }

    /// The disk, as last measured.
    pub(crate) fn measured(&self) -> Disk {
        *self.disk.borrow()
    }

    /// The disk pressure of this member.
    pub(crate) fn pressure(&self) -> DiskPressure {
        self.disk.borrow().disk_pressure
    }

    /// Checks whether a command may be proposed here, at the leader.
    ///
    /// # Errors
    /// [`SubmitError::DiskLow`].
    pub(crate) fn check(&self, admission: Admission) -> Result<(), SubmitError> {
        let pressure = self.pressure().min(self.quorum_disk_pressure());
        if pressure.admits(admission) {
            Ok(())
        } else {
            Err(SubmitError::DiskLow)
        }
    }

    /// Whether a follower writes these entries of a leader. A new leader resends entries that are
    /// already here, to find the end of the match.
    pub(crate) fn keeps(&self, entries: &[LogEntry]) -> bool {
        if !self.disk.borrow().is_full {
            return true;
        }
        let last = self.parts.log.last().map(|log_id| log_id.index());
        let is_new_command = |entry: &LogEntry| {
            let is_command = matches!(entry.payload, EntryPayload::Normal(Proposal::Commands(_)));
            is_command && Some(entry.log_id.index()) > last
        };
        !entries.iter().any(is_new_command)
    }

    /// Whether another member's state can be received beside the current one. It is assumed to be
    /// about as large.
    pub(crate) fn has_space_for_state(&self) -> bool {
        let figures = self.parts.store.figures().unwrap_or_default();
        let state_bytes = figures.files_bytes.saturating_add(figures.buffers_bytes);
        let reserve_bytes = self.parts.reserve_bytes;
        let needed = state_bytes.saturating_add(reserve_bytes / 2);
        let disk = self.measured();
        disk.disk_pressure > DiskPressure::Critical && disk.fits(needed, reserve_bytes)
    }

    /// Whether there is space for a snapshot of the state: it writes what is not in files yet, and
    /// links the rest. The log can only be purged behind a snapshot, so it may use the reserve.
    pub(crate) fn has_space_for_snapshot(&self) -> bool {
        let figures = self.parts.store.figures().unwrap_or_default();
        let disk = self.measured();
        disk.fits(figures.buffers_bytes, self.parts.reserve_bytes)
    }

    /// The disk pressure that a quorum of voters stays within; none while only this member can be
    /// short of space. Called for each command, so it counts voters only while another one reports
    /// a shortage.
    fn quorum_disk_pressure(&self) -> DiskPressure {
        if self.parts.local.has_no_other_member_short_of_disk() {
            return DiskPressure::Normal;
        }
        let membership = self.parts.consensus.membership();
        let voters = membership.membership().get_joint_config();
        quorum_disk_pressure(voters, |node_id| match node_id {
            own if own == self.parts.local.node_id => self.pressure(),
            // A voter without a report yet counts as having space.
            other => self.parts.local.disk_pressure_of(other).unwrap_or_default(),
        })
    }

    /// Records the free space on the disk.
    pub(crate) fn measure(&self) {
        let DataDisk { storage, directory } = &self.parts.data_disk;
        match storage.space(directory) {
            Ok(space) => self.record(space),
            // The last value stays: a disk that cannot be measured fails elsewhere too.
            Err(error) => tracing::warn!(%error, "the free disk space cannot be measured"),
        }
    }

    fn record(&self, space: Option<DiskSpace>) {
        let reserve_bytes = self.parts.reserve_bytes;
        let known = self.measured();
        let disk = known.after(space, reserve_bytes);
        self.disk.send_replace(disk);
        let free_bytes = space.map_or(0, |space| space.free_bytes);
        if disk.is_full && !known.is_full {
            tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is almost full: no commands are written, not even those of a leader"
            );
        }
        if disk.disk_pressure == known.disk_pressure {
            return;
        }
        match disk.disk_pressure {
            DiskPressure::Normal => tracing::info!(free_bytes, "the disk has free space again"),
            DiskPressure::Low => tracing::warn!(
                free_bytes,
                reserve_bytes,
                "the disk is nearly full: no new work is accepted"
            ),
            DiskPressure::Critical => tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is nearly full: only what cannot be refused is written"
            ),
        }
    }
}
