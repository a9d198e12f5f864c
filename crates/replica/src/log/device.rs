//! The log device: an ordered store of records and a few small facts, below the log.

use crate::storage::StoreFigures;
use bytes::Bytes;
use std::collections::BTreeMap;

/// A failure of the device: the process must end (design rule 10).
#[derive(Debug, thiserror::Error)]
#[error("the log device failed: {0}")]
pub struct DeviceError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// Small facts that the device stores beside the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The directory's identity.
    Identity,
    /// The vote of this node.
    Vote,
    /// The last log id that was purged because a snapshot covers it.
    Purged,
    /// The last known committed log id; may lag.
    Committed,
    /// The last log id that this node had acknowledged when it found that its disk has lost entries.
    Lost,
}

/// One write, in the order of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores a record.
    Put {
        /// The record's index.
        index: u64,
        /// The record's bytes.
        record: Bytes,
    },
    /// Deletes the records from `from` on.
    Truncate {
        /// The first index to delete.
        from: u64,
    },
    /// Deletes the records up to `to`.
    Purge {
        /// The last index to delete.
        to: u64,
    },
    /// Stores a fact.
    Set {
        /// The fact to store.
        fact: Fact,
        /// The fact's bytes.
        bytes: Vec<u8>,
    },
}

/// Whether a write must survive a power cut before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The write is durable before the call returns.
    Synced,
    /// It may be lost, but only together with everything after it.
    Deferred,
}

/// Called with the index and bytes of each record until it returns false.
pub type RecordVisitor<'a> = &'a mut dyn FnMut(u64, Bytes) -> bool;

/// The storage of the log. A crash leaves a prefix of the writes that contains every synced one;
/// each write is atomic.
pub trait LogDevice: Send + Sync + 'static {
    /// All facts.
    ///
    /// # Errors
    /// [`DeviceError`] if the device fails.
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError>;

    /// Visits the records with `from <= index < to` in order.
    ///
    /// # Errors
    /// [`DeviceError`] if the device fails.
    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError>;

    /// Executes all operations, in order and atomically.
    ///
    /// # Errors
    /// [`DeviceError`] if the device fails; it is then unknown what was written.
    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError>;

    /// Its current figures, if it reports any.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }
}
