//! What a turn and an entry may take (design rule 13).
//!
//! A turn that has reached its budget, or that of its entry, is continued in a later entry. So an entry is applied in
//! bounded time and memory whatever definitions and payloads are, and nothing fails for it.

use super::Turn;
use crate::limits::{
    ENTRY_READ_BYTES_MAX, ENTRY_ROWS_MAX, ENTRY_WRITTEN_BYTES_MAX, TURN_READ_BYTES_MAX,
    TURN_ROWS_MAX, TURN_STEPS_MAX, TURN_WRITTEN_BYTES_MAX,
};

/// What was done in a turn, or in all turns of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Steps that runs entered, or tried again at once.
    pub steps: usize,
    /// Rows that were looked up, visited, written or deleted.
    pub rows: usize,
    /// The payloads and other contents that were read, in bytes.
    pub read_bytes: usize,
    /// About what was written, in bytes.
    pub written_bytes: usize,
}

impl Spent {
    /// Where a turn is continued.
    const TURN_MAX: Self = Self {
        steps: TURN_STEPS_MAX,
        rows: TURN_ROWS_MAX,
        read_bytes: TURN_READ_BYTES_MAX,
        written_bytes: TURN_WRITTEN_BYTES_MAX,
    };

    /// Where all further turns of an entry are.
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
    /// Whether the turn has reached its budget or that of its entry: what is left is done in a later one.
    pub(crate) fn is_spent(&self) -> bool {
        let spent = self.spent();
        let mut of_entry = self.entry.spent;
        of_entry.add(spent);
        spent.has_reached(&Spent::TURN_MAX) || of_entry.has_reached(&Spent::ENTRY_MAX)
    }

    /// What the turn has spent so far.
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

    /// Counts contents that are read.
    pub(crate) fn spend_read(&mut self, bytes: usize) {
        self.spent.read_bytes += bytes;
    }
}
