//! The time and the seed of an entry (design rule 1).

use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// The time, seed and leader of an entry, set by the leader that proposes it (design rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds since the Unix epoch; the engine keeps it monotonic.
    pub now_ms: u64,
    /// The seed of all random choices in the entry.
    pub seed: u64,
    /// The leader that proposed the entry.
    pub node: NodeId,
}
