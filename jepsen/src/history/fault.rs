//! What a nemesis did.

use serde::{Deserialize, Serialize};

/// A fault, from its beginning to its healing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Who did it.
    pub nemesis: String,
    /// What was done, and to whom.
    pub what: String,
    /// When it began, in microseconds since the run began.
    pub started_us: u64,
    /// When it was healed, in microseconds since the run began.
    pub ended_us: u64,
}
