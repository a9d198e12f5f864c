//! The seam below the log: an ordered place for records and a few small facts.

use crate::storage::StoreFigures;
use bytes::Bytes;
use std::collections::BTreeMap;

/// A failure of the device: the process must end (design rule 10).
#[derive(Debug, thiserror::Error)]
#[error("the log device failed: {0}")]
pub struct DeviceError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// Small facts that the device keeps beside the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// Whose directory this is.
    Identity,
    /// Whom this node granted leadership.
    Vote,
    /// The last log id that was deleted because a snapshot covers it.
    Purged,
    /// What was known as committed; may lag.
    Committed,
}

/// One write, in the order of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores a record.
    Put {
        /// Its index.
        index: u64,
        /// Its bytes.
        record: Bytes,
    },
    /// Deletes the records from `from` on.
    Truncate {
        /// The first index that goes.
        from: u64,
    },
    /// Deletes the records up to `to`.
    Purge {
        /// The last index that goes.
        to: u64,
    },
    /// Stores a fact.
    Set {
        /// Which.
        fact: Fact,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// Whether a write must survive a power cut before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It must.
    Synced,
    /// It may be lost, but only together with everything after it.
    Deferred,
}

/// Called with the index and bytes of each record until it returns false.
pub type RecordVisitor<'a> = &'a mut dyn FnMut(u64, Bytes) -> bool;

/// Where the log is kept. What a crash leaves is a prefix of the writes that contains every synced
/// one; each write is all or nothing.
pub trait LogDevice: Send + Sync + 'static {
    /// All facts.
    ///
    /// # Errors
    /// [`DeviceError`] when the device fails.
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError>;

    /// Visits the records with `from <= index < to` in order.
    ///
    /// # Errors
    /// [`DeviceError`] when the device fails.
    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError>;

    /// Carries out all operations, in order, as one.
    ///
    /// # Errors
    /// [`DeviceError`] when the device fails; it is then unknown what was written.
    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError>;

    /// How it stands, where it can tell.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }
}
