//! Disk pressure: keeps a member's disk from filling up (design rule 13: a clear refusal, never a
//! crash).
//!
//! A node that cannot write its log ends, and cannot restart until there is space. So it keeps a
//! reserve. Below the reserve, the cluster takes no new work, while open work continues and
//! retention frees what it can. Below half of it, a leader takes no commands, and a follower
//! receives no state of another member. Below a quarter, a follower takes no commands either: in
//! between it still takes what a leader had in flight, so that nothing gets stuck behind that. It
//! always takes everything else: the entries of an election, of a membership change and of a log
//! purge. The reserve is for the rest: votes, what is already committed, and the stores'
//! compactions. Each level ends by itself when space is free again, a quarter above where it began,
//! so that it does not oscillate.
//!
//! Members report their disk pressure to the leader with each response. The leader serves as long
//! as a quorum of voters has space, since it does not need the others, and transfers leadership to
//! one of those if it has less itself.

use crate::attempt::SubmitError;
use crate::cluster::leadership::Follower;
use crate::core::Core;
use crate::log::record::LogEntry;
use crate::proposal::Proposal;
use crate::storage::{DiskSpace, Storage};
use flotilla_engine::{Admission, NodeId};
use openraft::EntryPayload;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// What a member still writes, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskPressure {
    /// No commands of callers: only what keeps the cluster running.
    Critical,
    /// What completes open work.
    Low,
    /// All commands.
    #[default]
    Normal,
}

impl DiskPressure {
    /// The level with this much free space, after the level `self`.
    fn after(self, free_bytes: u64, reserve_bytes: u64) -> Self {
        if is_short(free_bytes, reserve_bytes / 2, self == Self::Critical) {
            Self::Critical
        } else if is_short(free_bytes, reserve_bytes, self <= Self::Low) {
            Self::Low
        } else {
            Self::Normal
        }
    }

    fn admits(self, admission: Admission) -> bool {
        match (self, admission) {
            (Self::Normal, _) | (Self::Low, Admission::Progress) => true,
            (Self::Low, Admission::Intake) | (Self::Critical, _) => false,
        }
    }
}

/// The disk of a data directory, as last measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    /// Unset before the first measurement, and for a disk without a limit.
    pub(crate) space: Option<DiskSpace>,
    /// The current level.
    pub(crate) disk_pressure: DiskPressure,
    /// Whether not even a leader's commands in flight are written.
    is_full: bool,
}

impl Disk {
    /// The same disk, measured again.
    fn after(self, space: Option<DiskSpace>, reserve_bytes: u64) -> Self {
        let Some(DiskSpace { free_bytes, .. }) = space else {
            return Self::default();
        };
        Self {
            space,
            disk_pressure: self.disk_pressure.after(free_bytes, reserve_bytes),
            is_full: is_short(free_bytes, reserve_bytes / 4, self.is_full),
        }
    }

    /// Whether `bytes` can be written; always if the disk is not checked.
    fn fits(self, bytes: u64, reserve_bytes: u64) -> bool {
        let is_watched = reserve_bytes > 0;
        let space = self.space.filter(|_| is_watched);
        space.is_none_or(|space| space.free_bytes >= bytes)
    }
}

/// Whether less than `bytes` are free; once it was, more must be free before that ends.
fn is_short(free_bytes: u64, bytes: u64, was_short: bool) -> bool {
    let margin = if was_short { bytes / 4 } else { 0 };
    free_bytes < bytes.saturating_add(margin)
}

/// The disk to measure.
pub(crate) struct DataDisk {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: PathBuf,
}

impl Core {
    /// The disk pressure of this member.
    pub(crate) fn disk_pressure(&self) -> DiskPressure {
        self.disk.borrow().disk_pressure
    }

    /// Checks whether a command may be proposed here, at the leader.
    ///
    /// # Errors
    /// [`SubmitError::DiskLow`].
    pub(crate) fn check_disk(&self, admission: Admission) -> Result<(), SubmitError> {
        if self
            .disk_pressure()
            .min(self.quorum_disk_pressure())
            .admits(admission)
        {
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
        let last = self.log.last().map(|log_id| log_id.index());
        let is_new_command = |entry: &LogEntry| {
            let is_command = matches!(entry.payload, EntryPayload::Normal(Proposal::Commands(_)));
            is_command && Some(entry.log_id.index()) > last
        };
        !entries.iter().any(is_new_command)
    }

    /// Whether another member's state can be received beside the current one. It is assumed to be
    /// about as large.
    pub(crate) fn has_space_for_state(&self) -> bool {
        let figures = self.store.figures().unwrap_or_default();
        let state_bytes = figures.files_bytes.saturating_add(figures.buffers_bytes);
        let reserve_bytes = self.tuning.disk_reserve_bytes;
        let needed = state_bytes.saturating_add(reserve_bytes / 2);
        let disk = *self.disk.borrow();
        disk.disk_pressure > DiskPressure::Critical && disk.fits(needed, reserve_bytes)
    }

    /// Whether there is space for a snapshot of the state: it writes what is not in files yet, and
    /// links the rest. The log can only be purged behind a snapshot, so it may use the reserve.
    pub(crate) fn has_space_for_snapshot(&self) -> bool {
        let figures = self.store.figures().unwrap_or_default();
        let disk = *self.disk.borrow();
        disk.fits(figures.buffers_bytes, self.tuning.disk_reserve_bytes)
    }

    /// The disk pressure that a quorum of voters stays within; none while only this member can be
    /// short of space. Called for each command, so it counts voters only while another one reports
    /// a shortage.
    fn quorum_disk_pressure(&self) -> DiskPressure {
        if self.local.has_no_other_member_short_of_disk() {
            return DiskPressure::Normal;
        }
        let membership = self.consensus.membership();
        let voters = membership.membership().get_joint_config();
        quorum_disk_pressure(voters, |node_id| match node_id {
            own if own == self.local.node_id => self.disk_pressure(),
            // A voter without a report yet counts as having space.
            other => self.local.disk_pressure_of(other).unwrap_or_default(),
        })
    }

    /// If this node leads, transfers leadership to a voter with more free space, if there is one.
    async fn yield_leadership(&self) {
        let own = self.disk_pressure();
        if own == DiskPressure::Normal || !self.leadership.borrow().is_self {
            return;
        }
        let followers = self.consensus.followers().into_iter();
        let followers =
            followers.map(|follower| (self.local.disk_pressure_of(follower.node_id), follower));
        if let Some(to) = least_pressed(own, followers) {
            let deadline = Instant::now() + self.tuning.upkeep_interval;
            tracing::info!(
                to,
                "another member has more free disk space: leadership is transferred to it"
            );
            drop(self.transfer_leader(Some(NodeId(to)), deadline).await);
        }
    }

    /// Records the free space on the disk.
    pub(crate) fn measure(&self, disk: &DataDisk) {
        match disk.storage.space(&disk.directory) {
            Ok(space) => self.measured(space),
            // The last value stays: a disk that cannot be measured fails elsewhere too.
            Err(error) => tracing::warn!(%error, "the free disk space cannot be measured"),
        }
    }

    fn measured(&self, space: Option<DiskSpace>) {
        let reserve_bytes = self.tuning.disk_reserve_bytes;
        let known = *self.disk.borrow();
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

/// The disk pressure that a quorum of the voters stays within; of both voter sets during a change.
fn quorum_disk_pressure(
    sets: &[BTreeSet<u64>],
    disk_pressure_of: impl Fn(u64) -> DiskPressure,
) -> DiskPressure {
    let disk_pressures = sets.iter().map(|voters| {
        let mut disk_pressures: Vec<DiskPressure> = voters
            .iter()
            .map(|node_id| disk_pressure_of(*node_id))
            .collect();
        disk_pressures.sort_unstable_by(|one, other| other.cmp(one));
        disk_pressures
            .get(disk_pressures.len() / 2)
            .copied()
            .unwrap_or_default()
    });
    disk_pressures.min().unwrap_or_default()
}

/// The follower to lead instead of a node with this disk pressure: it has reported more space, and
/// has nearly all of the log.
fn least_pressed(
    own: DiskPressure,
    followers: impl Iterator<Item = (Option<DiskPressure>, Follower)>,
) -> Option<u64> {
    followers
        .filter_map(|(disk_pressure, follower)| Some((disk_pressure?, follower)))
        .filter(|(disk_pressure, follower)| *disk_pressure > own && follower.has_caught_up())
        .max_by_key(|(disk_pressure, follower)| (*disk_pressure, follower.matched))
        .map(|(_, follower)| follower.node_id)
}

/// Measures the disk until it is dropped.
pub(crate) async fn watch_disk(core: Arc<Core>, disk: DataDisk) {
    let mut ticks = interval(core.tuning.upkeep_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        core.measure(&disk);
        core.yield_leadership().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::type_config::LogId;

    #[test]
    fn new_work_stops_first_then_everything_and_each_resumes_with_a_margin() {
        let mut disk_pressure = DiskPressure::Normal;
        let mut seen = Vec::new();
        for free_bytes in [
            1000, 800, 799, 900, 999, 1000, 799, 400, 399, 400, 499, 500, 999, 1000,
        ] {
            disk_pressure = disk_pressure.after(free_bytes, 800);
            seen.push(disk_pressure);
        }
        use DiskPressure::{Critical, Low, Normal};
        assert_eq!(
            seen,
            [
                Normal, Normal, Low, Low, Low, Normal, Low, Low, Critical, Critical, Critical, Low,
                Low, Normal
            ]
        );
    }

    #[test]
    fn without_a_reserve_there_is_always_room() {
        assert_eq!(DiskPressure::Normal.after(0, 0), DiskPressure::Normal);
    }

    #[test]
    fn open_work_ends_while_new_work_waits() {
        assert!(DiskPressure::Low.admits(Admission::Progress));
        assert!(!DiskPressure::Low.admits(Admission::Intake));
        assert!(!DiskPressure::Critical.admits(Admission::Progress));
        assert!(DiskPressure::Normal.admits(Admission::Intake));
    }

    #[test]
    fn what_is_under_way_is_written_down_to_a_quarter_and_again_with_a_margin() {
        let mut disk = Disk::default();
        let mut seen = Vec::new();
        for free_bytes in [1000, 399, 200, 199, 249, 250, 199] {
            let bytes = 1000;
            disk = disk.after(Some(DiskSpace { free_bytes, bytes }), 800);
            seen.push((disk.disk_pressure == DiskPressure::Critical, disk.is_full));
        }
        let (free, low, full) = ((false, false), (true, false), (true, true));
        assert_eq!(seen, [free, low, low, full, full, low, full]);
        assert!(!disk.after(None, 800).is_full);
    }

    #[test]
    fn what_does_not_fit_is_not_begun_unless_the_disk_is_not_looked_at() {
        let space = DiskSpace {
            free_bytes: 100,
            bytes: 1000,
        };
        let disk = Disk::default().after(Some(space), 8);
        assert!(disk.fits(100, 8) && !disk.fits(101, 8));
        assert!(disk.fits(101, 0));
        assert!(Disk::default().fits(u64::MAX, 8));
    }

    #[test]
    fn while_voters_change_a_quorum_of_both_sets_has_the_room() {
        use DiskPressure::{Critical, Normal};
        let full = |full: &'static [u64]| {
            move |node_id| match full.contains(&node_id) {
                true => Critical,
                false => Normal,
            }
        };
        let three = [BTreeSet::from([1, 2, 3])];
        assert_eq!(quorum_disk_pressure(&three, full(&[1])), Normal);
        assert_eq!(quorum_disk_pressure(&three, full(&[1, 2])), Critical);
        // Of all five, three have space; of the first three, one.
        let both = [BTreeSet::from([1, 2, 3]), BTreeSet::from([3, 4, 5])];
        assert_eq!(quorum_disk_pressure(&both, full(&[1, 2])), Critical);
        assert_eq!(quorum_disk_pressure(&both, full(&[1, 4])), Normal);
        assert_eq!(quorum_disk_pressure(&[], full(&[])), Normal);
    }

    #[test]
    fn a_leader_yields_to_a_follower_that_has_said_that_it_has_room_and_has_the_log() {
        use DiskPressure::{Critical, Low, Normal};
        let follower = |node_id, lag| Follower {
            node_id,
            matched: Some(LogId::new_term_index(1, 1_000 - lag)),
            lag,
        };
        let chosen = |followers: Vec<(Option<DiskPressure>, Follower)>| {
            least_pressed(Low, followers.into_iter())
        };
        let near = (Some(Normal), follower(2, 1));
        let far = (Some(Normal), follower(3, 900));
        assert_eq!(chosen(vec![near, far]), Some(2));
        assert_eq!(chosen(vec![far]), None);
        assert_eq!(chosen(vec![(None, follower(2, 0))]), None);
        assert_eq!(chosen(vec![(Some(Low), follower(2, 0))]), None);
        let other = (Some(Normal), follower(4, 0));
        assert_eq!(chosen(vec![near, other, far]), Some(4));
        let little = (Some(Low), follower(5, 0));
        let from_full = least_pressed(Critical, [near, little].into_iter());
        assert_eq!(from_full, Some(2));
    }
}
