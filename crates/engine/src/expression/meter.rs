//! The cost of an evaluation (W64).

use super::Failure;
use crate::limits::{EXPRESSION_COST_MAX, EXPRESSION_UNIT_BYTES};

/// Counts the cost of an evaluation: a unit per operation and element, and per
/// [`EXPRESSION_UNIT_BYTES`] bytes that are read, compared or made.
#[derive(Debug, Default)]
pub struct Meter {
    spent: u32,
}

impl Meter {
    /// Adds a number of units.
    pub(super) fn spend(&mut self, units: usize) -> Result<(), Failure> {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        self.spent = self.spent.saturating_add(units);
        if self.spent > EXPRESSION_COST_MAX {
            self.spent = EXPRESSION_COST_MAX;
            return Err(Failure::exhausted(EXPRESSION_COST_MAX));
        }
        Ok(())
    }

    /// Adds what bytes cost.
    ///
    /// # Errors
    /// If the evaluation costs too much.
    pub fn spend_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.spend(bytes / EXPRESSION_UNIT_BYTES)
    }

    /// The units so far.
    #[must_use]
    pub fn spent(&self) -> u32 {
        self.spent
    }
}
