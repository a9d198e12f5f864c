//! The budgets of a turn and of an entry (design rule 13).
//!
//! A turn that has used up its own budget or that of its entry is continued in a later entry. An entry is therefore
//! applied in bounded time and memory, whatever definitions and payloads contain, and no work fails because of its
//! size.

use super::Turn;
use crate::definition::Definition;
use crate::limits::{
    ENTRY_READ_BYTES_MAX, ENTRY_ROWS_MAX, ENTRY_WRITTEN_BYTES_MAX, EXPRESSION_UNIT_BYTES,
    TURN_READ_BYTES_MAX, TURN_ROWS_MAX, TURN_STEPS_MAX, TURN_WRITTEN_BYTES_MAX,
};
use std::cell::Cell;

/// The work done in a turn, or in all turns of an entry; also a limit on it.
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

/// How much work is done before the rest is continued in a later entry. All replicas of a cluster must use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// For one turn.
    pub turn: Spent,
    /// For all turns of an entry.
    pub entry: Spent,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            turn: Spent {
                steps: TURN_STEPS_MAX,
                rows: TURN_ROWS_MAX,
                read_bytes: TURN_READ_BYTES_MAX,
                written_bytes: TURN_WRITTEN_BYTES_MAX,
            },
            entry: Spent {
                steps: usize::MAX,
                rows: ENTRY_ROWS_MAX,
                read_bytes: ENTRY_READ_BYTES_MAX,
                written_bytes: ENTRY_WRITTEN_BYTES_MAX,
            },
        }
    }
}

/// What the scans of a turn have visited.
#[derive(Debug, Default)]
pub(super) struct Visited {
    rows: Cell<usize>,
    content_bytes: Cell<usize>,
}

impl Visited {
    /// Counts a row.
    pub(super) fn add_row(&self) {
        self.rows.set(self.rows.get() + 1);
    }

    /// Counts the content of a row.
    pub(super) fn add_content(&self, bytes: usize) {
        self.content_bytes.set(self.content_bytes.get() + bytes);
    }
}

impl Spent {
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
        let budgets = self.entry.budgets;
        spent.has_reached(&budgets.turn) || of_entry.has_reached(&budgets.entry)
    }

    /// The budget that the turn has used so far.
    pub(super) fn spent(&self) -> Spent {
        Spent {
            rows: self.spent.rows + self.visited.rows.get(),
            written_bytes: self.spent.written_bytes + self.runs.noted_bytes,
            read_bytes: self.spent.read_bytes + self.visited.content_bytes.get(),
            ..self.spent
        }
    }

    /// Counts the cost of an expression, in units of W64.
    pub(crate) fn spend_units(&mut self, units: u32) {
        let units = usize::try_from(units).expect("a usize has 32 bits or more");
        self.spent.read_bytes += units * EXPRESSION_UNIT_BYTES;
    }

    /// Counts a comparison of the steps of two definitions.
    pub(crate) fn spend_comparison(&mut self, one: &Definition, other: &Definition) {
        let steps_count = one.steps.len() + other.steps.len();
        self.spend_units(u32::try_from(steps_count).unwrap_or(u32::MAX));
    }

    /// Counts a step.
    pub(crate) fn spend_step(&mut self) {
        self.spent.steps += 1;
    }
}
