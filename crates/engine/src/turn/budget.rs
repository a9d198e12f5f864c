//! The budgets of a turn and of an entry (design rule 13).
//!
//! A turn that has used up its own budget or that of its entry is continued in a later entry. An entry is therefore
//! applied in bounded time and memory, whatever definitions and payloads contain, and no work fails because of its
//! size.

use super::Turn;
use crate::limits::{
    ENTRY_READ_BYTES_MAX, ENTRY_ROWS_MAX, ENTRY_WRITTEN_BYTES_MAX, TURN_READ_BYTES_MAX,
    TURN_ROWS_MAX, TURN_STEPS_MAX, TURN_WRITTEN_BYTES_MAX,
};

/// The work done in a turn, or in all turns of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Steps that runs entered or retried immediately.
    pub steps: usize,
    /// Rows that were read, visited, written or deleted.
    pub rows: usize,
    /// The size of payloads and other contents that were read, in bytes.
    pub read_bytes: usize,
    /// The approximate size of writes, in bytes.
    pub written_bytes: usize,
}

impl Spent {
    /// The budget of a turn.
    const TURN_MAX: Self = Self {
        steps: TURN_STEPS_MAX,
        rows: TURN_ROWS_MAX,
        read_bytes: TURN_READ_BYTES_MAX,
        written_bytes: TURN_WRITTEN_BYTES_MAX,
    };

    /// The budget of an entry; further turns are continued in a later one.
    const ENTRY_MAX: Self = Self {
        steps: usize::MAX,
        rows: ENTRY_ROWS_MAX,
        read_bytes: ENTRY_READ_BYTES_MAX,
        written_bytes: ENTRY_WRITTEN_BYTES_MAX,
    };

    pub(super) fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.rows += other.rows;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }

    fn has_reached(&self, max: &Self) -> bool {
        self.steps >= max.steps
            || self.rows >= max.rows
            || self.read_bytes >= max.read_bytes
            || self.written_bytes >= max.written_bytes
    }
}

impl Turn<'_, '_> {
    /// Whether the turn has used up its budget or that of its entry.
    pub(crate) fn is_spent(&self) -> bool {
        let spent = self.spent();
        let mut of_entry = self.entry.spent;
        of_entry.add(spent);
        spent.has_reached(&Spent::TURN_MAX) || of_entry.has_reached(&Spent::ENTRY_MAX)
    }

    /// The budget that the turn has used so far.
    pub(super) fn spent(&self) -> Spent {
        Spent {
            rows: self.spent.rows + self.rows_visited.get(),
            ..self.spent
        }
    }

    /// Counts a step.
    pub(crate) fn spend_step(&mut self) {
        self.spent.steps += 1;
    }

    /// Counts content that was read.
    pub(crate) fn spend_read(&mut self, bytes: usize) {
        self.spent.read_bytes += bytes;
    }
}
