//! Keeping a member's disk from filling up (design rule 13: a clear refusal, never a crash).
//!
//! A node that cannot write its log ends, and starts again only once there is room. So it keeps a reserve. Below
//! it the cluster takes no new work, while open work goes on and retention frees what it can. Below half of
//! it nothing is written that can be refused: a leader takes no commands, a follower no entries. What the
//! reserve is for is the rest: votes, what is committed already, and the stores' own rewriting. With more room
//! each goes on by itself, a quarter above where it stopped, so that it does not change to and fro.
//!
//! Members tell the leader of their room with each answer. It serves as far as a quorum of voters has room,
//! since it can do without the others, and hands over to one of those when it has less itself.

use crate::core::Core;
use crate::membership::voters;
use crate::storage::{DiskSpace, Storage};
use crate::submit::SubmitError;
use flotilla_engine::{Admission, NodeId};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// What a member still writes, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Nothing that can be refused.
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
        let is_short = |room: Self, bytes: u64| {
            let margin = if self <= room { bytes / 4 } else { 0 };
            free_bytes < bytes.saturating_add(margin)
        };
        if is_short(Self::ReadOnly, reserve_bytes / 2) {
            Self::ReadOnly
        } else if is_short(Self::ProgressOnly, reserve_bytes) {
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

    /// The form in which peers are told.
    pub(crate) fn to_wire(self) -> u32 {
        match self {
            Self::Free => 0,
            Self::ProgressOnly => 1,
            Self::ReadOnly => 2,
        }
    }

    /// Reads what [`Room::to_wire`] wrote; what a newer version says is taken for the least.
    pub(crate) fn from_wire(wire: u32) -> Self {
        match wire {
            0 => Self::Free,
            1 => Self::ProgressOnly,
            _ => Self::ReadOnly,
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

    /// The room that a quorum of voters has at least; everything while only this member can be short of it.
    /// Asked for each command, so voters are counted only while another one says that it is short.
    fn quorum_room(&self) -> Room {
        if self.local.have_all_room() {
            return Room::Free;
        }
        let mut rooms: Vec<Room> = self
            .voters_rooms()
            .into_iter()
            .map(|(_, room)| room)
            .collect();
        rooms.sort_unstable_by(|one, other| other.cmp(one));
        rooms.get(rooms.len() / 2).copied().unwrap_or_default()
    }

    fn voters_rooms(&self) -> Vec<(u64, Room)> {
        let membership = self.membership();
        let room_of = |node_id: u64| {
            if node_id == self.local.node_id {
                self.room()
            } else {
                self.local.room_of(node_id)
            }
        };
        voters(membership.membership())
            .into_iter()
            .map(|node_id| (node_id, room_of(node_id)))
            .collect()
    }

    /// Has a voter with more room lead, if this node leads and there is one.
    async fn yield_to_room(&self) {
        let own = self.room();
        if own == Room::Free || !self.leadership.borrow().is_self {
            return;
        }
        let roomiest = self
            .voters_rooms()
            .into_iter()
            .max_by_key(|(_, room)| *room);
        if let Some((node_id, room)) = roomiest
            && room > own
        {
            let deadline = Instant::now() + self.tuning.upkeep_interval;
            let to = NodeId(node_id);
            tracing::info!(to = to.0, "another member has more room: it shall lead");
            drop(self.transfer_leader(Some(to), deadline).await);
        }
    }

    fn measured(&self, space: Option<DiskSpace>) {
        let reserve_bytes = self.tuning.disk_reserve_bytes;
        let known = self.room();
        let room = space.map_or(Room::Free, |space| {
            known.after(space.free_bytes, reserve_bytes)
        });
        self.disk.send_replace(Disk { space, room });
        if room == known {
            return;
        }
        let free_bytes = space.map_or(0, |space| space.free_bytes);
        match room {
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

/// Measures the disk until it is dropped.
pub(crate) async fn watch_room(core: Arc<Core>, storage: Arc<dyn Storage>, directory: PathBuf) {
    let mut ticks = interval(core.tuning.upkeep_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match storage.space(&directory) {
            Ok(space) => core.measured(space),
            // What was known stays: a disk that cannot be asked fails elsewhere, too.
            Err(error) => tracing::warn!(%error, "the room on the disk cannot be measured"),
        }
        core.yield_to_room().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn peers_understand_each_other() {
        for room in [Room::ReadOnly, Room::ProgressOnly, Room::Free] {
            assert_eq!(Room::from_wire(room.to_wire()), room);
        }
        assert_eq!(Room::from_wire(9), Room::ReadOnly);
    }
}
