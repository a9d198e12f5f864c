//! The payload of a normal log entry: commands, or a control record.

use bytes::Bytes;
use flotilla_engine::codec::{self, DecodeError};
use flotilla_engine::{Entry, Offer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::sync::Arc;

/// The payload of a normal log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// Commands for the engine.
    Commands(Commands),
    /// A control record of the replicas.
    Control(Control),
}

impl fmt::Display for Proposal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(commands) => write!(formatter, "commands({} B)", commands.bytes.len()),
            Self::Control(control) => write!(formatter, "{control:?}"),
        }
    }
}

/// An engine entry: its bytes, and its decoded form where that exists, so that the node that made
/// it does not decode it again.
#[derive(Clone)]
pub(crate) struct Commands {
    bytes: Bytes,
    decoded: Option<Arc<Entry>>,
}

impl Commands {
    /// Encodes an entry.
    #[must_use]
    pub(crate) fn new(entry: Entry) -> Self {
        Self {
            bytes: entry.encode().into(),
            decoded: Some(Arc::new(entry)),
        }
    }

    /// An entry that another node encoded.
    #[must_use]
    pub(crate) fn from_bytes(bytes: Bytes) -> Self {
        Self {
            bytes,
            decoded: None,
        }
    }

    /// The encoded entry.
    #[must_use]
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The entry.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes of a newer version: the process must end (design rule 12).
    pub(crate) fn entry(&self) -> Result<Arc<Entry>, DecodeError> {
        match &self.decoded {
            Some(entry) => Ok(Arc::clone(entry)),
            None => Entry::decode(&self.bytes).map(Arc::new),
        }
    }
}

impl PartialEq for Commands {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Commands {}

impl fmt::Debug for Commands {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Commands")
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// A control record: the replicas' own agreements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Control {
    /// Entries up to this index may be purged wherever a snapshot of the node covers them too.
    PurgeFloor {
        /// The last index to purge.
        index: u64,
    },
    /// A replica's digest after the entry at `index` (design rule 11).
    DigestReport {
        /// The node that reports.
        node: u64,
        /// The index of the entry.
        index: u64,
        /// The digest.
        digest: u128,
    },
    /// All members know this engine version, and use it from now on (design rule 12).
    RaiseEngineVersion {
        /// The agreed version.
        version: u32,
    },
}

#[derive(Serialize, Deserialize)]
enum Versioned {
    V1(Control),
}

impl Control {
    /// The persisted form.
    #[must_use]
    pub(crate) fn encode(self) -> Vec<u8> {
        codec::encode(&Versioned::V1(self))
    }

    /// Decodes the persisted form.
    ///
    /// # Errors
    /// [`DecodeError`] for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Versioned::V1(control) = codec::decode(bytes)?;
        Ok(control)
    }
}

/// The polls of the offers, and their slots.
pub(crate) fn slots(offers: &[Offer]) -> Vec<(u64, u32)> {
    let slots = offers.iter().map(|offer| (offer.poll, offer.slots));
    slots.collect()
}

/// The encoded size of a command or an offer in an entry.
pub(crate) fn encoded_bytes(part: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    bincode::serde::encode_into_std_write(part, &mut counter, bincode::config::standard())
        .expect("an entry's parts hold only what bincode encodes, and counting takes every byte");
    counter.0
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A released form is never edited (design rule 12): a difference here needs a new version.
    #[test]
    fn the_bytes_of_controls_do_not_change() {
        let floor = Control::PurgeFloor { index: 300 };
        assert_eq!(floor.encode(), [1, 0, 0, 251, 44, 1]);
        assert_eq!(Control::decode(&floor.encode()).unwrap(), floor);
        let report = Control::DigestReport {
            node: 2,
            index: 3,
            digest: 4,
        };
        assert_eq!(report.encode(), [1, 0, 1, 2, 3, 4]);
        assert_eq!(Control::decode(&report.encode()).unwrap(), report);
        let raise = Control::RaiseEngineVersion { version: 2 };
        assert_eq!(raise.encode(), [1, 0, 2, 2]);
        assert_eq!(Control::decode(&raise.encode()).unwrap(), raise);
    }
}
