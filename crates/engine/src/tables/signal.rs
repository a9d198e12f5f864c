//! Stored signals that wait for a step to match them (W19).

use super::{PayloadRef, ScopePath, tables};
use crate::ids::{RunNumber, ScopeNumber, SignalId, SignalType};
use crate::mostly_default::ConstDefault;
use serde::{Deserialize, Serialize};

tables! {
    /// By run, scope, type and arrival; the path is empty for a signal to any scope. Live until a wait matches them or
    /// the run ends.
    11 SignalsWaiting((RunNumber, ScopePath, SignalType, u64)) -> SignalRecord;
    /// Ids that callers gave, each with its position among those of the run (W19). Live as long as the run, or until
    /// the run has received too many newer ones.
    12 SignalIds((RunNumber, SignalId)) -> u64;
    /// The same ids by their places.
    67 SignalIdPlaces((RunNumber, u64)) -> SignalId;
    /// Signals that steps of a block took that may be tried again, by run, scope of the block and arrival. Live until
    /// the scope ends (W69).
    79 TakenSignals((RunNumber, ScopeNumber, u64)) -> TakenSignal;
}

/// A stored signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRecord {
    /// Its payload.
    pub payload: PayloadRef,
    /// The payload's length, in bytes.
    pub bytes: u32,
}

/// A signal that a step took, and that a retry may put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenSignal {
    /// The scope that it was sent to; empty for any scope.
    pub to: ScopePath,
    /// Its type.
    pub signal_type: SignalType,
    /// The signal.
    pub signal: SignalRecord,
}

/// What a run counts of its signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalCounts {
    /// Signals so far: the place of the last one.
    pub received_count: u64,
    /// Signals that wait for a step, or that an open block with a retry policy has taken.
    pub kept_count: u32,
    /// The payloads of those, in bytes.
    pub kept_bytes: u64,
    /// Ids so far: the next one's place.
    pub ids_count: u64,
}

impl ConstDefault for SignalCounts {
    const DEFAULT: &'static Self = &Self {
        received_count: 0,
        kept_count: 0,
        kept_bytes: 0,
        ids_count: 0,
    };
}

impl SignalCounts {
    /// Counts a signal that is kept.
    pub(crate) fn add(&mut self, bytes: u32) {
        self.kept_count += 1;
        self.kept_bytes += u64::from(bytes);
    }

    /// Forgets a signal that was counted.
    pub(crate) fn remove(&mut self, bytes: u32) {
        self.kept_count -= 1;
        self.kept_bytes -= u64::from(bytes);
    }
}
