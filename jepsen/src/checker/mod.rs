//! Checks the history of a run: pure functions from a history to its violations.

mod availability;
mod exclusive;
mod gapless;
mod linearizable;
mod once;

pub use availability::longest_outage_us;
pub use exclusive::{Hold, overlapping};
pub use gapless::{evenly_spaced, numbered};
pub use linearizable::{Access, Call, is_linearizable};
pub use once::{Attempt, exactly_once};

use std::fmt;

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Violation {
    /// A violation with this description.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
