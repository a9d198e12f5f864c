//! Keeping a member's disk from filling up (design rule 13: a clear refusal, never a crash).
//!
//! A node that cannot write its log ends, and starts again only once there is room. So it keeps a reserve. Below
//! it the cluster takes no new work, while open work goes on and retention frees what it can. Below half of
//! it a leader takes no commands, and a follower no state of another member. Below a quarter a follower takes no
//! commands either: in between it still takes what a leader had under way, so that nothing is stuck behind that.
//! All else it takes at any time: what an election, a change of members and the end of the log's older part
//! are written as. What the reserve is for is the rest: votes, what is committed already, and the stores' own
//! rewriting. With more room each goes on by itself, a quarter above where it stopped, so that it does not change
//! to and fro.
//!
//! Members tell the leader of their room with each answer. It serves as far as a quorum of voters has room,
//! since it can do without the others, and hands over to one of those when it has less itself.

use crate::cluster::leadership::Follower;
use crate::core::Core;
use crate::log::record::LogEntry;
use crate::proposal::Proposal;
use crate::storage::{DiskSpace, Storage};
use crate::submit::SubmitError;
use flotilla_engine::{Admission, NodeId};
use openraft::EntryPayload;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// What a member still writes, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// No commands of callers: only what keeps the cluster going.
    ReadOnly,
    /// What lets open work end.
    ProgressOnly,
    /// Everything.
    #[default]
    Free,
}

impl Room {
    /// What is left with so many bytes free, where it was `self` before.
    fn after(self, free_bytes: u64, reserve_bytes: u64) -> Self {
        if is_short(free_bytes, reserve_bytes / 2, self == Self::ReadOnly) {
            Self::ReadOnly
        } else if is_short(free_bytes, reserve_bytes, self <= Self::ProgressOnly) {
            Self::ProgressOnly
        } else {
            Self::Free
        }
    }

    fn admits(self, admission: Admission) -> bool {
        match (self, admission) {
            (Self::Free, _) | (Self::ProgressOnly, Admission::Progress) => true,
            (Self::ProgressOnly, Admission::Intake) | (Self::ReadOnly, _) => false,
        }
    }
}

/// The disk of a data directory, as it was measured last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    /// Unset before the first look, and where a disk has no end.
    pub(crate) space: Option<DiskSpace>,
    /// What is still written to it.
    pub(crate) room: Room,
    /// Whether not even commands are written that a leader has under way.
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
            room: self.room.after(free_bytes, reserve_bytes),
            is_full: is_short(free_bytes, reserve_bytes / 4, self.is_full),
        }
    }

    /// Whether so many bytes can be written; always where the disk is not looked at.
    fn fits(self, bytes: u64, reserve_bytes: u64) -> bool {
        let is_watched = reserve_bytes > 0;
        let space = self.space.filter(|_| is_watched);
        space.is_none_or(|space| space.free_bytes >= bytes)
    }
}

/// Whether less than `bytes` are free; once they were, more must be before it is over.
fn is_short(free_bytes: u64, bytes: u64, was_short: bool) -> bool {
    let margin = if was_short { bytes / 4 } else { 0 };
    free_bytes < bytes.saturating_add(margin)
}

/// Where a disk is measured.
pub(crate) struct DataDisk {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: PathBuf,
}

impl Core {
    /// What this member still writes.
    pub(crate) fn room(&self) -> Room {
        self.disk.borrow().room
    }

    /// Whether a command may be proposed here, at the leader.
    ///
    /// # Errors
    /// [`SubmitError::DiskLow`].
    pub(crate) fn check_room(&self, admission: Admission) -> Result<(), SubmitError> {
        if self.room().min(self.quorum_room()).admits(admission) {
            Ok(())
        } else {
            Err(SubmitError::DiskLow)
        }
    }

    /// Whether these entries of a leader are written here, at a follower. A new leader sends again what is here
    /// already, to find out how far that goes.
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

    /// Whether another member's state can be received beside the own one. It is taken to be about as large.
    pub(crate) fn has_room_for_state(&self) -> bool {
        let figures = self.store.figures().unwrap_or_default();
        let state_bytes = figures.files_bytes.saturating_add(figures.buffers_bytes);
        let reserve_bytes = self.tuning.disk_reserve_bytes;
        let needed = state_bytes.saturating_add(reserve_bytes / 2);
        let disk = *self.disk.borrow();
        disk.room > Room::ReadOnly && disk.fits(needed, reserve_bytes)
    }

    /// Whether there is room for a snapshot of the own state: it writes what is not in files yet, and links the
    /// rest. It is what the log can be cut by, so the reserve is good for it.
    pub(crate) fn has_room_for_snapshot(&self) -> bool {
        let figures = self.store.figures().unwrap_or_default();
        let disk = *self.disk.borrow();
        disk.fits(figures.buffers_bytes, self.tuning.disk_reserve_bytes)
    }

    /// The room that a quorum of voters has at least; everything while only this member can be short of it.
    /// Asked for each command, so voters are counted only while another one says that it is short.
    fn quorum_room(&self) -> Room {
        if self.local.have_all_room() {
            return Room::Free;
        }
        let membership = self.membership();
        let voters = membership.membership().get_joint_config();
        quorum_room(voters, |node_id| match node_id {
            own if own == self.local.node_id => self.room(),
            // Who has not been heard yet is not held against the others.
            other => self.local.room_of(other).unwrap_or_default(),
        })
    }

    /// Has a voter with more room lead, if this node leads and there is one.
    async fn yield_to_room(&self) {
        let own = self.room();
        if own == Room::Free || !self.leadership.borrow().is_self {
            return;
        }
        let followers = self.followers().into_iter();
        let followers = followers.map(|follower| (self.local.room_of(follower.node_id), follower));
        if let Some(to) = roomiest(own, followers) {
            let deadline = Instant::now() + self.tuning.upkeep_interval;
            tracing::info!(to, "another member has more room: it shall lead");
            drop(self.transfer_leader(Some(NodeId(to)), deadline).await);
        }
    }

    /// Takes note of how much room there is on the disk.
    pub(crate) fn measure(&self, disk: &DataDisk) {
        match disk.storage.space(&disk.directory) {
            Ok(space) => self.measured(space),
            // What was known stays: a disk that cannot be asked fails elsewhere, too.
            Err(error) => tracing::warn!(%error, "the room on the disk cannot be measured"),
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
                "the disk is all but full: no commands are written, whoever leads"
            );
        }
        if disk.room == known.room {
            return;
        }
        match disk.room {
            Room::Free => tracing::info!(free_bytes, "the disk has room again"),
            Room::ProgressOnly => tracing::warn!(
                free_bytes,
                reserve_bytes,
                "the disk is nearly full: no new work is taken"
            ),
            Room::ReadOnly => tracing::error!(
                free_bytes,
                reserve_bytes,
                "the disk is nearly full: nothing is written that can be refused"
            ),
        }
    }
}

/// The room that a quorum of the voters has at least; of both sets of them, while they change.
fn quorum_room(sets: &[BTreeSet<u64>], room_of: impl Fn(u64) -> Room) -> Room {
    let rooms = sets.iter().map(|voters| {
        let mut rooms: Vec<Room> = voters.iter().map(|node_id| room_of(*node_id)).collect();
        rooms.sort_unstable_by(|one, other| other.cmp(one));
        rooms.get(rooms.len() / 2).copied().unwrap_or_default()
    });
    rooms.min().unwrap_or_default()
}

/// The follower to lead in the place of one with this room: it has more, as it has said itself, and nearly all
/// of the log.
fn roomiest(own: Room, followers: impl Iterator<Item = (Option<Room>, Follower)>) -> Option<u64> {
    followers
        .filter_map(|(room, follower)| Some((room?, follower)))
        .filter(|(room, follower)| *room > own && follower.has_caught_up())
        .max_by_key(|(room, follower)| (*room, follower.matched))
        .map(|(_, follower)| follower.node_id)
}

/// Measures the disk until it is dropped.
pub(crate) async fn watch_room(core: Arc<Core>, disk: DataDisk) {
    let mut ticks = interval(core.tuning.upkeep_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        core.measure(&disk);
        core.yield_to_room().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::type_config::LogId;

    #[test]
    fn new_work_stops_first_then_everything_and_each_goes_on_with_a_margin() {
        let mut room = Room::Free;
        let mut seen = Vec::new();
        for free_bytes in [
            1000, 800, 799, 900, 999, 1000, 799, 400, 399, 400, 499, 500, 999, 1000,
        ] {
            room = room.after(free_bytes, 800);
            seen.push(room);
        }
        use Room::{Free, ProgressOnly, ReadOnly};
        assert_eq!(
            seen,
            [
                Free,
                Free,
                ProgressOnly,
                ProgressOnly,
                ProgressOnly,
                Free,
                ProgressOnly,
                ProgressOnly,
                ReadOnly,
                ReadOnly,
                ReadOnly,
                ProgressOnly,
                ProgressOnly,
                Free
            ]
        );
    }

    #[test]
    fn without_a_reserve_there_is_always_room() {
        assert_eq!(Room::Free.after(0, 0), Room::Free);
    }

    #[test]
    fn open_work_ends_while_new_work_waits() {
        assert!(Room::ProgressOnly.admits(Admission::Progress));
        assert!(!Room::ProgressOnly.admits(Admission::Intake));
        assert!(!Room::ReadOnly.admits(Admission::Progress));
        assert!(Room::Free.admits(Admission::Intake));
    }

    #[test]
    fn what_is_under_way_is_written_down_to_a_quarter_and_again_with_a_margin() {
        let mut disk = Disk::default();
        let mut seen = Vec::new();
        for free_bytes in [1000, 399, 200, 199, 249, 250, 199] {
            let bytes = 1000;
            disk = disk.after(Some(DiskSpace { free_bytes, bytes }), 800);
            seen.push((disk.room == Room::ReadOnly, disk.is_full));
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
        use Room::{Free, ReadOnly};
        let full = |full: &'static [u64]| {
            move |node_id| match full.contains(&node_id) {
                true => ReadOnly,
                false => Free,
            }
        };
        let three = [BTreeSet::from([1, 2, 3])];
        assert_eq!(quorum_room(&three, full(&[1])), Free);
        assert_eq!(quorum_room(&three, full(&[1, 2])), ReadOnly);
        // Of all five, three have room; of the first three, one.
        let both = [BTreeSet::from([1, 2, 3]), BTreeSet::from([3, 4, 5])];
        assert_eq!(quorum_room(&both, full(&[1, 2])), ReadOnly);
        assert_eq!(quorum_room(&both, full(&[1, 4])), Free);
        assert_eq!(quorum_room(&[], full(&[])), Free);
    }

    #[test]
    fn a_leader_yields_to_a_follower_that_has_said_that_it_has_room_and_has_the_log() {
        use Room::{Free, ProgressOnly, ReadOnly};
        let follower = |node_id, lag| Follower {
            node_id,
            matched: Some(LogId::new_term_index(1, 1_000 - lag)),
            lag,
        };
        let chosen = |followers: Vec<(Option<Room>, Follower)>| {
            roomiest(ProgressOnly, followers.into_iter())
        };
        let near = (Some(Free), follower(2, 1));
        let far = (Some(Free), follower(3, 900));
        assert_eq!(chosen(vec![near, far]), Some(2));
        assert_eq!(chosen(vec![far]), None);
        assert_eq!(chosen(vec![(None, follower(2, 0))]), None);
        assert_eq!(chosen(vec![(Some(ProgressOnly), follower(2, 0))]), None);
        let other = (Some(Free), follower(4, 0));
        assert_eq!(chosen(vec![near, other, far]), Some(4));
        let little = (Some(ProgressOnly), follower(5, 0));
        let from_full = roomiest(ReadOnly, [near, little].into_iter());
        assert_eq!(from_full, Some(2));
    }
}
