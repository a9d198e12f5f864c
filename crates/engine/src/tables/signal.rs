//! Signals that wait for a step to match them (W19).

use super::{PayloadRef, tables};
use crate::ids::{RunNumber, SignalId, SignalType};
use serde::{Deserialize, Serialize};

tables! {
    /// By run, type and arrival. Live until a wait matches them or the run ends.
    11 SignalsWaiting((RunNumber, SignalType, u32)) -> SignalRecord;
    /// Ids that callers gave (W19). Live as long as the run.
    12 SignalIds((RunNumber, SignalId)) -> u32;
}

/// A stored signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRecord {
    /// Its payload.
    pub payload: PayloadRef,
}
