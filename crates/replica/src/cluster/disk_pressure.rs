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

use crate::storage::DiskSpace;
use flotilla_engine::Admission;
use std::collections::BTreeSet;

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

    /// Whether a command of this class is written.
    pub(crate) fn admits(self, admission: Admission) -> bool {
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
    pub(crate) is_full: bool,
}

impl Disk {
    /// The same disk, measured again.
    pub(crate) fn after(self, space: Option<DiskSpace>, reserve_bytes: u64) -> Self {
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
    pub(crate) fn fits(self, bytes: u64, reserve_bytes: u64) -> bool {
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

/// The disk pressure that a quorum of the voters stays within; of both voter sets during a change.
pub(crate) fn quorum_disk_pressure(
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
