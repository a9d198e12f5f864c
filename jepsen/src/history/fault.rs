//! A fault of a nemesis.

use serde::{Deserialize, Serialize};

/// A fault, from its injection to its healing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The nemesis.
    pub nemesis: String,
    /// The fault and its victims.
    pub what: String,
    /// When it began, in microseconds since the run began.
    pub started_us: u64,
    /// When it was healed, in microseconds since the run began.
    pub ended_us: u64,
}
